//! Writes by one name in an open directory, for callers that put back a tree that they recorded.
//!
//! A restore must reproduce exactly the entries that it names. [`Root::write`] follows a link at the end of a
//! path, since an edit through a link changes its target; here a link under the name is replaced itself, and
//! no link leads anywhere. The directory is opened with [`Root::open_root_strict`] before.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chmod, chownat, futimens,
    openat, utimensat,
};

use crate::error::{Error, OnPath, Problem};
use crate::metadata::FileKind;
use crate::owner;
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
        begin_entry_write(self, resolve::open_parent(self, name)?, name, options)
    }

    /// Opens a directory beneath this one as [`open_root_strict`](Root::open_root_strict) does, without asking the
    /// kernel for its real path, which takes as long as the path is: for walks of deep trees.
    pub fn enter(&self, path: &Path) -> Result<Root, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        resolve::open_strict(self.as_fd(), path, flags, Mode::empty()).map(Root::from_descriptor)
    }

    /// Opens the regular file with this name in this directory for reading, without following a link.
    pub fn open_entry_file(&self, name: &Path) -> Result<File, Error> {
        one_name(name)?;
        let file = resolve::open_strict(self.as_fd(), name, READ, Mode::empty())?;
        crate::read::regular(file, name).map(|(file, _)| file)
    }

    /// Creates an empty file with this name in this directory and opens it for writing. An existing entry is an
    /// error.
    pub fn create_entry_file(&self, name: &Path, mode: u32) -> Result<File, Error> {
        one_name(name)?;
        let target = resolve::open_parent(self, name)?;
        let _acting = self.act_as_writer()?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&target.parent, name, flags, Mode::from_raw_mode(mode)).on(name)?;
        owner::inherit_owner(&file, &target).on(name)?;
        Ok(File::from(file))
    }

    /// Sets owner and group of an entry by its name in this directory, also of a link itself.
    pub fn set_entry_owner(&self, name: &Path, uid: u32, gid: u32) -> Result<(), Error> {
        one_name(name)?;
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        chownat(self, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).on(name)
    }

    /// Sets the time of the last change of contents of an entry by its name in this directory, also of a link
    /// itself.
    pub fn set_entry_modified(&self, name: &Path, time: SystemTime) -> Result<(), Error> {
        one_name(name)?;
        let _acting = self.act_as_writer()?;
        utimensat(self, name, &modified_at(time), AtFlags::SYMLINK_NOFOLLOW).on(name)
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
        let _acting = self.act_as_writer()?;
        // Through procfs, because a mode cannot be set on an `O_PATH` descriptor.
        chmod(proc_path(entry.as_fd()), Mode::from_raw_mode(mode & SETTABLE)).on(name)
    }
}

impl AtomicFile {
    /// Sets the time of the last change of contents, after the contents were written.
    pub fn set_modified(&self, time: SystemTime) -> Result<(), Error> {
        let _acting = self.act_as_writer()?;
        futimens(self.file(), &modified_at(time)).on(self.path())
    }
}

fn one_name(path: &Path) -> Result<(), Error> {
    if resolve::is_one_name(path) { Ok(()) } else { Err(Error::new(path, Problem::NoName)) }
}

fn modified_at(time: SystemTime) -> Timestamps {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let modified = Timespec {
        tv_sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: since.subsec_nanos().into(),
    };
    let accessed = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Timestamps { last_access: accessed, last_modification: modified }
}
