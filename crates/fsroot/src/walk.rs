//! A walk over every entry of a tree, in the order of names.
//!
//! The tree may change during the walk, and its owner may be hostile. Directories are opened strictly by
//! name in their open parent, so a directory that was replaced by a link is skipped instead of followed.
//! Entries that vanish are left out, unreadable directories are reported to a callback, and neither stops
//! the walk.
//!
//! The walk keeps its own stack, and at most [`MAX_OPEN`] directories are open. Directories further up are
//! closed and reopened through `..` on the way back. A directory that was moved meanwhile has another
//! parent; so the reopened one is compared by device and inode, and a difference ends the walk with
//! [`Problem::Contended`] before it leaves the tree.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use crate::directory::{Entry, sorted_entries};
use crate::error::{Error, OnPath, Problem};
use crate::metadata::{FileKind, Metadata};
use crate::resolve;
use crate::root::{Identity, Root, stat};

/// The most directories that are open at once.
const MAX_OPEN: usize = 64;

/// An entry that a walk visits.
#[derive(Debug)]
pub struct WalkEntry<'a> {
    /// The path, relative to the start of the walk.
    pub path: &'a Path,
    /// The type of the entry; links are not followed.
    pub kind: FileKind,
    parent: BorrowedFd<'a>,
    entry: &'a Entry,
}

impl WalkEntry<'_> {
    /// Returns the metadata of the entry; `None` if it has vanished.
    pub fn metadata(&self) -> Result<Option<Metadata>, Error> {
        match Metadata::of_entry(self.parent, &self.entry.name) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(Some).on(self.path),
        }
    }
}

/// The decision of a visitor about the rest of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkControl {
    /// Continue, and enter the entry if it is a directory.
    Continue,
    /// Continue without entering this entry.
    Skip,
    /// End the walk.
    Stop,
}

struct Level {
    /// Closed while the walk is far below.
    directory: Option<File>,
    identity: Identity,
    entries: std::vec::IntoIter<Entry>,
}

impl Root {
    /// Visits everything below a directory, parents first, in the order of names.
    ///
    /// Links are visited and not followed. A mount point is visited and not entered. The error of a
    /// directory that cannot be read goes to `unreadable`, and the walk continues unless that returns an
    /// error.
    pub fn walk(
        &self,
        path: &Path,
        mut visit: impl FnMut(&WalkEntry<'_>) -> Result<WalkControl, Error>,
        mut unreadable: impl FnMut(Error) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut levels = vec![enter(self.reopen(path)?, path)?];
        let mut current = PathBuf::new();
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                leave(&mut levels, path)?;
                current.pop();
                continue;
            };
            current.push(&entry.name);
            let Some(directory) = &level.directory else { return Err(moved(path)) };
            let parent = directory.as_fd();
            let step =
                visit(&WalkEntry { path: &current, kind: entry.kind, parent, entry: &entry })?;
            match step {
                WalkControl::Stop => return Ok(()),
                WalkControl::Continue if entry.kind == FileKind::Directory => {
                    match descend(parent, &entry, &current) {
                        Ok(Some(level)) => {
                            push(&mut levels, level);
                            continue;
                        }
                        Ok(None) => {}
                        Err(error) => unreadable(error)?,
                    }
                }
                WalkControl::Continue | WalkControl::Skip => {}
            }
            current.pop();
        }
        Ok(())
    }
}

/// Adds a level, and closes the directory that is [`MAX_OPEN`] levels above it.
fn push(levels: &mut Vec<Level>, level: Level) {
    levels.push(level);
    if let Some(far) = levels.len().checked_sub(MAX_OPEN + 1) {
        levels[far].directory = None;
    }
}

/// Returns to the parent level, and reopens it if it was closed.
fn leave(levels: &mut Vec<Level>, path: &Path) -> Result<(), Error> {
    let left = levels.pop();
    let (Some(left), Some(level)) = (left.and_then(|left| left.directory), levels.last_mut())
    else {
        return Ok(());
    };
    if level.directory.is_none() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = openat(&left, "..", flags, Mode::empty()).on(path)?;
        // A directory that was moved meanwhile has another parent, outside this walk.
        if stat(above.as_fd(), path)?.identity != level.identity {
            return Err(moved(path));
        }
        level.directory = Some(File::from(above));
    }
    Ok(())
}

fn moved(path: &Path) -> Error {
    Error::new(path, Problem::Contended)
}

fn descend(parent: BorrowedFd<'_>, entry: &Entry, path: &Path) -> Result<Option<Level>, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match resolve::open_strict(parent, Path::new(&entry.name), flags, Mode::empty()) {
        Ok(directory) => enter_if_there(File::from(directory), path),
        Err(error) => match error.problem() {
            // It vanished or changed its type since it was listed.
            Problem::NotFound | Problem::NotADirectory | Problem::Link | Problem::CrossesMount => {
                Ok(None)
            }
            problem => Err(Error::new(path, problem)),
        },
    }
}

/// Lists a directory; `None` if it was removed since it was opened, which makes listing fail.
fn enter_if_there(directory: File, path: &Path) -> Result<Option<Level>, Error> {
    match enter(directory, path) {
        Err(error) if error.problem() == Problem::NotFound => Ok(None),
        entered => entered.map(Some),
    }
}

fn enter(directory: File, path: &Path) -> Result<Level, Error> {
    let entries = sorted_entries(&directory, path)?.into_iter();
    let identity = stat(directory.as_fd(), path)?.identity;
    Ok(Level { directory: Some(directory), identity, entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test lays out its own files")]
    fn a_directory_that_is_removed_after_it_was_opened_is_left_out() {
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("gone");
        std::fs::create_dir(&path).unwrap();
        let open = || File::open(&path).unwrap();
        assert!(enter_if_there(open(), &path).unwrap().is_some());
        let opened = open();
        std::fs::remove_dir(&path).unwrap();
        assert!(enter_if_there(opened, &path).unwrap().is_none());
    }
}
