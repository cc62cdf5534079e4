//! Writing files so that a reader sees the old contents or the new, never a part.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr, fsetxattr,
    openat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::change::Collision;
use crate::error::{Error, Escape, Problem};
use crate::metadata::{FileKind, Metadata};
use crate::owner;
use crate::resolve::{self, MAX_LINKS};
use crate::root::Root;

/// How the names of unfinished writes begin.
pub(crate) const TEMPORARY_PREFIX: &str = ".carrel-write-";

/// Returns the process that left an unfinished write of this name.
pub fn unfinished_write_pid(name: &OsStr) -> Option<u32> {
    let rest = name.to_str()?.strip_prefix(TEMPORARY_PREFIX)?;
    rest.split('-').next()?.parse().ok()
}

/// The mode of a new file before the umask takes its share.
const NEW_FILE_MODE: u32 = 0o666;

/// How far a finished write is carried before the call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Contents and name survive a power loss.
    #[default]
    Synced,
    /// After a power loss there is the old file or the new one, whole.
    Atomic,
    /// The write is atomic for readers, but the system decides when it reaches the disk.
    Buffered,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// What happens when the file exists.
    pub collision: Collision,
    /// How far the write is carried.
    pub durability: Durability,
    /// The permission bits of a new file; the umask decides when absent.
    pub new_mode: Option<u32>,
}

impl Root {
    /// Replaces or makes a file in one step.
    ///
    /// An existing file keeps its permission bits (without set-uid and set-gid),
    /// owner, group and extended attributes. A link that stays inside is written through.
    pub fn write(&self, path: &Path, contents: &[u8], options: WriteOptions) -> Result<(), Error> {
        let mut file = self.begin_write(path, options)?;
        file.append(contents)?;
        file.commit()
    }

    /// Begins a write that becomes visible when it is committed.
    pub fn begin_write(&self, path: &Path, options: WriteOptions) -> Result<AtomicFile, Error> {
        let target = self.write_target(path)?;
        let place = resolve::open_parent(self.as_fd(), &target)
            .map_err(|error| Error::new(path, error.problem()))?;
        let existing = existing_file(&place, path)?;
        if existing.is_some() && options.collision == Collision::Refuse {
            return Err(Error::new(path, Problem::Exists));
        }
        // Opened first: a directory that cannot be synced is found before anything changes.
        let directory = match options.durability {
            Durability::Synced => Some(open_for_sync(&place, path)?),
            Durability::Atomic | Durability::Buffered => None,
        };
        let (name, file) = create_temporary(&place, existing.is_some(), options, path)?;
        let given = if existing.is_none() { owner::give(&file, &place) } else { Ok(()) };
        let name_of_target = place.name.to_owned();
        let pending = AtomicFile {
            file,
            parent: place.parent,
            temporary: Some(name),
            name: name_of_target,
            path: path.to_owned(),
            collision: options.collision,
            durability: options.durability,
            directory,
            contents_synced: false,
        };
        given.map_err(|errno| Error::from_errno(path, errno))?;
        if let Some(metadata) = existing {
            pending.take_over(&metadata)?;
        }
        Ok(pending)
    }

    /// Follows links at the end of a path, so that the file behind them is replaced and not the link.
    fn write_target(&self, path: &Path) -> Result<PathBuf, Error> {
        let mut target = path.to_owned();
        for _ in 0..MAX_LINKS {
            match self.read_link(&target) {
                Ok(link) if link.is_absolute() => {
                    return Err(Error::new(path, Problem::Escapes(Escape::AbsoluteLink)));
                }
                Ok(link) => {
                    // The kernel judges the link as it stands: outward, dangling and circular ones end here.
                    self.metadata(path)?;
                    target = target.parent().unwrap_or(Path::new("")).join(link);
                }
                // Neither a link nor missing is judged here; opening the parent says what is wrong.
                Err(_) => return Ok(target),
            }
        }
        Err(Error::new(path, Problem::LinkLoop))
    }
}

fn existing_file(
    place: &resolve::ResolvedParent<'_>,
    path: &Path,
) -> Result<Option<Metadata>, Error> {
    let metadata = match statat(&place.parent, place.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Metadata::from(&stat),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(Error::from_errno(path, errno)),
    };
    match metadata.kind {
        FileKind::File => Ok(Some(metadata)),
        FileKind::Directory => Err(Error::new(path, Problem::IsADirectory)),
        // It was no link a moment ago: somebody is swapping entries.
        FileKind::Link => Err(Error::new(path, Problem::Contended)),
        kind => Err(Error::new(path, Problem::NotRegular(kind))),
    }
}

