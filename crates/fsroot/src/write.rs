//! Atomic file writes: a reader sees the old contents or the new, never a part.
//!
//! A write goes to a temporary file in the target's own directory and becomes visible by one `rename`. The
//! temporary file is created exclusively in the opened parent directory, and the rename uses the same
//! descriptor, so a parent that is swapped for a link meanwhile has no effect. An existing file keeps its
//! permission bits, owner, group and extended attributes; set-user-id, set-group-id and file capabilities
//! are dropped, because changed contents must not run as another user.
//!
//! Durability is the caller's choice. [`Durability::Synced`] syncs the contents before the rename and the
//! directory after it; [`Durability::Atomic`] skips the directory, so that after a power loss the old file
//! may be back, but never a partial one; [`Durability::Buffered`] syncs nothing.
//!
//! After a crash of the server the temporary file is left. Its name holds the process id
//! ([`unfinished_write_pid`]), by which garbage collection finds leftovers of processes that have ended. A
//! write that fails or is dropped removes its temporary file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr, fsetxattr,
    openat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use crate::error::{Error, OnPath, Problem};
use crate::metadata::{FileKind, Metadata};
use crate::owner;
use crate::rename::Collision;
use crate::resolve;
use crate::root::Root;
use crate::writer::{ActingWriter, Writer};

/// The prefix of temporary files, followed by the process id and a counter.
pub(crate) const TEMPORARY_PREFIX: &str = ".carrel-write-";

/// Returns the id of the process whose unfinished write has this name; `None` for other names.
pub fn unfinished_write_pid(name: &OsStr) -> Option<u32> {
    let rest = name.to_str()?.strip_prefix(TEMPORARY_PREFIX)?;
    rest.split('-').next()?.parse().ok()
}

/// The mode of a new file before the umask is applied.
const NEW_FILE_MODE: u32 = 0o666;

/// The state of a write when the call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Contents and name survive a power loss.
    #[default]
    Synced,
    /// After a power loss there is the complete old file or the complete new one.
    Atomic,
    /// The write is atomic for readers, but nothing is synced: after a power loss the file may be empty.
    Buffered,
}

/// Options of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The behaviour if the file exists.
    pub collision: Collision,
    /// The durability of the write.
    pub durability: Durability,
    /// The permission bits of a new file, to which the umask applies; 0666 if absent.
    pub new_mode: Option<u32>,
}

impl Root {
    /// Replaces or creates a file atomically.
    ///
    /// An existing file keeps its permission bits (without set-user-id and set-group-id), owner, group and
    /// extended attributes. A link that stays inside is followed and its target replaced.
    pub fn write(&self, path: &Path, contents: &[u8], options: WriteOptions) -> Result<(), Error> {
        let mut file = self.begin_write(path, options)?;
        file.append(contents)?;
        file.commit()
    }

    /// Begins a write that becomes visible when it is committed.
    pub fn begin_write(&self, path: &Path, options: WriteOptions) -> Result<AtomicFile, Error> {
        let target = resolve::open_target(self, path)?;
        let existing = existing_file(&target, path)?;
        begin(self, target, existing, path, options)
    }
}

/// Begins a write of exactly this entry: an entry under the name is replaced, unless it is a directory.
pub(crate) fn begin_entry_write(
    root: &Root,
    target: resolve::ResolvedParent<'_>,
    path: &Path,
    options: WriteOptions,
) -> Result<AtomicFile, Error> {
    let existing = match Metadata::of_entry(&target.parent, &target.name) {
        Err(Errno::NOENT) => None,
        found => Some(found.on(path)?),
    };
    match existing.map(|metadata| metadata.kind) {
        Some(FileKind::Directory) => return Err(Error::new(path, Problem::IsADirectory)),
        Some(_) if options.collision == Collision::Refuse => {
            return Err(Error::new(path, Problem::Exists));
        }
        Some(_) | None => {}
    }
    let replaced = existing.filter(|metadata| metadata.kind == FileKind::File);
    begin(root, target, replaced, path, options)
}

fn begin(
    root: &Root,
    target: resolve::ResolvedParent<'_>,
    existing: Option<Metadata>,
    path: &Path,
    options: WriteOptions,
) -> Result<AtomicFile, Error> {
    if existing.is_some() && options.collision == Collision::Refuse {
        return Err(Error::new(path, Problem::Exists));
    }
    let _acting = root.act_as_writer()?;
    // Before anything changes, since a directory that cannot be opened could not be synced later.
    let directory = match options.durability {
        Durability::Synced => Some(open_for_sync(&target, path)?),
        Durability::Atomic | Durability::Buffered => None,
    };
    let (name, file) = create_temporary(&target, existing.is_some(), options, path)?;
    let owned = if existing.is_none() { owner::inherit_owner(&file, &target) } else { Ok(()) };
    let pending = AtomicFile {
        file,
        name: target.name.into_owned(),
        parent: target.parent,
        temporary: Some(name),
        path: path.to_owned(),
        options,
        directory,
        contents_synced: false,
        writer: root.writer(),
    };
    owned.on(path)?;
    if let Some(metadata) = existing {
        pending.copy_metadata(&metadata)?;
    }
    Ok(pending)
}

fn existing_file(
    target: &resolve::ResolvedParent<'_>,
    path: &Path,
) -> Result<Option<Metadata>, Error> {
    let metadata = match Metadata::of_entry(&target.parent, &target.name) {
        Err(Errno::NOENT) => return Ok(None),
        found => found.on(path)?,
    };
    match metadata.kind {
        FileKind::File => Ok(Some(metadata)),
        FileKind::Directory => Err(Error::new(path, Problem::IsADirectory)),
        // It was not a link before: another process is swapping entries.
        FileKind::Link => Err(Error::new(path, Problem::Contended)),
        kind => Err(Error::new(path, Problem::NotRegular(kind))),
    }
}

