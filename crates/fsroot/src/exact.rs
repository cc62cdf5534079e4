//! Writes by one name in an open directory, for callers that put back a tree that they recorded.
//!
//! A restore must reproduce exactly the entries that it names. [`Root::write`] follows a link at the end of a
//! path, since an edit through a link changes its target; here a link under the name is replaced itself, and
//! no link leads anywhere. The directory is opened with [`Root::open_root_strict`] before.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, chmod, futimens};

use crate::error::{Error, OnPath, Problem};
use crate::metadata::FileKind;
use crate::read::READ;
use crate::resolve;
use crate::root::{Root, proc_path, stat};
use crate::write::{AtomicFile, WriteOptions, begin_entry_write};

/// The permission bits that [`Root::set_entry_mode`] sets: all but set-user-id.
const SETTABLE: u32 = 0o3777;

impl Root {
    /// Begins a write of the entry with this name in this directory. An existing regular file passes its owner
    /// and attributes on as in [`Root::begin_write`]; a link, or another entry that is no directory, is
    /// replaced by the file.
    pub fn begin_entry_write(
        &self,
        name: &Path,
        options: WriteOptions,
    ) -> Result<AtomicFile, Error> {
        one_name(name)?;
        begin_entry_write(resolve::open_parent(self, name)?, name, options)
    }

    /// Opens the regular file with this name in this directory for reading, without following a link.
    pub fn open_entry_file(&self, name: &Path) -> Result<File, Error> {
        one_name(name)?;
        let file = resolve::open_strict(self.as_fd(), name, READ, Mode::empty())?;
        crate::read::regular(file, name).map(|(file, _)| file)
    }

    /// Syncs the regular file with this name in this directory, its permission bits too.
    pub fn sync_entry_file(&self, name: &Path) -> Result<(), Error> {
        self.open_entry_file(name)?.sync_all().on(name)
    }

    /// Sets the permission bits of a file or directory by its name in this directory; never those of a link,
    /// and never set-user-id.
    pub fn set_entry_mode(&self, name: &Path, mode: u32) -> Result<(), Error> {
        one_name(name)?;
        let entry = resolve::open_strict(self.as_fd(), name, OFlags::PATH, Mode::empty())?;
        match stat(entry.as_fd(), name)?.kind {
            FileKind::File | FileKind::Directory => {}
            kind => return Err(Error::new(name, Problem::NotRegular(kind))),
        }
        // Through procfs, because a mode cannot be set on an `O_PATH` descriptor.
        chmod(proc_path(entry.as_fd()), Mode::from_raw_mode(mode & SETTABLE)).on(name)
    }
}

impl AtomicFile {
    /// Sets the time of the last change of contents, after the contents were written.
    pub fn set_modified(&self, time: SystemTime) -> Result<(), Error> {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let modified = Timespec {
            tv_sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: since.subsec_nanos().into(),
        };
        let accessed = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let times = Timestamps { last_access: accessed, last_modification: modified };
        futimens(self.file(), &times).on(self.path())
    }
}

fn one_name(path: &Path) -> Result<(), Error> {
    if resolve::is_one_name(path) { Ok(()) } else { Err(Error::new(path, Problem::NoName)) }
}