fn open_for_sync(place: &resolve::ResolvedParent<'_>, path: &Path) -> Result<File, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(&place.parent, ".", flags, Mode::empty())
        .map(File::from)
        .map_err(|errno| Error::from_errno(path, errno))
}

fn create_temporary(
    place: &resolve::ResolvedParent<'_>,
    replaces: bool,
    options: WriteOptions,
    path: &Path,
) -> Result<(OsString, File), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // A replacement is closed to others until it has its predecessor's mode.
    let mode = if replaces { 0o600 } else { options.new_mode.unwrap_or(NEW_FILE_MODE) };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!("{TEMPORARY_PREFIX}{}-{count}", std::process::id()));
        match openat(&place.parent, &name, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => return Ok((name, File::from(file))),
            // A leftover of an earlier process with the same number.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::from_errno(path, errno)),
        }
    }
}

/// A file being written. It appears under its name on [`AtomicFile::commit`] and
/// leaves nothing behind when dropped before.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    parent: OwnedFd,
    temporary: Option<OsString>,
    name: OsString,
    path: PathBuf,
    collision: Collision,
    durability: Durability,
    directory: Option<File>,
    /// Whether the contents are on the disk. Writing on undoes it.
    contents_synced: bool,
}

impl AtomicFile {
    /// Returns the directory that holds the file.
    pub(crate) fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    /// Returns the name the file gets, after links were followed.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Gives the file exactly these permission bits, whatever the umask says.
    pub fn set_mode(&self, mode: u32) -> Result<(), Error> {
        fchmod(&self.file, Mode::from_raw_mode(mode & 0o777))
            .map_err(|errno| Error::from_errno(&self.path, errno))
    }

    /// Writes more of the contents.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.write_all(bytes).map_err(|error| Error::from_io(&self.path, error))
    }

    /// Carries the contents to the disk, if they are to get there. What takes long is over then, and a
    /// last look at what stands in the place of the file is good for the moment that the rest takes.
    pub fn sync_contents(&mut self) -> Result<(), Error> {
        if self.durability != Durability::Buffered && !self.contents_synced {
            self.file.sync_all().map_err(|error| Error::from_io(&self.path, error))?;
            self.contents_synced = true;
        }
        Ok(())
    }

    /// Makes the file visible under its name.
    pub fn commit(mut self) -> Result<(), Error> {
        self.sync_contents()?;
        let path = self.path.clone();
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let flags = self.collision.flags();
        renameat_with(&self.parent, temporary, &self.parent, &self.name, flags)
            .map_err(|errno| Error::from_errno(&path, errno))?;
        self.temporary = None;
        match &self.directory {
            Some(directory) => directory.sync_all().map_err(|error| Error::from_io(&path, error)),
            None => Ok(()),
        }
    }

    /// Gives the new file what the old one had.
    fn take_over(&self, old: &Metadata) -> Result<(), Error> {
        let failed = |errno| Error::from_errno(&self.path, errno);
        let own = rustix::fs::fstat(&self.file).map_err(failed)?;
        if (own.st_uid, own.st_gid) != (old.uid, old.gid) {
            let (uid, gid) = (Uid::from_raw(old.uid), Gid::from_raw(old.gid));
            fchown(&self.file, Some(uid), Some(gid)).map_err(failed)?;
        }
        // A changed program must not keep the right to run as another user.
        let mode = Mode::from_raw_mode(old.mode & 0o777);
        fchmod(&self.file, mode).map_err(failed)?;
        self.copy_attributes().map_err(failed)
    }

    /// Copies extended attributes, which hold access lists among others.
    fn copy_attributes(&self) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(old) = openat(&self.parent, &self.name, flags, Mode::empty()) else {
            // Unreadable to us, or gone: the replacement goes without.
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
        // Capabilities go the way of set-uid; the security module labels new files itself.
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

/// The largest attribute, and the longest list of names, that the kernel stores.
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
            // Nothing can be done about a failure here; gc finds the leftover by its name.
            let _ = unlinkat(&self.parent, temporary, AtFlags::empty());
        }
    }
}
