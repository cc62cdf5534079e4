//! Writing recorded entries into the workspace, exactly and nowhere else.
//!
//! The parent directory of each path is opened one name at a time without following links or crossing mount
//! points, and the entry is then replaced by its one name in it. A file is written beside and renamed.
//! Directories that their owner may not write are made writable meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use carrel_fsroot::{
    AtomicFile, Collision, Durability, Error, FileKind, Problem, Root, WriteOptions,
    unfinished_write_pid,
};

use crate::change_key::ChangeKey;
use crate::error::StorageError;
use crate::object_id::ObjectId;
use crate::objects::Objects;
use crate::scan::read_if_unchanged;
use crate::tree::{Node, REPOSITORY};

/// The most bytes of a path that are opened in one step, half of `PATH_MAX`.
const MAX_STEP_BYTES: usize = 2048;

/// The rights that a directory has while entries are put into it.
const OWNER_ALL: u32 = 0o700;

/// The time of the last change of a file that is put back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// The present time, so that build tools see that the file changed.
    #[default]
    Now,
    /// The recorded one. Build tools may then keep what they made of the other content.
    Recorded,
}

/// Why an entry could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Files(#[from] Error),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What is under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    Missing,
    /// The same, but for the time of the last change.
    Same,
    /// A file with the same content and another mode.
    OtherMode,
    Other,
}

pub(crate) struct TreeWriter<'a> {
    root: &'a Root,
    durability: Durability,
    times: Times,
    parent: Option<(PathBuf, Root)>,
    touched: BTreeSet<PathBuf>,
    /// Directories that were made writable, and their modes.
    granted: BTreeMap<PathBuf, u32>,
    /// Files that got other modes.
    mode_changed: Vec<PathBuf>,
    /// Files that are written and neither synced nor renamed.
    staged: Vec<(PathBuf, AtomicFile, Expected)>,
    failures: Vec<(PathBuf, Error)>,
    /// Files that were not replaced, since they are not what was expected.
    unexpected: Vec<PathBuf>,
}

/// What a file must be when it is replaced, so that what another process writes meanwhile is not lost.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Anything,
    Missing,
    /// The recorded entry. While the change key is the same its content is not read.
    Same {
        key: Option<ChangeKey>,
        node: Node,
    },
}

/// The threads that wait for syncs.
const SYNC_THREADS: usize = 8;

/// Files are synced together, since the first sync does most of the work of the others. Bounds open files.
const MAX_STAGED: usize = 64;

impl<'a> TreeWriter<'a> {
    pub(crate) fn new(root: &'a Root, durability: Durability, times: Times) -> Self {
        Self {
            root,
            durability,
            times,
            parent: None,
            touched: BTreeSet::new(),
            granted: BTreeMap::new(),
            mode_changed: Vec::new(),
            staged: Vec::new(),
            failures: Vec::new(),
            unexpected: Vec::new(),
        }
    }

    /// Gives directories that an earlier process made writable their modes back at the end, if they still are as it
    /// left them.
    pub(crate) fn take_back_access(&mut self, granted: &[(PathBuf, u32)]) {
        for (path, mode) in granted {
            let present = open_strict(self.root, path).and_then(|opened| opened.own_metadata());
            if present.is_ok_and(|present| present.mode & 0o7777 == mode & 0o7777 | OWNER_ALL) {
                self.granted.entry(path.clone()).or_insert(*mode);
            }
        }
    }

