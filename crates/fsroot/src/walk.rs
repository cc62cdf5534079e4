//! Visiting every entry of a tree.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use crate::directory::{Entry, sorted_entries};
use crate::error::{Error, Problem};
use crate::metadata::{FileKind, Metadata};
use crate::resolve;
use crate::root::{Identity, Root, stat};

/// How many directories a walk holds open at once. Those above are closed and reached
/// again through `..` on the way back, so no depth can exhaust descriptors.
const MAX_OPEN: usize = 64;

/// One entry on a walk.
#[derive(Debug)]
pub struct WalkEntry<'a> {
    /// The path from where the walk began.
    pub path: &'a Path,
    /// What the entry is.
    pub kind: FileKind,
    parent: BorrowedFd<'a>,
    entry: &'a Entry,
}

impl WalkEntry<'_> {
    /// Asks for more about the entry; `None` when it is gone by now.
    pub fn metadata(&self) -> Result<Option<Metadata>, Error> {
        match statat(self.parent, &self.entry.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Metadata::from(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::from_errno(self.path, errno)),
        }
    }
}

/// What a walk does after a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkControl {
    /// Goes on, into the entry if it is a directory.
    Continue,
    /// Goes on, but not into this entry.
    Skip,
    /// Ends the walk.
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
    /// Links are visited and not followed. Another mounted file system is visited
    /// and not entered. What vanishes during the walk is left out. A directory that
    /// cannot be read is handed to `unreadable` and the walk goes on, at any depth.
    pub fn walk(
        &self,
        path: &Path,
        visit: impl FnMut(&WalkEntry<'_>) -> Result<WalkControl, Error>,
        unreadable: impl FnMut(Error) -> Result<(), Error>,
    ) -> Result<(), Error> {
        walk_open(self.reopen(path)?, path, visit, unreadable)
    }
}

/// Walks from a directory that is open already.
pub(crate) fn walk_open(
    directory: File,
    path: &Path,
    mut visit: impl FnMut(&WalkEntry<'_>) -> Result<WalkControl, Error>,
    mut unreadable: impl FnMut(Error) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut levels = vec![enter(directory, path)?];
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
        let step = visit(&WalkEntry { path: &current, kind: entry.kind, parent, entry: &entry })?;
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

/// Goes one level down, and closes what lies too far above to be kept open.
fn push(levels: &mut Vec<Level>, level: Level) {
    levels.push(level);
    if let Some(far) = levels.len().checked_sub(MAX_OPEN + 1) {
        levels[far].directory = None;
    }
}

/// Goes one level up, and opens it again if it was closed.
fn leave(levels: &mut Vec<Level>, path: &Path) -> Result<(), Error> {
    let left = levels.pop();
    let (Some(left), Some(level)) = (left.and_then(|left| left.directory), levels.last_mut())
    else {
        return Ok(());
    };
    if level.directory.is_none() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = openat(&left, "..", flags, Mode::empty())
            .map_err(|errno| Error::from_errno(path, errno))?;
        // A directory that was moved meanwhile has another parent, which is none of ours.
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
            // It vanished, or became something else, since it was listed.
            Problem::NotFound | Problem::NotADirectory | Problem::Link | Problem::CrossesMount => {
                Ok(None)
            }
            problem => Err(Error::new(path, problem)),
        },
    }
}

/// Enters a directory, which may have been removed since it was opened: it cannot be listed then.
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
