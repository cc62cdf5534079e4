//! The view of a root without sensitive names, for interfaces that let a caller browse.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::OFlags;

use crate::directory::{Entry, sorted_entries};
use crate::error::{Error, Problem};
use crate::metadata::Metadata;
use crate::open_directory::Directory;
use crate::read::read_whole;
use crate::resolve;
use crate::root::{Root, stat};
use crate::sensitive::{has_sensitive_component, is_sensitive};
use crate::write::{AtomicFile, WriteOptions};

/// A view of a [`Root`] that refuses sensitive names and leaves them out of listings.
///
/// The real path of the opened file is checked, not only the given one: a link to `.ssh` is refused like
/// `.ssh` itself. A hard link or a copy under another name is another file and is not covered.
///
/// This protects against showing credentials by accident, not against a command that wants to read them: a
/// command of the workspace reads its files without this view.
#[derive(Clone, Copy, Debug)]
pub struct Browser<'a> {
    root: &'a Root,
}

impl Root {
    /// Returns the view without sensitive names.
    pub fn browse(&self) -> Browser<'_> {
        Browser { root: self }
    }
}

impl Browser<'_> {
    /// Reads a whole regular file of at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
        let (file, metadata) = self.open_file(path)?;
        read_whole(&file, &metadata, limit, path)
    }

    /// Returns the metadata of the file at a path, following links.
    pub fn metadata(&self, path: &Path) -> Result<Metadata, Error> {
        refuse_sensitive(path, path)?;
        let file = resolve::open(self.root, path, OFlags::PATH)?;
        self.allow(file.as_fd(), path)?;
        stat(file.as_fd(), path)
    }

    /// Lists a directory without sensitive names.
    pub fn list(&self, path: &Path) -> Result<Vec<Entry>, Error> {
        let directory = self.reopen(path)?;
        let mut entries = sorted_entries(&directory, path)?;
        entries.retain(|entry| !is_sensitive(&entry.name));
        Ok(entries)
    }

    /// Opens a directory for a walk that the caller directs. The caller has to skip sensitive names.
    pub fn directory(&self, path: &Path) -> Result<Directory, Error> {
        self.reopen(path).map(Directory::new)
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &Path) -> Result<(File, Metadata), Error> {
        refuse_sensitive(path, path)?;
        let (file, metadata) = self.root.open_file(path)?;
        self.allow(file.as_fd(), path)?;
        Ok((file, metadata))
    }

    /// Replaces or creates a file atomically; see [`Root::write`].
    pub fn write(&self, path: &Path, contents: &[u8], options: WriteOptions) -> Result<(), Error> {
        let mut file = self.begin_write(path, options)?;
        file.append(contents)?;
        file.commit()
    }

    /// Begins a write that becomes visible when it is committed; see [`Root::begin_write`].
    pub fn begin_write(&self, path: &Path, options: WriteOptions) -> Result<AtomicFile, Error> {
        refuse_sensitive(path, path)?;
        let file = self.root.begin_write(path, options)?;
        refuse_sensitive(file.name().as_ref(), path)?;
        self.allow(file.parent(), path)?;
        Ok(file)
    }

    /// Opens a directory for reading, after checking its path and its real path.
    fn reopen(self, path: &Path) -> Result<File, Error> {
        refuse_sensitive(path, path)?;
        let directory = self.root.reopen(path)?;
        self.allow(directory.as_fd(), path)?;
        Ok(directory)
    }

    /// Refuses an open file whose real path has a sensitive component.
    fn allow(self, file: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
        refuse_sensitive(&self.root.located(file, path)?, path)
    }
}

fn refuse_sensitive(names: &Path, path: &Path) -> Result<(), Error> {
    if has_sensitive_component(names) {
        return Err(Error::new(path, Problem::Sensitive));
    }
    Ok(())
}
