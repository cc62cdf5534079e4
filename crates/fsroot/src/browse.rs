//! A root as browsing doors see it: without what the policy about names hides.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::change::Collision;
use crate::directory::{Entry, sorted_entries};
use crate::error::{Error, Problem};
use crate::file::{FileRange, read_part, read_whole};
use crate::metadata::Metadata;
use crate::resolve;
use crate::root::{Root, real_path, stat};
use crate::sensitive::{has_sensitive_component, is_sensitive};
use crate::step::Directory;
use crate::walk::{WalkControl, WalkEntry, walk_open};
use crate::write::{AtomicFile, WriteOptions};

/// A view of a [`Root`] that refuses, hides and never searches sensitive names.
///
/// The names that count are those of the file that was opened, not only those
/// given: a link to `.ssh` is refused like `.ssh` itself. A hard link or a copy
/// under another name is another file and is not covered.
#[derive(Clone, Copy, Debug)]
pub struct Browser<'a> {
    root: &'a Root,
}

impl Root {
    /// Returns the view for browsing doors.
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

    /// Returns what is known about the file a path leads to.
    pub fn metadata(&self, path: &Path) -> Result<Metadata, Error> {
        refuse_sensitive(path, path)?;
        let file = resolve::open(self.root.as_fd(), path, OFlags::PATH, Mode::empty())?;
        self.allow(file.as_fd(), path)?;
        stat(file.as_fd(), path)
    }

    /// Lists a directory without the hidden names.
    pub fn list(&self, path: &Path) -> Result<Vec<Entry>, Error> {
        refuse_sensitive(path, path)?;
        let directory = self.root.reopen(path)?;
        self.allow(directory.as_fd(), path)?;
        let mut entries = sorted_entries(&directory, path)?;
        entries.retain(|entry| !is_sensitive(&entry.name));
        Ok(entries)
    }

    /// Opens a directory for a walk. The walk itself has to leave out the hidden names.
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

    /// Replaces or makes a file in one step.
    pub fn write(&self, path: &Path, contents: &[u8], options: WriteOptions) -> Result<(), Error> {
        let mut file = self.begin_write(path, options)?;
        file.append(contents)?;
        file.commit()
    }

    /// Begins a write that becomes visible when it is committed.
    pub fn begin_write(&self, path: &Path, options: WriteOptions) -> Result<AtomicFile, Error> {
        refuse_sensitive(path, path)?;
        let file = self.root.begin_write(path, options)?;
        refuse_sensitive(file.name().as_ref(), path)?;
        self.allow(file.parent(), path)?;
        Ok(file)
    }

    /// Visits everything below a directory except the hidden names and what is below them.
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

    /// Returns where a link points.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, Error> {
        self.at(path, Root::read_link)
    }

    /// Makes one directory.
    pub fn create_directory(&self, path: &Path, mode: u32) -> Result<(), Error> {
        self.at(path, |parent, name| parent.create_directory(name, mode))
    }

    /// Removes a file, a link or another entry that is no directory.
    pub fn remove_file(&self, path: &Path) -> Result<(), Error> {
        self.at(path, Root::remove_file)
    }

    /// Removes an entry and everything below it.
    pub fn remove_tree(&self, path: &Path) -> Result<(), Error> {
        self.at(path, Root::remove_tree)
    }

    /// Gives an entry another name.
    pub fn rename(&self, from: &Path, to: &Path, collision: Collision) -> Result<(), Error> {
        self.at(from, |source, old| {
            self.at(to, |target, new| source.rename_into(old, target, new, collision))
        })
    }

    /// Does something to an entry by its name, in a parent directory that was opened and allowed.
    fn at<T>(
        self,
        path: &Path,
        act: impl FnOnce(&Root, &Path) -> Result<T, Error>,
    ) -> Result<T, Error> {
        refuse_sensitive(path, path)?;
        let place = resolve::open_parent(self.root.as_fd(), path)?;
        self.allow(place.parent.as_fd(), path)?;
        let parent = Root::from_descriptor(place.parent);
        act(&parent, Path::new(place.name)).map_err(|error| error.at(path, Path::new(place.name)))
    }

    /// Refuses an open file that lies at or below a sensitive name.
    fn allow(self, file: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
        let top = real_path(self.root.as_fd(), path)?;
        let place = real_path(file, path)?;
        // They differ only when the root is renamed between the two looks.
        let below = place.strip_prefix(&top).map_err(|_| Error::new(path, Problem::Contended))?;
        refuse_sensitive(below, path)
    }
}

fn refuse_sensitive(names: &Path, path: &Path) -> Result<(), Error> {
    if has_sensitive_component(names) {
        return Err(Error::new(path, Problem::Sensitive));
    }
    Ok(())
}
