//! The view of a root without sensitive names, for interfaces that let a caller browse.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::directory::{Entry, sorted_entries};
use crate::error::{Error, Problem};
use crate::metadata::Metadata;
use crate::open_directory::Directory;
use crate::read::{FileRange, read_part, read_whole};
use crate::rename::Collision;
use crate::resolve;
use crate::root::{Root, real_path, stat};
use crate::sensitive::{has_sensitive_component, is_sensitive};
use crate::walk::{WalkControl, WalkEntry, walk_open};
use crate::write::{AtomicFile, WriteOptions};

/// A view of a [`Root`] that refuses sensitive names and leaves them out of listings and walks.
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

    /// Reads a part of a regular file.
    pub fn read_range(&self, path: &Path, offset: u64, length: u64) -> Result<FileRange, Error> {
        let (file, metadata) = self.open_file(path)?;
        read_part(file, &metadata, offset, length, path)
    }

    /// Returns the metadata of the file at a path, following links.
    pub fn metadata(&self, path: &Path) -> Result<Metadata, Error> {
        refuse_sensitive(path, path)?;
        let file = resolve::open(self.root.as_fd(), path, OFlags::PATH, Mode::empty())?;
        self.allow(file.as_fd(), path)?;
        stat(file.as_fd(), path)
    }

    /// Lists a directory without sensitive names.
    pub fn list(&self, path: &Path) -> Result<Vec<Entry>, Error> {
        refuse_sensitive(path, path)?;
        let directory = self.root.reopen(path)?;
        self.allow(directory.as_fd(), path)?;
        let mut entries = sorted_entries(&directory, path)?;
        entries.retain(|entry| !is_sensitive(&entry.name));
        Ok(entries)
    }

    /// Opens a directory for a walk that the caller directs. The caller has to skip sensitive names.
    pub fn directory(&self, path: &Path) -> Result<Directory, Error> {
        refuse_sensitive(path, path)?;
        let directory = self.root.reopen(path)?;
        self.allow(directory.as_fd(), path)?;
        Ok(Directory::new(directory))
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

    /// Visits everything below a directory except sensitive names and their contents; see [`Root::walk`].
    pub fn walk(
        &self,
        path: &Path,
        mut visit: impl FnMut(&WalkEntry<'_>) -> Result<WalkControl, Error>,
        unreadable: impl FnMut(Error) -> Result<(), Error>,
    ) -> Result<(), Error> {
        refuse_sensitive(path, path)?;
        let directory = self.root.reopen(path)?;
        self.allow(directory.as_fd(), path)?;
        let filtered = |entry: &WalkEntry<'_>| match entry.path.file_name() {
            Some(name) if is_sensitive(name) => Ok(WalkControl::Skip),
            _ => visit(entry),
        };
        walk_open(directory, path, filtered, unreadable)
    }

    /// Returns the target of a link.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, Error> {
        self.at(path, Root::read_link)
    }

    /// Creates one directory, whose parent must exist.
    pub fn create_directory(&self, path: &Path, mode: u32) -> Result<(), Error> {
        self.at(path, |parent, name| parent.create_directory(name, mode))
    }

    /// Removes a file, a link or another entry that is not a directory.
    pub fn remove_file(&self, path: &Path) -> Result<(), Error> {
        self.at(path, Root::remove_file)
    }

    /// Removes an entry and everything below it; see [`Root::remove_tree`].
    pub fn remove_tree(&self, path: &Path) -> Result<(), Error> {
        self.at(path, Root::remove_tree)
    }

    /// Renames an entry; a link is renamed itself.
    pub fn rename(&self, from: &Path, to: &Path, collision: Collision) -> Result<(), Error> {
        self.at(from, |source, old| {
            self.at(to, |target, new| source.rename_into(old, target, new, collision))
        })
    }

    /// Calls `act` with the opened parent directory, after checking it, and the last name of the path.
    fn at<T>(
        self,
        path: &Path,
        act: impl FnOnce(&Root, &Path) -> Result<T, Error>,
    ) -> Result<T, Error> {
        refuse_sensitive(path, path)?;
        let target = resolve::open_parent(self.root.as_fd(), path)?;
        self.allow(target.parent.as_fd(), path)?;
        let parent = Root::from_descriptor(target.parent);
        act(&parent, Path::new(target.name)).map_err(|error| error.at(path, Path::new(target.name)))
    }

    /// Refuses an open file whose real path has a sensitive component.
    fn allow(self, file: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
        let top = real_path(self.root.as_fd(), path)?;
        let real = real_path(file, path)?;
        // The prefix differs only if the root is renamed between the two calls.
        let below = real.strip_prefix(&top).map_err(|_| Error::new(path, Problem::Contended))?;
        refuse_sensitive(below, path)
    }
}

fn refuse_sensitive(names: &Path, path: &Path) -> Result<(), Error> {
    if has_sensitive_component(names) {
        return Err(Error::new(path, Problem::Sensitive));
    }
    Ok(())
}
