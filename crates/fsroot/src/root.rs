//! The root: an open directory beneath which all paths are resolved.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, StatxFlags, chmod, fstat, fstatvfs, openat, readlink, statx, syncfs,
};

use crate::error::{Error, OnPath, Problem};
use crate::metadata::{Metadata, time};
use crate::resolve;
use crate::traversal;
use crate::writer::{ActingWriter, Writer};

/// Read, write and enter for the owner of a directory.
const OWNER_ALL: u32 = 0o700;

/// An open directory. All paths given to its methods are resolved beneath it.
///
/// It refers to the same directory for its whole life, even if that is renamed or replaced on disk.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
    place: Place,
}

/// The place of a root: in the mounts of this process, or elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Procfs tells its path.
    #[default]
    Here,
    /// In another mount namespace, or in none any more. Its path is a label, and what procfs tells means
    /// something only relative to what it tells about another directory of the same mount.
    Elsewhere { writer: Option<Writer> },
}

/// The device and inode numbers of a file. They are unique while the file exists and may be reused later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The device number.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

/// An amount of bytes and inodes of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The number of bytes.
    pub bytes: u64,
    /// The number of inodes; `u64::MAX` on file systems that do not count them.
    pub inodes: u64,
}

/// The size of a file system and its free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The free space for users other than root.
    pub free: Space,
    /// The total size.
    pub total: Space,
}

