//! An open directory for walks that their caller directs.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::directory::{Entry, read_entries};
use crate::error::{Error, OnPath, Problem};
use crate::metadata::Metadata;
use crate::read::{READ, regular};
use crate::resolve;
use crate::root::{Root, stat};

/// A directory that is open for reading, for walks that their caller directs.
///
/// Entries are opened beneath it without following links or crossing mount points, so a link that replaced
/// an entry since it was listed is refused. Opening by one name in an open directory also saves the kernel
/// the resolution from the root for every file.
#[derive(Debug)]
pub struct Directory {
    file: File,
    access: Access,
}

/// The use for which a directory was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    List,
    /// Names can be looked up and opened; for listing it is opened again.
    LookUp,
}

impl Root {
    /// Opens a directory for a walk, following links that stay inside.
    pub fn directory(&self, path: &Path) -> Result<Directory, Error> {
        self.reopen(path).map(Directory::new)
    }
}

impl Directory {
    pub(crate) fn new(file: File) -> Self {
        Self { file, access: Access::List }
    }

    /// Opens a directory below this one, which keeps working after this one is dropped.
    pub fn directory(&self, path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        resolve::open_strict(self.file.as_fd(), path, flags, Mode::empty())
            .map(|directory| Self::new(File::from(directory)))
    }

    /// Opens a directory below this one for looking names up, which is cheaper than [`directory`](Self::directory)
    /// if it is not listed afterwards, and needs no permission to read it.
    pub fn look_up(&self, path: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        resolve::open_strict(self.file.as_fd(), path, flags, Mode::empty())
            .map(|directory| Self { file: File::from(directory), access: Access::LookUp })
    }

    /// Opens a regular file below this directory for reading. Other types of files are an error.
    pub fn open_file(&self, path: &Path) -> Result<(File, Metadata), Error> {
        let file = resolve::open_strict(self.file.as_fd(), path, READ, Mode::empty())?;
        regular(file, path)
    }

    /// Lists at most `limit` entries in no particular order, and returns whether they are all, so that a
    /// directory of any size takes bounded time and memory.
    pub fn entries(&self, limit: usize) -> Result<(Vec<Entry>, bool), Error> {
        if self.access == Access::LookUp {
            return self.directory(Path::new("."))?.entries(limit);
        }
        (&self.file).seek(SeekFrom::Start(0)).on(Path::new(""))?;
        let mut entries =
            read_entries(self.file.as_fd(), limit.saturating_add(1)).on(Path::new(""))?;
        let all = entries.len() <= limit;
        entries.truncate(limit);
        Ok((entries, all))
    }

    /// Returns the metadata of the directory itself.
    pub fn metadata(&self) -> Result<Metadata, Error> {
        stat(self.file.as_fd(), Path::new(""))
    }

    /// Returns the metadata of an entry itself, which may be a link.
    pub fn link_metadata(&self, name: &Path) -> Result<Metadata, Error> {
        one_name(name)?;
        Metadata::of_entry(&self.file, name.as_os_str()).on(name)
    }

    /// Returns the target of a link, which may be outside the root.
    pub fn read_link(&self, name: &Path) -> Result<PathBuf, Error> {
        one_name(name)?;
        resolve::read_link_at(self.file.as_fd(), name.as_os_str()).on(name)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Rejects paths of several components, because `statat` does not resolve beneath.
fn one_name(path: &Path) -> Result<(), Error> {
    if resolve::is_one_name(path) { Ok(()) } else { Err(Error::new(path, Problem::NoName)) }
}
