//! The files of a store, behind one interface.
//!
//! Everything that a store keeps passes through [`Disk`], in steps that are system calls: so a test records the
//! steps, drops the ones that were not synced, and opens what a power loss would have left.

use std::collections::HashMap;
use std::fmt::Debug;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use carrel_domain::sync;
use carrel_fsroot::{Collision, FileKind, Root};

use crate::error::StorageError;

/// Only the server reads what is in a store: it has the contents of sensitive files too.
const FILE_MODE: u32 = 0o600;

/// The end of the names of files that are being written.
pub(crate) const UNFINISHED: &str = ".tmp";

/// The files of one flat directory.
pub(crate) trait Disk: Debug + Send + Sync {
    /// Returns the names of all files.
    fn list(&self) -> Result<Vec<String>, StorageError>;

    /// Returns the length of a file; `None` if there is none.
    fn length(&self, name: &str) -> Result<Option<u64>, StorageError>;

    /// Fills a buffer from a file; returns false if the file ends before.
    fn read_at(&self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<bool, StorageError>;

    /// Writes to a file, which is created if it is missing.
    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StorageError>;

    /// Sets the length of a file, which is created if it is missing.
    fn truncate(&self, name: &str, length: u64) -> Result<(), StorageError>;

    /// Waits until the contents of a file would survive a power loss.
    fn sync(&self, name: &str) -> Result<(), StorageError>;

    /// Renames a file and replaces its target.
    fn rename(&self, from: &str, to: &str) -> Result<(), StorageError>;

    /// Removes a file. One that is missing is fine.
    fn remove(&self, name: &str) -> Result<(), StorageError>;

    /// Waits until the names of all files would survive a power loss.
    fn sync_names(&self) -> Result<(), StorageError>;
}

/// Reads a whole file; `None` if there is none.
pub(crate) fn read(disk: &dyn Disk, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
    let Some(length) = disk.length(name)? else { return Ok(None) };
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    Ok(disk.read_at(name, 0, &mut bytes)?.then_some(bytes))
}

/// Replaces a file atomically and durably: it is written beside, synced and renamed, and its name is synced.
pub(crate) fn replace(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
    let unfinished = write_beside(disk, name, bytes)?;
    disk.sync(&unfinished)?;
    disk.rename(&unfinished, name)?;
    disk.sync_names()
}

/// Replaces a file atomically for readers. After a power loss its contents may be anything, so this is for files
/// with a checksum that can be made again.
pub(crate) fn replace_cache(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
    let unfinished = write_beside(disk, name, bytes)?;
    disk.rename(&unfinished, name)
}

/// Writes what is to replace a file, unsynced, and returns its name.
pub(crate) fn write_beside(
    disk: &dyn Disk,
    name: &str,
    bytes: &[u8],
) -> Result<String, StorageError> {
    let unfinished = format!("{name}{UNFINISHED}");
    disk.truncate(&unfinished, 0)?;
    disk.write_at(&unfinished, 0, bytes)?;
    Ok(unfinished)
}

/// A disk that remembers failures. What is in memory of a store may differ from its files after one.
#[derive(Debug)]
pub(crate) struct Watched {
    disk: Arc<dyn Disk>,
    has_failed: AtomicBool,
}

impl Watched {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, has_failed: AtomicBool::new(false) }
    }

    /// Returns whether a change failed since this was last asked.
    pub(crate) fn take_failure(&self) -> bool {
        self.has_failed.swap(false, Ordering::Relaxed)
    }

    fn note<T>(&self, changed: Result<T, StorageError>) -> Result<T, StorageError> {
        if changed.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        changed
    }
}

impl Disk for Watched {
    fn list(&self) -> Result<Vec<String>, StorageError> {
        self.disk.list()
    }

    fn length(&self, name: &str) -> Result<Option<u64>, StorageError> {
        self.disk.length(name)
    }

    fn read_at(&self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<bool, StorageError> {
        self.disk.read_at(name, offset, buffer)
    }

    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        self.note(self.disk.write_at(name, offset, bytes))
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), StorageError> {
        self.note(self.disk.truncate(name, length))
    }

    fn sync(&self, name: &str) -> Result<(), StorageError> {
        self.note(self.disk.sync(name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        self.note(self.disk.rename(from, to))
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.note(self.disk.remove(name))
    }

    fn sync_names(&self) -> Result<(), StorageError> {
        self.note(self.disk.sync_names())
    }
}

/// The files of a directory of the server.
#[derive(Debug)]
pub(crate) struct ServerDisk {
    root: Root,
    open: Mutex<HashMap<String, Arc<File>>>,
}

impl ServerDisk {
    pub(crate) fn new(root: Root) -> Self {
        Self { root, open: Mutex::default() }
    }

    fn file(&self, name: &str) -> Result<Arc<File>, StorageError> {
        let mut open = sync::lock(&self.open);
        if let Some(file) = open.get(name) {
            return Ok(Arc::clone(file));
        }
        let file = self.root.open_or_create(Path::new(name), FILE_MODE)?;
        let file = Arc::new(file);
        open.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    /// Closes the handles of files that another process may have replaced.
    pub(crate) fn forget(&self) {
        sync::lock(&self.open).clear();
    }
}

impl Disk for ServerDisk {
    fn list(&self) -> Result<Vec<String>, StorageError> {
        let entries = self.root.list(Path::new("."))?;
        let files = entries.into_iter().filter(|entry| entry.kind == FileKind::File);
        Ok(files.filter_map(|entry| entry.name.into_string().ok()).collect())
    }

    fn length(&self, name: &str) -> Result<Option<u64>, StorageError> {
        if let Some(file) = sync::lock(&self.open).get(name) {
            return Ok(Some(file.metadata().map_err(StorageError::io(name))?.len()));
        }
        match self.root.link_metadata(Path::new(name)) {
            Ok(metadata) => Ok((metadata.kind == FileKind::File).then_some(metadata.size)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn read_at(&self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<bool, StorageError> {
        match self.file(name)?.read_exact_at(buffer, offset) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            read => read.map(|()| true).map_err(StorageError::io(name)),
        }
    }

    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        self.file(name)?.write_all_at(bytes, offset).map_err(StorageError::io(name))
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), StorageError> {
        self.file(name)?.set_len(length).map_err(StorageError::io(name))
    }

    fn sync(&self, name: &str) -> Result<(), StorageError> {
        self.file(name)?.sync_data().map_err(StorageError::io(name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let mut open = sync::lock(&self.open);
        open.remove(from);
        open.remove(to);
        drop(open);
        Ok(self.root.rename(Path::new(from), Path::new(to), Collision::Replace)?)
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        sync::lock(&self.open).remove(name);
        match self.root.remove_file(Path::new(name)) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => Ok(removed?),
        }
    }

    fn sync_names(&self) -> Result<(), StorageError> {
        Ok(self.root.sync_directory(Path::new("."))?)
    }
}
