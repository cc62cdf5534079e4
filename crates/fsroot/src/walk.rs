//! Visiting every entry of a tree.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, statat};
use rustix::io::Errno;

use crate::directory::{Entry, sorted_entries};
use crate::error::{Error, Problem};
use crate::metadata::{FileKind, Metadata};
use crate::resolve;
use crate::root::Root;

/// How deep a walk follows directories: one descriptor is held open for each level.
pub const MAX_DEPTH: usize = 256;

/// One entry on a walk.
#[derive(Debug)]
pub struct Visit<'a> {
    /// The path from where the walk began.
    pub path: &'a Path,
    /// What the entry is.
    pub kind: FileKind,
    parent: BorrowedFd<'a>,
    entry: &'a Entry,
}

impl Visit<'_> {
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
pub enum Step {
    /// Goes on, into the entry if it is a directory.
    Continue,
    /// Goes on, but not into this entry.
    Skip,
    /// Ends the walk.
    Stop,
}

struct Level {
    directory: File,
    entries: std::vec::IntoIter<Entry>,
}

impl Root {
    /// Visits everything below a directory, parents first, in the order of names.
    ///
    /// Links are visited and not followed. Another mounted file system is visited
    /// and not entered. What vanishes during the walk is left out. A directory that
    /// cannot be read, or lies too deep, is handed to `unreadable` and the walk goes on.
    pub fn walk(
        &self,
        path: &Path,
        visit: impl FnMut(&Visit<'_>) -> Result<Step, Error>,
        unreadable: impl FnMut(Error) -> Result<(), Error>,
    ) -> Result<(), Error> {
        walk_open(self.reopen(path)?, path, visit, unreadable)
    }
}

/// Walks from a directory that is open already.
pub(crate) fn walk_open(
    directory: File,
    path: &Path,
    mut visit: impl FnMut(&Visit<'_>) -> Result<Step, Error>,
    mut unreadable: impl FnMut(Error) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut levels = vec![enter(directory, path)?];
    let mut current = PathBuf::new();
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { return Ok(()) };
        let Some(entry) = level.entries.next() else {
            levels.pop();
            current.pop();
            continue;
        };
        current.push(&entry.name);
        let parent = level.directory.as_fd();
        let step = visit(&Visit { path: &current, kind: entry.kind, parent, entry: &entry })?;
        match step {
            Step::Stop => return Ok(()),
            Step::Continue if entry.kind == FileKind::Directory => {
                match descend(parent, &entry, &current, depth) {
                    Ok(Some(level)) => {
                        levels.push(level);
                        continue;
                    }
                    Ok(None) => {}
                    Err(error) => unreadable(error)?,
                }
            }
            Step::Continue | Step::Skip => {}
        }
        current.pop();
    }
}

fn descend(
    parent: BorrowedFd<'_>,
    entry: &Entry,
    path: &Path,
    depth: usize,
) -> Result<Option<Level>, Error> {
    if depth >= MAX_DEPTH {
        return Err(Error::new(path, Problem::TooDeep));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match resolve::open_strict(parent, Path::new(&entry.name), flags, Mode::empty()) {
        Ok(directory) => enter(File::from(directory), path).map(Some),
        Err(error) => match error.problem() {
            // It vanished, or became something else, since it was listed.
            Problem::NotFound | Problem::NotADirectory | Problem::Link | Problem::CrossesMount => {
                Ok(None)
            }
            problem => Err(Error::new(path, problem)),
        },
    }
}

fn enter(directory: File, path: &Path) -> Result<Level, Error> {
    let entries = sorted_entries(&directory, path)?.into_iter();
    Ok(Level { directory, entries })
}
