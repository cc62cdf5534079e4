//! An open directory that is the top of everything reached through it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, StatxFlags, chmod, fstat, fstatvfs, openat, readlink, statat, statx,
};

use crate::error::{Error, Problem};
use crate::metadata::{Metadata, time};
use crate::resolve;

/// The owner's right to read, write and enter a directory.
const OWNER_ALL: u32 = 0o700;

/// A directory held open. All paths given to its methods are resolved beneath it.
///
/// The directory stays the same one however it is renamed or replaced on disk.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
}

/// The device and inode numbers of a file, equal only for the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The device number.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

/// What a file system has left for an ordinary user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Free bytes.
    pub bytes: u64,
    /// Free inodes; `u64::MAX` where the file system does not count them.
    pub inodes: u64,
}

/// What a file system has, and has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// What is left for an ordinary user.
    pub free: Space,
    /// All there is.
    pub total: Space,
}

impl Root {
    /// Opens a directory of the host. This is the one place where links may lead
    /// anywhere: an operator names a root, and what it resolves to is shown.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())
            .map_err(|errno| Error::from_errno(path, errno))?;
        let root = Self { path: real_path(directory.as_fd(), path)?, directory };
        match root.metadata(Path::new(".")) {
            // A kernel that cannot keep the promise is found here, with an error of its own.
            Err(error) if error.problem() == Problem::KernelTooOld => Err(error),
            _ => Ok(root),
        }
    }

    /// Opens a directory beneath this one, following links that stay inside.
    pub fn open_root(&self, path: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = resolve::open(self.as_fd(), path, flags, Mode::empty())?;
        Ok(self.below(path, directory))
    }

    /// Opens a directory beneath this one with no link and no mount point on the way.
    pub fn open_root_strict(&self, path: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = resolve::open_strict(self.as_fd(), path, flags, Mode::empty())?;
        Ok(self.below(path, directory))
    }

    /// Wraps a directory whose path nobody needs to see.
    pub(crate) fn from_descriptor(directory: OwnedFd) -> Self {
        Self { directory, path: PathBuf::new() }
    }

    fn below(&self, path: &Path, directory: OwnedFd) -> Self {
        // A directory may lie deeper than the kernel can name it.
        let path = real_path(directory.as_fd(), path).unwrap_or_else(|_| self.path.join(path));
        Self { directory, path }
    }

    /// Returns the one path, relative to this directory, of what a path leads to: without links, `.`
    /// and `..`. It is for comparing, not for opening.
    pub fn locate(&self, path: &Path) -> Result<PathBuf, Error> {
        let opened = resolve::open(self.as_fd(), path, OFlags::PATH, Mode::empty())?;
        let (top, real) = (real_path(self.as_fd(), path)?, real_path(opened.as_fd(), path)?);
        let relative = real.strip_prefix(&top);
        relative.map(Path::to_owned).map_err(|_| Error::new(path, Problem::Contended))
    }

    /// Returns a second handle on the same directory.
    pub fn try_clone(&self) -> Result<Self, Error> {
        let directory =
            self.directory.try_clone().map_err(|error| Error::from_io(&self.path, error))?;
        Ok(Self { directory, path: self.path.clone() })
    }

    /// Returns the real path the directory had when it was opened, for people to read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what tells this directory apart from every other.
    pub fn identity(&self) -> Result<Identity, Error> {
        self.top().map(|metadata| metadata.identity)
    }

    /// Returns what is known about the directory itself, whatever its mode allows.
    pub fn top(&self) -> Result<Metadata, Error> {
        stat(self.as_fd(), &self.path)
    }

    /// Returns when the directory was made, where the file system remembers. Nobody can set it, so
    /// with the identity it tells the directory apart from every other there ever was.
    pub fn born(&self) -> Option<SystemTime> {
        let found = statx(self.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
        let is_known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        is_known.then(|| time(found.stx_btime.tv_sec, u64::from(found.stx_btime.tv_nsec)))
    }

    /// Tells whether its owner may do everything with the directory.
    pub fn is_open(&self) -> Result<bool, Error> {
        Ok(self.top()?.mode & OWNER_ALL == OWNER_ALL)
    }

    /// Gives the owner back the right to read, write and enter the directory itself.
    pub fn open_up(&self) -> Result<(), Error> {
        if self.is_open()? {
            return Ok(());
        }
        let mode = self.top()?.mode;
        // Through procfs, because a mode can be set neither on an `O_PATH`
        // descriptor nor on a name without following links.
        chmod(proc_path(self.as_fd()), Mode::from_raw_mode(mode | OWNER_ALL))
            .map_err(|errno| Error::from_errno(&self.path, errno))
    }

    /// Returns what is known about the file a path leads to.
    pub fn metadata(&self, path: &Path) -> Result<Metadata, Error> {
        let file = resolve::open(self.as_fd(), path, OFlags::PATH, Mode::empty())?;
        stat(file.as_fd(), path)
    }

    /// Returns what is known about the entry itself, which may be a link.
    pub fn link_metadata(&self, path: &Path) -> Result<Metadata, Error> {
        if resolve::is_one_name(path) {
            // Nothing is left to resolve, so one call does what otherwise takes three.
            return statat(self.as_fd(), path, AtFlags::SYMLINK_NOFOLLOW)
                .map(|stat| Metadata::from(&stat))
                .map_err(|errno| Error::from_errno(path, errno));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let file = resolve::open(self.as_fd(), path, flags, Mode::empty())?;
        stat(file.as_fd(), path)
    }

    /// Returns where a link points, which may be anywhere.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, Error> {
        let place = resolve::open_parent(self.as_fd(), path)?;
        resolve::read_link_at(place.parent.as_fd(), place.name)
            .map_err(|errno| Error::from_errno(path, errno))
    }

    /// Returns what the file system below this directory has left.
    pub fn space(&self) -> Result<Space, Error> {
        self.capacity().map(|capacity| capacity.free)
    }

    /// Returns what the file system below this directory has, and has left.
    pub fn capacity(&self) -> Result<Capacity, Error> {
        let stat = fstatvfs(self.reopen(Path::new("."))?)
            .map_err(|errno| Error::from_errno(&self.path, errno))?;
        let inodes = |count| if stat.f_files == 0 { u64::MAX } else { count };
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(Capacity {
            free: Space { bytes: bytes(stat.f_bavail), inodes: inodes(stat.f_favail) },
            total: Space { bytes: bytes(stat.f_blocks), inodes: inodes(stat.f_files) },
        })
    }

    /// Makes the entries of a directory survive a power loss.
    pub fn sync_directory(&self, path: &Path) -> Result<(), Error> {
        self.reopen(path)?.sync_all().map_err(|error| Error::from_io(path, error))
    }

    /// Opens a directory for reading; an `O_PATH` descriptor cannot be read or synced.
    pub(crate) fn reopen(&self, path: &Path) -> Result<File, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        resolve::open(self.as_fd(), path, flags, Mode::empty()).map(File::from)
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl From<Root> for OwnedFd {
    fn from(root: Root) -> Self {
        root.directory
    }
}

pub(crate) fn stat(file: BorrowedFd<'_>, path: &Path) -> Result<Metadata, Error> {
    let stat = fstat(file).map_err(|errno| Error::from_errno(path, errno))?;
    Ok(Metadata::from(&stat))
}

/// Asks the kernel where an open file lies at this moment.
pub(crate) fn real_path(file: BorrowedFd<'_>, path: &Path) -> Result<PathBuf, Error> {
    let link = proc_path(file);
    let target = readlink(link, Vec::new()).map_err(|errno| Error::from_errno(path, errno))?;
    Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
}

/// Names an open file through procfs, for calls that take no descriptor.
pub(crate) fn proc_path(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
