//! Removal of whole trees of any depth, size and mode.
//!
//! The tree may be hostile: a command made it and may still be changing it. Directories are opened
//! strictly, with no link and no mount point, and entries are unlinked by name in an open directory, so the
//! removal cannot leave the tree. Directories whose mode forbids it are made accessible first. A directory
//! that lies deeper than [`MAX_OPEN`] levels is renamed up to the top of the tree and removed from there, so
//! depth costs neither descriptors nor stack. Listings are read in batches and from the start each time.
//!
//! The removal goes on after an error and reports the first one. It is not atomic: after a crash a part of
//! the tree is left and the call can be repeated. Callers that need a clean cut rename the tree to the trash
//! first.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, SeekFrom, renameat_with, seek, unlinkat};
use rustix::io::Errno;

use crate::directory::{Entry, read_entries};
use crate::error::{Error, OnPath};
use crate::metadata::FileKind;
use crate::resolve;
use crate::root::Root;

/// The most directories that are open at once.
const MAX_OPEN: usize = 64;

/// The entries that are read from a directory at a time.
const BATCH: usize = 1024;

impl Root {
    /// Removes an entry and everything below it, without following links and without entering another
    /// mounted file system.
    ///
    /// Directories are made accessible to their owner first. An entry that cannot be removed stays,
    /// everything else is removed, and the first error is returned.
    pub fn remove_tree(&self, path: &Path) -> Result<(), Error> {
        let target = resolve::open_parent(self, path)?;
        let _acting = self.act_as_writer()?;
        let parent = target.parent.as_fd();
        match unlinkat(parent, &*target.name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            other => return other.on(path),
        }
        let mut removal = Removal { path, moved: 0, failure: None };
        let top = Level::open(parent, &target.name, path)?;
        removal.empty(top)?;
        if let Some(failure) = removal.failure {
            return Err(failure);
        }
        unlinkat(parent, &*target.name, AtFlags::REMOVEDIR).on(path)
    }
}

/// An open directory on the path down.
struct Level {
    directory: File,
    name: OsString,
    /// Entries that could not be removed.
    stuck: HashSet<OsString>,
}

struct Removal<'a> {
    path: &'a Path,
    moved: usize,
    failure: Option<Error>,
}

impl Removal<'_> {
    /// Removes the contents of a directory, depth first.
    fn empty(&mut self, top: Level) -> Result<(), Error> {
        let mut levels = vec![top];
        while let Some(level) = levels.last() {
            let batch = self.next_batch(level)?;
            if batch.is_empty() {
                self.leave(&mut levels);
                continue;
            }
            for entry in &batch {
                if self.remove_or_enter(entry, &mut levels) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns to the parent of a directory that has nothing left to remove.
    fn leave(&mut self, levels: &mut Vec<Level>) {
        let Some(done) = levels.pop() else { return };
        let Some(above) = levels.last_mut() else { return };
        let left = if done.stuck.is_empty() {
            unlinkat(&above.directory, &done.name, AtFlags::REMOVEDIR)
        } else {
            Err(Errno::NOTEMPTY)
        };
        match left {
            Ok(()) | Err(Errno::NOENT) => {}
            // Another process created entries meanwhile: the next batch of the parent lists it again.
            Err(Errno::NOTEMPTY) if done.stuck.is_empty() => {}
            Err(errno) => self.give_up(above, &done.name, Error::from_errno(self.path, errno)),
        }
    }

    /// Unlinks an entry, or opens it as the next level; returns whether it did the latter.
    fn remove_or_enter(&mut self, entry: &Entry, levels: &mut Vec<Level>) -> bool {
        let too_deep = levels.len() >= MAX_OPEN;
        let Some(level) = levels.last_mut() else { return false };
        match unlink(level.directory.as_fd(), entry) {
            Ok(()) => return false,
            // A directory with entries has to be emptied first.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS | Errno::PERM)
                if entry.kind == FileKind::Directory => {}
            Err(errno) => {
                self.give_up(level, &entry.name, Error::from_errno(self.path, errno));
                return false;
            }
        }
        match Level::open(level.directory.as_fd(), &entry.name, self.path) {
            Ok(_) if too_deep => {
                self.move_up(&entry.name, levels);
                false
            }
            Ok(below) => {
                levels.push(below);
                true
            }
            Err(error) => {
                self.give_up(level, &entry.name, error);
                false
            }
        }
    }

    /// Moves a directory from the deepest level to the top one, whose next batch lists it.
    fn move_up(&mut self, name: &OsStr, levels: &mut [Level]) {
        let [top, .., deepest] = levels else { return };
        loop {
            self.moved += 1;
            let target = format!(".carrel-removing-{}", self.moved);
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(&deepest.directory, name, &top.directory, target, flags) {
                Ok(()) => return,
                Err(Errno::EXIST) => {}
                Err(errno) => {
                    return self.give_up(deepest, name, Error::from_errno(self.path, errno));
                }
            }
        }
    }

    fn give_up(&mut self, level: &mut Level, name: &OsStr, error: Error) {
        level.stuck.insert(name.to_owned());
        self.failure.get_or_insert(error);
    }

    /// Reads entries from the start of a directory, without the stuck ones.
    ///
    /// It starts over each time, because POSIX does not define the position in a directory after an entry
    /// was unlinked.
    fn next_batch(&self, level: &Level) -> Result<Vec<Entry>, Error> {
        let failed = |errno| Error::from_errno(self.path, errno);
        seek(&level.directory, SeekFrom::Start(0)).map_err(failed)?;
        let mut batch =
            read_entries(level.directory.as_fd(), BATCH + level.stuck.len()).map_err(failed)?;
        batch.retain(|entry| !level.stuck.contains(&entry.name));
        Ok(batch)
    }
}

/// Removes a file or an empty directory. An entry that has vanished is fine.
fn unlink(parent: BorrowedFd<'_>, entry: &Entry) -> Result<(), Errno> {
    let as_directory = entry.kind == FileKind::Directory;
    let flags = if as_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(parent, &entry.name, flags) {
        Err(Errno::NOENT) => Ok(()),
        // Its type changed since it was listed; the next batch lists it again.
        Err(Errno::ISDIR) if !as_directory => Ok(()),
        Err(Errno::NOTDIR) if as_directory => Ok(()),
        other => other,
    }
}

impl Level {
    /// Opens a directory and gives its owner the right to read, write and enter it.
    fn open(parent: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<Self, Error> {
        let shown = |error: Error| Error::new(path, error.problem());
        let open = |parent, name, flags| {
            let flags = flags | OFlags::DIRECTORY;
            resolve::open_strict(parent, name, flags, Mode::empty()).map_err(shown)
        };
        let handle = Root::from_descriptor(open(parent, Path::new(name), OFlags::PATH)?);
        handle.grant_owner_access().map_err(shown)?;
        let directory = File::from(open(handle.as_fd(), Path::new("."), OFlags::RDONLY)?);
        Ok(Self { directory, name: name.to_owned(), stuck: HashSet::new() })
    }
}