    /// Returns the directories that changing these paths makes writable, and their modes.
    pub(crate) fn restricted<'p>(
        &self,
        paths: impl Iterator<Item = &'p PathBuf>,
    ) -> Vec<(PathBuf, u32)> {
        let parents: BTreeSet<_> = paths.filter_map(|path| path.parent()).collect();
        let mode = |path: &&Path| {
            let mode = open_strict(self.root, path).ok()?.own_metadata().ok()?.mode & 0o7777;
            (mode & OWNER_ALL != OWNER_ALL).then(|| (path.to_path_buf(), mode))
        };
        parents.iter().filter_map(mode).collect()
    }

    /// Returns the files that were not replaced, since they are not what was expected.
    pub(crate) fn take_unexpected(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.unexpected)
    }

    /// Returns the change key of an entry; `None` if it is missing.
    pub(crate) fn key(&mut self, path: &Path) -> Result<Option<ChangeKey>, Error> {
        let found = self.parent(path).and_then(|(parent, name)| parent.link_metadata(name));
        match found {
            Ok(metadata) => Ok(Some(ChangeKey::of(&metadata))),
            Err(error) if is_gone(error.problem()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether an entry is what is expected.
    pub(crate) fn is_expected(&mut self, path: &Path, expected: &Expected) -> Result<bool, Error> {
        match expected {
            Expected::Anything => Ok(true),
            Expected::Missing => Ok(self.key(path)?.is_none()),
            Expected::Same { key, node } => {
                let found = self.key(path)?;
                // Another name of the same file changes the key too.
                Ok((found.is_some() && found == *key)
                    || matches!(self.compare(path, node)?, Present::Same | Present::OtherMode))
            }
        }
    }

    /// Returns the failures of files that were synced and renamed together.
    pub(crate) fn take_failures(&mut self) -> Vec<(PathBuf, Error)> {
        std::mem::take(&mut self.failures)
    }

    /// Syncs the files that are written, and then renames them.
    fn commit_staged(&mut self) {
        let mut staged = std::mem::take(&mut self.staged);
        let synced = at_once(&mut staged, |(_, file, _)| file.sync_contents());
        // All are synced before the first one gets its name, so that a failure changes nothing yet.
        let mut failures = Vec::new();
        let mut files = Vec::new();
        for ((path, file, expected), synced) in staged.into_iter().zip(synced) {
            match synced {
                Ok(()) => files.push((path, file, expected)),
                Err(error) => failures.push((path, error)),
            }
        }
        for (path, file, expected) in files {
            if let Err(error) = self.commit(&path, file, &expected) {
                failures.push((path, error));
            }
        }
        self.failures.append(&mut failures);
    }

    fn commit(&mut self, path: &Path, file: AtomicFile, expected: &Expected) -> Result<(), Error> {
        if self.is_expected(path, expected)? {
            return file.commit();
        }
        self.unexpected.push(path.to_owned());
        Ok(())
    }

    /// Opens the directory of an entry, and returns it with the entry's name.
    fn parent<'p>(&mut self, path: &'p Path) -> Result<(&Root, &'p Path), Error> {
        let name = path.file_name().map_or(path, Path::new);
        let parent = path.parent().unwrap_or(Path::new(""));
        let is_open = self.parent.as_ref().is_some_and(|(open, _)| open == parent);
        if !is_open {
            self.parent = None;
            let opened = open_strict(self.root, parent)?;
            self.parent = Some((parent.to_owned(), opened));
        }
        match &self.parent {
            Some((_, opened)) => Ok((opened, name)),
            None => unreachable!("the parent was opened above"),
        }
    }

    /// Opens the directory of an entry to change it.
    fn parent_to_change<'p>(&mut self, path: &'p Path) -> Result<(&Root, &'p Path), Error> {
        let parent = path.parent().unwrap_or(Path::new(""));
        self.touched.insert(parent.to_owned());
        let (opened, _) = self.parent(path)?;
        let mode = opened.own_metadata()?.mode;
        if mode & OWNER_ALL != OWNER_ALL {
            opened.grant_owner_access()?;
            self.granted.entry(parent.to_owned()).or_insert(mode);
        }
        self.parent(path)
    }

    /// Compares what is under a name with a recorded entry. A directory is compared without its entries.
    pub(crate) fn compare(&mut self, path: &Path, node: &Node) -> Result<Present, Error> {
        let (parent, name) = match self.parent(path) {
            Err(error) if is_gone(error.problem()) => return Ok(Present::Missing),
            opened => opened?,
        };
        let metadata = match parent.link_metadata(name) {
            Err(error) if error.is_not_found() => return Ok(Present::Missing),
            found => found?,
        };
        let same_if = |same: bool| if same { Present::Same } else { Present::Other };
        Ok(match (node, metadata.kind) {
            (Node::File { mode, size, id, .. }, FileKind::File) => {
                if metadata.size != *size || id_of(parent, name)? != Some(*id) {
                    Present::Other
                } else if metadata.mode & 0o777 != *mode {
                    Present::OtherMode
                } else {
                    Present::Same
                }
            }
            (Node::Directory { mode, .. }, FileKind::Directory) => {
                if metadata.mode & 0o3777 == *mode { Present::Same } else { Present::OtherMode }
            }
            (Node::Link { target }, FileKind::Link) => same_if(parent.read_link(name)? == *target),
            (
                Node::File { .. } | Node::Directory { .. } | Node::Link { .. } | Node::LeftOut(_),
                _,
            ) => Present::Other,
        })
    }

    /// Puts a recorded entry under a name. What is there and is no directory is replaced, a file only if it is what is
    /// expected.
    pub(crate) fn put(
        &mut self,
        path: &Path,
        node: &Node,
        expected: Expected,
        objects: &mut Objects,
    ) -> Result<(), WriteError> {
        match node {
            Node::File { mode, modified, id, .. } => {
                let content = objects.get(*id)?;
                Ok(self.put_file(path, (*mode, Some(*modified)), &content, expected)?)
            }
            Node::Directory { mode, .. } => Ok(self.put_directory(path, *mode)?),
            Node::Link { target } => Ok(self.put_link(path, target)?),
            Node::LeftOut(_) => Ok(()),
        }
    }

    pub(crate) fn put_file(
        &mut self,
        path: &Path,
        (mode, modified): (u32, Option<u64>),
        content: &[u8],
        expected: Expected,
    ) -> Result<(), Error> {
        // The directory is synced once for all its files.
        let durability = match self.durability {
            Durability::Synced | Durability::Atomic => Durability::Atomic,
            Durability::Buffered => Durability::Buffered,
        };
        let times = self.times;
        let (parent, name) = self.parent_to_change(path)?;
        // Private until it has its mode.
        let options =
            WriteOptions { collision: Collision::Replace, durability, new_mode: Some(0o600) };
        let mut file = parent.begin_entry_write(name, options)?;
        file.append(content)?;
        file.set_mode(mode)?;
        if let (Times::Recorded, Some(modified)) = (times, modified) {
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(modified))?;
        }
        if durability == Durability::Buffered {
            return self.commit(path, file, &expected);
        }
        self.staged.push((path.to_owned(), file, expected));
        if self.staged.len() >= MAX_STAGED {
            self.commit_staged();
        }
        Ok(())
    }

    /// Makes a directory that stays writable until [`finish`](Self::finish).
    pub(crate) fn put_directory(&mut self, path: &Path, mode: u32) -> Result<(), Error> {
        let (parent, name) = self.parent_to_change(path)?;
        match parent.create_directory(name, OWNER_ALL) {
            Err(error) if error.problem() == Problem::Exists => {
                // A redo finds the directory that the first attempt made.
                if parent.link_metadata(name)?.kind != FileKind::Directory {
                    return Err(error);
                }
            }
            created => created?,
        }
        self.granted.insert(path.to_owned(), mode);
        Ok(())
    }

    pub(crate) fn put_link(&mut self, path: &Path, target: &Path) -> Result<(), Error> {
        let (parent, name) = self.parent_to_change(path)?;
        match parent.remove_file(name) {
            Err(error) if error.is_not_found() => {}
            removed => removed?,
        }
        parent.create_link(target, name)
    }

    /// Sets the permission bits of a file or directory.
    pub(crate) fn set_mode(&mut self, path: &Path, node: &Node) -> Result<(), Error> {
        match node {
            Node::File { mode, .. } => {
                let (parent, name) = self.parent_to_change(path)?;
                parent.set_entry_mode(name, *mode)?;
                self.mode_changed.push(path.to_owned());
                Ok(())
            }
            Node::Directory { mode, .. } => {
                // At the end, since entries may have to be put into it.
                self.granted.insert(path.to_owned(), *mode);
                Ok(())
            }
            Node::Link { .. } | Node::LeftOut(_) => Ok(()),
        }
    }

    /// Removes an entry; a directory only if it is empty. Returns false if it is not. A missing one is fine.
    pub(crate) fn remove(&mut self, path: &Path, is_directory: bool) -> Result<bool, Error> {
        self.granted.remove(path);
        self.touched.remove(path);
        if self.parent.as_ref().is_some_and(|(open, _)| open == path) {
            self.parent = None;
        }
        let (parent, name) = match self.parent_to_change(path) {
            Err(error) if is_gone(error.problem()) => return Ok(true),
            opened => opened?,
        };
        let removed = if is_directory {
            let removed = parent.remove_directory(name);
            match &removed {
                Err(error) if is_occupied(error.problem()) => {
                    remove_unfinished_writes(parent, name, None)?;
                    parent.remove_directory(name)
                }
                _ => removed,
            }
        } else {
            parent.remove_file(name)
        };
        match removed {
            Ok(()) => Ok(true),
            Err(error) => match error.problem() {
                Problem::NotFound => Ok(true),
                problem if is_directory && is_occupied(problem) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Removes what a process that ended was writing in the directory of an entry.
    pub(crate) fn remove_leftovers(&mut self, path: &Path, process: u32) -> Result<(), Error> {
        match self.parent(path) {
            Err(error) if is_gone(error.problem()) => Ok(()),
            Err(error) => Err(error),
            Ok((parent, _)) => remove_unfinished_writes(parent, Path::new("."), Some(process)),
        }
    }

    /// Moves an entry to a name that is free.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let (target, target_name) = self.parent_to_change(to)?;
        let target = target.try_clone()?;
        let (source, name) = self.parent_to_change(from)?;
        source.rename_into(name, &target, target_name, Collision::Refuse)
    }

    /// Gives directories their modes, and syncs what was changed if that was asked for.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.commit_staged();
        self.parent = None;
        let (root, touched) = (self.root, std::mem::take(&mut self.touched));
        let mode_changed = std::mem::take(&mut self.mode_changed);
        self.sync_all(mode_changed, |path| {
            let parent = open_strict(root, path.parent().unwrap_or(Path::new("")))?;
            parent.sync_entry_file(Path::new(path.file_name().unwrap_or_default()))
        })?;
        let sync_directory =
            |path: &mut PathBuf| open_strict(root, path)?.sync_directory(Path::new("."));
        self.sync_all(touched.into_iter().collect(), sync_directory)?;
        let granted: Vec<_> = std::mem::take(&mut self.granted).into_iter().collect();
        // The deepest first: a directory without rights for its owner hides those below.
        for (path, mode) in granted.iter().rev() {
            if path.as_os_str().is_empty() {
                continue;
            }
            let (parent, name) = match self.parent(path) {
                Err(error) if is_gone(error.problem()) => continue,
                opened => opened?,
            };
            match parent.set_entry_mode(name, *mode) {
                Err(error) if is_gone(error.problem()) => {}
                set => set?,
            }
        }
        // Again, for the modes.
        self.sync_all(granted.into_iter().map(|(path, _)| path).collect(), sync_directory)
    }

    /// Syncs paths, if that was asked for. What is gone needs none, and what its owner may not read cannot be synced.
    fn sync_all(
        &self,
        mut paths: Vec<PathBuf>,
        sync: impl Fn(&mut PathBuf) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        if self.durability != Durability::Synced {
            return Ok(());
        }
        let synced = at_once(&mut paths, |path| match sync(path) {
            Err(error) if is_gone(error.problem()) => Ok(()),
            Err(error) if error.problem() == Problem::PermissionDenied => Ok(()),
            synced => synced,
        });
        synced.into_iter().collect()
    }
}

