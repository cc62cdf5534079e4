//! A directory on a walk, and what of it the walk goes on with.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::{Directory, Entry, FileKind, Metadata, Problem};

use crate::rules::{Present, Rules, Verdict};
use crate::scope::{Scope, last_name};
use crate::unreadable::ReadFailure;

/// The depth below the scope down to which directories are held open while something in them is
/// left to do. Deeper ones are opened again for each batch, so that no depth exhausts descriptors.
const MAX_HELD_DEPTH: usize = 16;

/// The most entries of one directory that a walk takes in; they are sorted in memory.
const MAX_DIRECTORY_ENTRIES: usize = 1 << 20;

/// The longest path that is opened in one step, well below what the kernel takes.
const MAX_STEP_BYTES: usize = 2048;

/// A directory on a walk.
#[derive(Debug)]
pub(crate) struct Node {
    /// Relative to the workspace's root.
    path: PathBuf,
    parent: Option<Arc<Node>>,
    depth: usize,
    held: Option<Directory>,
    rules: Option<Arc<Rules>>,
}

/// What a walk keeps of a directory: the entries that it visits and enters, in the order of names.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) node: Arc<Node>,
    pub(crate) entries: Vec<Entry>,
}

/// What a walk wants to visit, beyond what the scope leaves out.
pub(crate) trait Wanted: Sync {
    /// Tells whether a path is visited, or entered if it is a directory.
    fn wants(&self, path: &Path, kind: FileKind) -> bool;
}

impl Node {
    /// Lists the directory of a scope, which lies at `path`, with the rules of all directories
    /// above it.
    pub(crate) fn first(
        scope: &Scope<'_>,
        path: PathBuf,
        directory: Directory,
        wanted: &impl Wanted,
        unreadable: &mut Vec<ReadFailure>,
    ) -> Result<Expanded, carrel_fsroot::Error> {
        let rules = if scope.ignored { None } else { rules_above(scope, &path, unreadable)? };
        Self::list(scope, directory, path, None, rules.as_ref(), wanted, unreadable)
    }

    /// Enters a directory that was listed; `None` when it is gone by now.
    pub(crate) fn enter(
        self: &Arc<Self>,
        name: &OsStr,
        scope: &Scope<'_>,
        wanted: &impl Wanted,
        unreadable: &mut Vec<ReadFailure>,
    ) -> Option<Expanded> {
        let path = self.path.join(name);
        let opened = self.using(|directory| directory.directory(Path::new(name)));
        let expanded = opened.and_then(|directory| {
            let rules = self.rules.as_ref();
            let parent = Some(Arc::clone(self));
            Self::list(scope, directory, path.clone(), parent, rules, wanted, unreadable)
        });
        match expanded {
            Ok(expanded) => Some(expanded),
            Err(error) if vanished(error.problem()) => None,
            Err(error) => {
                unreadable.push(ReadFailure::of(path, &error));
                None
            }
        }
    }

    fn list(
        scope: &Scope<'_>,
        directory: Directory,
        path: PathBuf,
        parent: Option<Arc<Self>>,
        rules: Option<&Arc<Rules>>,
        wanted: &impl Wanted,
        unreadable: &mut Vec<ReadFailure>,
    ) -> Result<Expanded, carrel_fsroot::Error> {
        let (mut entries, all) = directory.entries(MAX_DIRECTORY_ENTRIES)?;
        if !all {
            let reason = format!("more than {MAX_DIRECTORY_ENTRIES} entries; the rest is left out");
            unreadable.push(ReadFailure::new(path.clone(), reason));
        }
        let rules = if scope.ignored {
            None
        } else {
            let mut present = Present::default();
            for entry in &entries {
                present.note(&entry.name);
            }
            Rules::read(rules, &directory, &path, present, unreadable)
        };
        keep(&mut entries, scope, &path, rules.as_deref(), wanted);
        let depth = parent.as_ref().map_or(0, |parent| parent.depth + 1);
        let held = (depth < MAX_HELD_DEPTH).then_some(directory);
        let node = Arc::new(Self { path, parent, depth, held, rules });
        Ok(Expanded { node, entries })
    }

    /// Returns the path of an entry.
    pub(crate) fn path_of(&self, entry: &Entry) -> PathBuf {
        self.path.join(&entry.name)
    }

