//! Listing and making directories.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, mkdirat, statat};
use rustix::io::Errno;

use crate::error::{Error, Problem};
use crate::metadata::FileKind;
use crate::owner;
use crate::resolve;
use crate::root::Root;

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name, which need not be text.
    pub name: OsString,
    /// What it is; a link is a link, wherever it points.
    pub kind: FileKind,
}

/// How much of a directory is read with one system call.
const LIST_BUFFER: usize = 16 * 1024;

impl Root {
    /// Lists a directory in the order of names.
    pub fn list(&self, path: &Path) -> Result<Vec<Entry>, Error> {
        sorted_entries(&self.reopen(path)?, path)
    }

    /// Lists at most `limit` entries of a directory in the order of names; `None` when
    /// there are more, so that a directory of any size takes bounded time and memory.
    pub fn list_at_most(&self, path: &Path, limit: usize) -> Result<Option<Vec<Entry>>, Error> {
        let directory = self.reopen(path)?;
        let mut entries = read_entries(directory.as_fd(), limit.saturating_add(1))
            .map_err(|errno| Error::from_errno(path, errno))?;
        entries.sort_unstable();
        Ok((entries.len() <= limit).then_some(entries))
    }

    /// Makes one directory; it is an error if something is there already.
    pub fn create_directory(&self, path: &Path, mode: u32) -> Result<(), Error> {
        let place = resolve::open_parent(self.as_fd(), path)?;
        mkdirat(&place.parent, place.name, Mode::from_raw_mode(mode))
            .and_then(|()| owner::give_directory(&place))
            .map_err(|errno| Error::from_errno(path, errno))
    }

    /// Makes a directory and those above it, as far as they are missing.
    ///
    /// Everything up to the nearest existing parent is resolved by the kernel, so
    /// a missing path is held to the same boundary as an existing one.
    pub fn create_directories(&self, path: &Path, mode: u32) -> Result<(), Error> {
        match self.open_directory(path) {
            Err(error) if error.is_not_found() => {}
            other => return other,
        }
        // Mostly it is only the last one.
        match self.create_missing(path, mode) {
            Err(error) if error.is_not_found() => {}
            other => return other,
        }
        let mut prefix = PathBuf::new();
        for component in path.components() {
            prefix.push(component);
            match self.open_directory(&prefix) {
                Err(error) if error.is_not_found() => self.create_missing(&prefix, mode)?,
                other => other?,
            }
        }
        Ok(())
    }

    fn create_missing(&self, prefix: &Path, mode: u32) -> Result<(), Error> {
        match self.create_directory(prefix, mode) {
            // Somebody else was faster; what is there must still be a directory inside.
            Err(error) if error.problem() == Problem::Exists => self.open_directory(prefix),
            other => other,
        }
    }

    fn open_directory(&self, path: &Path) -> Result<(), Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        resolve::open(self.as_fd(), path, flags, Mode::empty()).map(drop)
    }
}

/// Reads a whole open directory in the order of names.
pub(crate) fn sorted_entries(directory: &File, path: &Path) -> Result<Vec<Entry>, Error> {
    let mut entries = read_entries(directory.as_fd(), usize::MAX)
        .map_err(|errno| Error::from_errno(path, errno))?;
    entries.sort_unstable();
    Ok(entries)
}

/// Reads at most about `limit` entries of an open directory, from its present position on.
pub(crate) fn read_entries(directory: BorrowedFd<'_>, limit: usize) -> Result<Vec<Entry>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); LIST_BUFFER];
    let mut reader = RawDir::new(directory, &mut buffer);
    let mut entries = Vec::new();
    while let Some(entry) = reader.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if let Some(kind) = kind_of(directory, name, entry.file_type())? {
            entries.push(Entry { name: name.to_owned(), kind });
        }
        if entries.len() >= limit && reader.is_buffer_empty() {
            break;
        }
    }
    Ok(entries)
}

/// Some file systems leave the kind out of the listing; `None` when the entry is gone by now.
fn kind_of(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    listed: FileType,
) -> Result<Option<FileKind>, Errno> {
    if listed != FileType::Unknown {
        return Ok(Some(listed.into()));
    }
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode).into())),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}