/// Syncs several files on a few threads: syncs that wait at the same time share a commit of the file system's journal
/// and a flush of the disk.
fn at_once<T: Send>(
    items: &mut [T],
    sync: impl Fn(&mut T) -> Result<(), Error> + Sync,
) -> Vec<Result<(), Error>> {
    let share = items.len().div_ceil(SYNC_THREADS).max(1);
    if items.len() == 1 {
        return items.iter_mut().map(sync).collect();
    }
    let sync = &sync;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items
            .chunks_mut(share)
            .map(|items| scope.spawn(move || items.iter_mut().map(sync).collect::<Vec<_>>()))
            .collect();
        let results = threads.into_iter().flat_map(|thread| match thread.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}

fn is_occupied(problem: Problem) -> bool {
    matches!(problem, Problem::NotEmpty | Problem::Exists)
}

/// Removes unfinished writes from a directory: all, or those of one process.
fn remove_unfinished_writes(parent: &Root, name: &Path, process: Option<u32>) -> Result<(), Error> {
    let directory = parent.open_root_strict(name)?;
    for entry in directory.list(Path::new("."))? {
        let writer = unfinished_write_pid(&entry.name);
        if writer.is_some() && (process.is_none() || writer == process) {
            match directory.remove_file(Path::new(&entry.name)) {
                Err(error) if error.is_not_found() => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

fn is_gone(problem: Problem) -> bool {
    matches!(problem, Problem::NotFound | Problem::NotADirectory | Problem::Link)
}

/// Returns the content's id of a file; `None` if it is changing or no regular file.
pub(crate) fn id_of(parent: &Root, name: &Path) -> Result<Option<ObjectId>, Error> {
    let file = match parent.open_entry_file(name) {
        Err(error) if is_gone(error.problem()) => return Ok(None),
        opened => opened?,
    };
    let Ok(metadata) = file.metadata() else { return Ok(None) };
    let content = read_if_unchanged(&file, &ChangeKey::of_open(&metadata));
    Ok(content.ok().flatten().map(|content| ObjectId::of(&content)))
}

/// Opens a directory below the workspace in steps of bounded length, without following links.
pub(crate) fn open_strict(root: &Root, path: &Path) -> Result<Root, Error> {
    let mut reached = root.try_clone()?;
    let mut step = PathBuf::new();
    for name in path {
        step.push(name);
        if step.as_os_str().len() > MAX_STEP_BYTES {
            reached = reached.open_root_strict(&step)?;
            step.clear();
        }
    }
    if step.as_os_str().is_empty() { Ok(reached) } else { reached.open_root_strict(&step) }
}

/// Returns a path in the form of recorded ones: relative, without `.` and `..`, and not below `.git`. `None` if it
/// is another one.
pub(crate) fn recorded_path(path: &Path) -> Option<PathBuf> {
    let names: Option<Vec<&OsStr>> = path
        .components()
        .filter(|component| *component != Component::CurDir)
        .map(|component| match component {
            Component::Normal(name) if name != REPOSITORY && !has_nul(name) => Some(name),
            _ => None,
        })
        .collect();
    names.map(|names| names.iter().collect())
}

fn has_nul(name: &OsStr) -> bool {
    name.as_bytes().contains(&0)
}