fn open_for_sync(target: &resolve::ResolvedParent<'_>, path: &Path) -> Result<File, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(&target.parent, ".", flags, Mode::empty()).map(File::from).on(path)
}

fn create_temporary(
    target: &resolve::ResolvedParent<'_>,
    replaces: bool,
    options: WriteOptions,
    path: &Path,
) -> Result<(OsString, File), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // A replacement is private until it has the mode of the file that it replaces.
    let mode = if replaces { 0o600 } else { options.new_mode.unwrap_or(NEW_FILE_MODE) };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!("{TEMPORARY_PREFIX}{}-{count}", std::process::id()));
        match openat(&target.parent, &name, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => return Ok((name, File::from(file))),
            // A leftover of an earlier process with the same id.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::from_errno(path, errno)),
        }
    }
}

/// A file that is being written. It appears under its name on [`AtomicFile::commit`]; dropped before, it
/// leaves nothing behind.
///
/// ```text
/// openat(parent, ".carrel-write-4711-3", O_CREAT | O_EXCL, 0600)
/// fchown, fchmod, fsetxattr      as the file that is replaced
/// write ...                      append
/// fsync(file)                    sync_contents, unless buffered
/// renameat2(parent, ".carrel-write-4711-3", parent, "Cargo.toml")
/// fsync(parent)                  Synced only
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    parent: OwnedFd,
    temporary: Option<OsString>,
    name: OsString,
    path: PathBuf,
    options: WriteOptions,
    directory: Option<File>,
    /// Reset by every write.
    contents_synced: bool,
    writer: Option<Writer>,
}

impl AtomicFile {
    pub(crate) fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    /// Returns the name that the file gets, after links were followed.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the calling thread act as the writer of the root until the value is dropped.
    pub(crate) fn act_as_writer(&self) -> Result<ActingWriter, Error> {
        ActingWriter::begin(self.writer).on(&self.path)
    }

    /// Sets the permission bits, regardless of the umask.
    pub fn set_mode(&self, mode: u32) -> Result<(), Error> {
        let _acting = self.act_as_writer()?;
        fchmod(&self.file, Mode::from_raw_mode(mode & 0o777)).on(&self.path)
    }

    /// Appends to the contents.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.write_all(bytes).on(&self.path)
    }

    /// Syncs the contents, unless the durability is [`Durability::Buffered`]. This is the slow part of a
    /// write. A caller that checks the target once more before [`commit`](Self::commit) calls this first, so
    /// that only a rename lies between check and replacement.
    pub fn sync_contents(&mut self) -> Result<(), Error> {
        if self.options.durability != Durability::Buffered && !self.contents_synced {
            self.file.sync_all().on(&self.path)?;
            self.contents_synced = true;
        }
        Ok(())
    }

    /// Renames the file to its final name, and syncs as its durability demands.
    pub fn commit(mut self) -> Result<(), Error> {
        self.sync_contents()?;
        let path = self.path.clone();
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let flags = self.options.collision.flags();
        let _acting = self.act_as_writer()?;
        renameat_with(&self.parent, temporary, &self.parent, &self.name, flags).on(&path)?;
        self.temporary = None;
        match &self.directory {
            Some(directory) => directory.sync_all().on(&path),
            None => Ok(()),
        }
    }

    /// Gives the new file the owner, mode and attributes of the old one.
    fn copy_metadata(&self, old: &Metadata) -> Result<(), Error> {
        let failed = |errno| Error::from_errno(&self.path, errno);
        let own = rustix::fs::fstat(&self.file).map_err(failed)?;
        if (own.st_uid, own.st_gid) != (old.uid, old.gid) {
            let uid = Uid::from_raw(old.uid);
            let gid = Gid::from_raw(old.gid);
            fchown(&self.file, Some(uid), Some(gid)).map_err(failed)?;
        }
        // Without set-user-id and set-group-id: changed contents must not run as another user.
        let mode = Mode::from_raw_mode(old.mode & 0o777);
        fchmod(&self.file, mode).map_err(failed)?;
        self.copy_attributes().map_err(failed)
    }

    /// Copies extended attributes, such as access control lists.
    fn copy_attributes(&self) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(old) = openat(&self.parent, &self.name, flags, Mode::empty()) else {
            // Unreadable or vanished: the replacement has no attributes.
            return Ok(());
        };
        let mut names = vec![0; MAX_ATTRIBUTE_BYTES];
        let length = match flistxattr(old.as_fd(), names.as_mut_slice()) {
            Ok(length) => length,
            Err(Errno::OPNOTSUPP) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            self.copy_attribute(&old, name)?;
        }
        Ok(())
    }

    fn copy_attribute(&self, old: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        // File capabilities are dropped like set-user-id; security modules label new files themselves.
        if name.starts_with(b"security.") {
            return Ok(());
        }
        let mut value = vec![0; MAX_ATTRIBUTE_BYTES];
        let length = fgetxattr(old.as_fd(), name, value.as_mut_slice())?;
        match fsetxattr(self.file.as_fd(), name, &value[..length], XattrFlags::empty()) {
            Err(Errno::OPNOTSUPP | Errno::PERM) => Ok(()),
            other => other,
        }
    }
}

/// The kernel's limit for the value of an attribute and for the list of names.
const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.contents_synced = false;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let Ok(_acting) = self.act_as_writer() else { return };
            // A failure cannot be reported here; garbage collection finds the leftover by its name.
            let _ = unlinkat(&self.parent, temporary, AtFlags::empty());
        }
    }
}