    /// Returns how far below the scope the directory lies.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Opens a file of the directory for reading.
    pub(crate) fn open_file(&self, name: &OsStr) -> Result<(File, Metadata), carrel_fsroot::Error> {
        self.using(|directory| directory.open_file(Path::new(name)))
    }

    /// Does something with the open directory.
    pub(crate) fn using<T>(
        &self,
        act: impl FnOnce(&Directory) -> Result<T, carrel_fsroot::Error>,
    ) -> Result<T, carrel_fsroot::Error> {
        match &self.held {
            Some(directory) => act(directory),
            None => act(&self.reopen()?),
        }
    }

    /// Opens the directory again from the nearest one above that is still open.
    fn reopen(&self) -> Result<Directory, carrel_fsroot::Error> {
        let mut names = vec![last_name(&self.path)];
        let mut above = self.parent.as_deref();
        while let Some(node) = above {
            if let Some(directory) = &node.held {
                return descend(directory, &names);
            }
            names.push(last_name(&node.path));
            above = node.parent.as_deref();
        }
        unreachable!("the first directory of a walk is always held open")
    }
}

/// Goes down the names, the last of which comes first, a few at a time.
fn descend(from: &Directory, names: &[&OsStr]) -> Result<Directory, carrel_fsroot::Error> {
    let mut reached = None;
    let mut step = PathBuf::new();
    for name in names.iter().rev() {
        step.push(name);
        if step.as_os_str().len() > MAX_STEP_BYTES {
            reached = Some(reached.as_ref().unwrap_or(from).directory(&step)?);
            step.clear();
        }
    }
    // An empty step opens the directory that was reached once more.
    reached.as_ref().unwrap_or(from).directory(&step)
}

/// Reads the rules of the directories from the workspace's root down to the one above `path`.
fn rules_above(
    scope: &Scope<'_>,
    path: &Path,
    unreadable: &mut Vec<ReadFailure>,
) -> Result<Option<Arc<Rules>>, carrel_fsroot::Error> {
    let mut rules = None;
    let mut directory = scope.root.directory(Path::new(""))?;
    let mut base = PathBuf::new();
    for name in path {
        rules = Rules::read(rules.as_ref(), &directory, &base, Present::unknown(), unreadable);
        // What vanished meanwhile has no rules; the directory itself is open already.
        let Ok(next) = directory.directory(Path::new(name)) else { break };
        directory = next;
        base.push(name);
    }
    Ok(rules)
}

/// Keeps what the scope shows, the rules allow and the walk wants, in the order of names.
fn keep(
    entries: &mut Vec<Entry>,
    scope: &Scope<'_>,
    directory: &Path,
    rules: Option<&Rules>,
    wanted: &impl Wanted,
) {
    let mut path = directory.join("x");
    entries.retain(|entry| {
        if scope.leaves_out(&entry.name) {
            return false;
        }
        path.set_file_name(&entry.name);
        let is_directory = entry.kind == FileKind::Directory;
        let shown = match rules.map_or(Verdict::Silent, |rules| rules.judge(&path, is_directory)) {
            Verdict::Silent => !scope.hides(&entry.name),
            Verdict::Wanted => true,
            Verdict::Ignored => false,
        };
        shown && wanted.wants(&path, entry.kind)
    });
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    // A listing that is read during renames may hold a name twice.
    entries.dedup_by(|a, b| a.name == b.name);
}

/// Tells whether an entry is gone or became something else since it was listed.
pub(crate) fn vanished(problem: Problem) -> bool {
    match problem {
        Problem::NotFound
        | Problem::NotADirectory
        | Problem::IsADirectory
        | Problem::Link
        | Problem::LinkLoop
        | Problem::NotRegular(_) => true,
        Problem::Escapes(_)
        | Problem::Sensitive
        | Problem::Nul
        | Problem::NoName
        | Problem::Exists
        | Problem::NotEmpty
        | Problem::NameTooLong
        | Problem::TooLarge { .. }
        | Problem::CrossesMount
        | Problem::PermissionDenied
        | Problem::DiskFull
        | Problem::Contended
        | Problem::KernelTooOld
        | Problem::Io => false,
    }
}