impl Root {
    /// Opens a directory of the host. This is the only operation in which links may lead anywhere: the
    /// operator named the path, and [`path`](Self::path) shows what it resolved to. Fails on kernels without
    /// `openat2`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty()).on(path)?;
        let path_of_root = real_path(directory.as_fd(), path)?;
        let root = Self { path: path_of_root, directory, place: Place::Here };
        match root.metadata(Path::new(".")) {
            // A kernel without `openat2` is found here, with an error of its own.
            Err(error) if error.problem() == Problem::KernelTooOld => Err(error),
            _ => Ok(root),
        }
    }

    /// Wraps a directory of another mount namespace, such as the tree of a fork.
    ///
    /// `label` stands for its path in everything that shows or compares it, also in the targets of absolute
    /// links, so it has to be the absolute path that the commands of that namespace see. A server that runs
    /// as root changes the directory as `writer`; see [`Writer`]. Every root opened beneath inherits both.
    pub fn with_label(directory: OwnedFd, label: PathBuf, writer: Option<Writer>) -> Self {
        Self { directory, path: label, place: Place::Elsewhere { writer } }
    }

    /// Opens a directory beneath this one, following links that stay inside.
    pub fn open_root(&self, path: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = resolve::open(self, path, flags)?;
        Ok(self.below(path, directory))
    }

    /// Opens a directory beneath this one, without following links or crossing mount points.
    pub fn open_root_strict(&self, path: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = resolve::open_strict(self.as_fd(), path, flags, Mode::empty())?;
        Ok(self.below(path, directory))
    }

    /// Wraps a directory whose path is not known.
    pub(crate) fn from_descriptor(directory: OwnedFd) -> Self {
        Self { directory, path: PathBuf::new(), place: Place::Here }
    }

    fn below(&self, path: &Path, directory: OwnedFd) -> Self {
        let real = match self.place {
            Place::Here => real_path(directory.as_fd(), path),
            Place::Elsewhere { .. } => self
                .located(directory.as_fd(), path)
                // Without the slash that joining an empty path adds.
                .map(|below| self.path.join(below).components().collect()),
        };
        // The path of a deep directory may be longer than the kernel can return.
        let path = real.unwrap_or_else(|_| self.path.join(path));
        Self { directory, path, place: self.place }
    }

    /// Makes the calling thread act as the user who may change the directory, until the value is dropped.
    pub(crate) fn act_as_writer(&self) -> Result<ActingWriter, Error> {
        ActingWriter::begin(self.writer()).on(&self.path)
    }

    pub(crate) fn writer(&self) -> Option<Writer> {
        match self.place {
            Place::Here => None,
            Place::Elsewhere { writer } => writer,
        }
    }

    /// Returns the canonical path of a file, relative to this directory: without links, `.` and `..`. It is
    /// for comparing, not for opening.
    pub fn locate(&self, path: &Path) -> Result<PathBuf, Error> {
        let opened = resolve::open(self, path, OFlags::PATH)?;
        self.located(opened.as_fd(), path)
    }

    /// Returns the canonical path of an open file of this directory, relative to it.
    ///
    /// For a directory of another mount namespace, procfs tells the paths there, or paths from the top of the
    /// mount once the namespace has ended. Only the difference counts.
    pub(crate) fn located(&self, file: BorrowedFd<'_>, path: &Path) -> Result<PathBuf, Error> {
        let top = real_path(self.as_fd(), path)?;
        let real = real_path(file, path)?;
        // The prefix differs only if the root is renamed, or its namespace ends, between the two calls.
        let relative = real.strip_prefix(&top);
        relative.map(Path::to_owned).map_err(|_| Error::new(path, Problem::Contended))
    }

    /// Duplicates the descriptor of the directory. Both handles refer to the same directory.
    pub fn try_clone(&self) -> Result<Self, Error> {
        let directory = self.directory.try_clone().on(&self.path)?;
        Ok(Self { directory, path: self.path.clone(), place: self.place })
    }

    /// Returns the real path that the directory had when it was opened, or its label, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the device and inode numbers of the directory.
    pub fn identity(&self) -> Result<Identity, Error> {
        self.own_metadata().map(|metadata| metadata.identity)
    }

    /// Returns the metadata of the directory itself, which needs no permission on it.
    pub fn own_metadata(&self) -> Result<Metadata, Error> {
        stat(self.as_fd(), &self.path)
    }

    /// Returns the creation time of the directory, on file systems that store it. It cannot be set, so
    /// together with the identity it distinguishes the directory from later ones with the same inode.
    pub fn birth_time(&self) -> Option<SystemTime> {
        let found = statx(self.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
        let is_known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        is_known.then(|| time(found.stx_btime.tv_sec, u64::from(found.stx_btime.tv_nsec)))
    }

    /// Returns the number of the mount that the directory was reached through, on kernels that tell it. Entries
    /// cannot be renamed between two mounts, also of one file system.
    pub fn mount(&self) -> Option<u64> {
        let found = statx(self.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
        (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
    }

    /// Returns whether the owner may read, write and enter the directory.
    pub fn owner_has_access(&self) -> Result<bool, Error> {
        Ok(self.own_metadata()?.mode & OWNER_ALL == OWNER_ALL)
    }

    /// Gives the owner the right to read, write and enter the directory.
    pub fn grant_owner_access(&self) -> Result<(), Error> {
        if self.owner_has_access()? {
            return Ok(());
        }
        let mode = self.own_metadata()?.mode;
        let _acting = self.act_as_writer()?;
        // Through procfs, because a mode can be set neither on an `O_PATH`
        // descriptor nor on a name without following links.
        chmod(proc_path(self.as_fd()), Mode::from_raw_mode(mode | OWNER_ALL)).on(&self.path)
    }

    /// Returns the metadata of the file at a path, following links.
    pub fn metadata(&self, path: &Path) -> Result<Metadata, Error> {
        let file = resolve::open(self, path, OFlags::PATH)?;
        stat(file.as_fd(), path)
    }

    /// Returns the metadata of the entry itself, which may be a link.
    pub fn link_metadata(&self, path: &Path) -> Result<Metadata, Error> {
        if resolve::is_one_name(path) {
            // A single name needs no resolution: one system call instead of three.
            return Metadata::of_entry(self, path.as_os_str()).on(path);
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let file = resolve::open(self, path, flags)?;
        stat(file.as_fd(), path)
    }

    /// Returns the target of a link, which may be outside the root.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, Error> {
        let target = resolve::open_parent(self, path)?;
        resolve::read_link_at(target.parent.as_fd(), &target.name).on(path)
    }

    /// Returns the path outside that a path leads to through links or `..`, as their texts say; `None` if it
    /// stays inside. The path outside is not looked at.
    pub fn outside_target(&self, path: &Path) -> Result<Option<PathBuf>, Error> {
        let is_open = resolve::open(self, path, OFlags::PATH).is_ok();
        if is_open { Ok(None) } else { traversal::outside(self, path).on(path) }
    }

    /// Returns the free space of the file system that holds the directory.
    pub fn space(&self) -> Result<Space, Error> {
        self.capacity().map(|capacity| capacity.free)
    }

    /// Returns the size and the free space of the file system that holds the directory.
    pub fn capacity(&self) -> Result<Capacity, Error> {
        let stat = fstatvfs(self.reopen(Path::new("."))?).on(&self.path)?;
        let inodes = |count| if stat.f_files == 0 { u64::MAX } else { count };
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(Capacity {
            free: Space { bytes: bytes(stat.f_bavail), inodes: inodes(stat.f_favail) },
            total: Space { bytes: bytes(stat.f_blocks), inodes: inodes(stat.f_files) },
        })
    }

    /// Syncs a directory, so that its entries survive a power loss. The contents of its files are synced when
    /// they are written.
    pub fn sync_directory(&self, path: &Path) -> Result<(), Error> {
        self.reopen(path)?.sync_all().on(path)
    }

    /// Syncs everything on the file system that holds the directory.
    pub fn sync_file_system(&self) -> Result<(), Error> {
        syncfs(self.reopen(Path::new("."))?).on(&self.path)
    }

    /// Opens a directory for reading; an `O_PATH` descriptor cannot be read or synced.
    pub(crate) fn reopen(&self, path: &Path) -> Result<File, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        resolve::open(self, path, flags).map(File::from)
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
    let stat = fstat(file).on(path)?;
    Ok(Metadata::from(&stat))
}

/// Returns the current path of an open file, from procfs.
pub(crate) fn real_path(file: BorrowedFd<'_>, path: &Path) -> Result<PathBuf, Error> {
    let link = proc_path(file);
    let target = readlink(link, Vec::new()).on(path)?;
    Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
}

/// Returns the procfs path of an open file, for calls that take no descriptor.
pub(crate) fn proc_path(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
