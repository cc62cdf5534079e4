//! Removing whole trees, however deep, large or write-protected.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, SeekFrom, chmod, renameat_with, seek, unlinkat,
};
use rustix::io::Errno;

use crate::directory::{Entry, read_entries};
use crate::error::Error;
use crate::metadata::FileKind;
use crate::resolve;
use crate::root::{Root, proc_path, stat};

/// How many directories are held open at once. What lies deeper is moved up to the
/// top of the tree and removed from there, so no depth can exhaust descriptors.
const MAX_OPEN: usize = 64;

/// How many entries are taken from a directory at a time.
const BATCH: usize = 1024;

impl Root {
    /// Removes an entry and everything below it, without following links and
    /// without entering another mounted file system.
    ///
    /// Directories whose mode forbids it are opened up first, as far as the owner may.
    pub fn remove_tree(&self, path: &Path) -> Result<(), Error> {
        let place = resolve::open_parent(self.as_fd(), path)?;
        let parent = place.parent.as_fd();
        match unlinkat(parent, place.name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            other => return other.map_err(|errno| Error::from_errno(path, errno)),
        }
        let top = open_directory(parent, place.name, path)?;
        Removal { top: &top, path, moved: 0 }.empty()?;
        unlinkat(parent, place.name, AtFlags::REMOVEDIR)
            .map_err(|errno| Error::from_errno(path, errno))
    }
}

struct Removal<'a> {
    top: &'a File,
    path: &'a Path,
    moved: usize,
}

/// A directory on the way down, with the name it has in the one above.
struct Level {
    directory: File,
    name: OsString,
}

impl Removal<'_> {
    fn empty(&mut self) -> Result<(), Error> {
        let top = self.top;
        while let Some(batch) = self.next_batch(top)? {
            for entry in batch {
                self.remove_entry(&entry)?;
            }
        }
        Ok(())
    }

    /// Removes one entry of the top directory with all that is below it.
    fn remove_entry(&mut self, entry: &Entry) -> Result<(), Error> {
        let mut levels: Vec<Level> = Vec::new();
        let top = self.top;
        self.unlink_or_enter(top.as_fd(), entry, &mut levels)?;
        while let Some(level) = levels.last() {
            // Taken out for the time of the batch: entering a directory pushes onto the list.
            let Some(batch) = self.next_batch(&level.directory)? else {
                let Some(done) = levels.pop() else { return Ok(()) };
                let above = levels.last().map_or(top, |level| &level.directory);
                self.unlink(above.as_fd(), &done.name, AtFlags::REMOVEDIR)?;
                continue;
            };
            let directory =
                level.directory.try_clone().map_err(|error| Error::from_io(self.path, error))?;
            for entry in batch {
                if self.unlink_or_enter(directory.as_fd(), &entry, &mut levels)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Unlinks an entry, or opens it as the next level; tells whether it did the latter.
    fn unlink_or_enter(
        &mut self,
        parent: BorrowedFd<'_>,
        entry: &Entry,
        levels: &mut Vec<Level>,
    ) -> Result<bool, Error> {
        if entry.kind != FileKind::Directory {
            match unlinkat(parent, &entry.name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => return Ok(false),
                // It was replaced by a directory since it was listed.
                Err(Errno::ISDIR) => {}
                Err(errno) => return Err(Error::from_errno(self.path, errno)),
            }
        }
        // An empty directory needs no visit.
        match unlinkat(parent, &entry.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(false),
            Err(Errno::NOTDIR) => {
                return self.unlink(parent, &entry.name, AtFlags::empty()).map(|()| false);
            }
            Err(_) => {}
        }
        let directory = open_directory(parent, &entry.name, self.path)?;
        if levels.len() >= MAX_OPEN {
            return self.move_up(parent, &entry.name).map(|()| false);
        }
        levels.push(Level { directory, name: entry.name.clone() });
        Ok(true)
    }

    fn move_up(&mut self, parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Error> {
        loop {
            self.moved += 1;
            let target = format!(".carrel-removing-{}", self.moved);
            match renameat_with(parent, name, self.top, target, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                other => return other.map_err(|errno| Error::from_errno(self.path, errno)),
            }
        }
    }

    fn unlink(&self, parent: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> Result<(), Error> {
        match unlinkat(parent, name, flags) {
            // Gone already, or filled again by a process that still runs: the next look decides.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
            Err(errno) => Err(Error::from_errno(self.path, errno)),
        }
    }

    /// Reads entries from the start of a directory; `None` when it is empty.
    ///
    /// Starting over each time is what makes unlinking while reading safe: no file
    /// system promises a position that survives it.
    fn next_batch(&self, directory: &File) -> Result<Option<Vec<Entry>>, Error> {
        let failed = |errno| Error::from_errno(self.path, errno);
        seek(directory, SeekFrom::Start(0)).map_err(failed)?;
        let batch = read_entries(directory.as_fd(), BATCH).map_err(failed)?;
        Ok((!batch.is_empty()).then_some(batch))
    }
}

/// Opens a directory for emptying and makes sure that its owner may do so.
fn open_directory(parent: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<File, Error> {
    let shown = |error: Error| Error::new(path, error.problem());
    let open = |parent, name, flags| {
        resolve::open_strict(parent, name, flags | OFlags::DIRECTORY, Mode::empty()).map_err(shown)
    };
    let handle = open(parent, Path::new(name), OFlags::PATH)?;
    let metadata = stat(handle.as_fd(), path)?;
    if metadata.mode & 0o700 != 0o700 {
        // Through procfs, because a mode can be set neither on an `O_PATH`
        // descriptor nor on a name without following links.
        let mode = Mode::from_raw_mode(metadata.mode | 0o700);
        chmod(proc_path(handle.as_fd()), mode).map_err(|errno| Error::from_errno(path, errno))?;
    }
    open(handle.as_fd(), Path::new("."), OFlags::RDONLY).map(File::from)
}
