//! Listing and creating directories.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, RawDir, mkdirat};
use rustix::io::Errno;

use crate::error::{Error, OnPath, Problem};
use crate::metadata::{FileKind, Metadata};
use crate::owner;
use crate::resolve;
use crate::root::Root;

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name, which need not be UTF-8.
    pub name: OsString,
    /// The type of the entry itself; links are not followed.
    pub kind: FileKind,
}

/// The bytes of a directory that one system call reads.
const LIST_BUFFER: usize = 16 * 1024;

impl Root {
    /// Lists a directory, sorted by name.
    pub fn list(&self, path: &Path) -> Result<Vec<Entry>, Error> {
        sorted_entries(&self.reopen(path)?, path)
    }

    /// Lists at most `limit` entries of a directory, sorted by name; `None` if there are more, so that a
    /// directory of any size takes bounded time and memory.
    pub fn list_at_most(&self, path: &Path, limit: usize) -> Result<Option<Vec<Entry>>, Error> {
        let directory = self.reopen(path)?;
        let mut entries = read_entries(directory.as_fd(), limit.saturating_add(1)).on(path)?;
        entries.sort_unstable();
        Ok((entries.len() <= limit).then_some(entries))
    }

    /// Creates one directory, whose parent must exist. An existing path is an error.
    pub fn create_directory(&self, path: &Path, mode: u32) -> Result<(), Error> {
        let target = resolve::open_parent(self, path)?;
        let _acting = self.act_as_writer()?;
        mkdirat(&target.parent, &*target.name, Mode::from_raw_mode(mode))
            .and_then(|()| owner::inherit_directory_owner(&target))
            .on(path)
    }

    /// Creates a directory and its missing parents. An existing directory is fine.
    ///
    /// Each prefix is resolved by the kernel, so a missing path cannot leave the root either.
    pub fn create_directories(&self, path: &Path, mode: u32) -> Result<(), Error> {
        match self.open_directory(path) {
            Err(error) if error.is_not_found() => {}
            other => return other,
        }
        // Usually only the last one is missing.
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
            // Another process created it meanwhile; it must still be a directory inside the root.
            Err(error) if error.problem() == Problem::Exists => self.open_directory(prefix),
            other => other,
        }
    }

    fn open_directory(&self, path: &Path) -> Result<(), Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        resolve::open(self, path, flags).map(drop)
    }
}

/// Reads a whole open directory, sorted by name.
pub(crate) fn sorted_entries(directory: &File, path: &Path) -> Result<Vec<Entry>, Error> {
    let mut entries = read_entries(directory.as_fd(), usize::MAX).on(path)?;
    entries.sort_unstable();
    Ok(entries)
}

/// Reads entries of an open directory from its current position, at least `limit` if there are that many
/// and at most one more buffer.
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

/// Returns the type of an entry, by `stat` on file systems that leave it out of listings; `None` if the
/// entry has vanished.
fn kind_of(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    listed: FileType,
) -> Result<Option<FileKind>, Errno> {
    if listed != FileType::Unknown {
        return Ok(Some(listed.into()));
    }
    match Metadata::of_entry(directory, name) {
        Err(Errno::NOENT) => Ok(None),
        found => found.map(|metadata| Some(metadata.kind)),
    }
}
