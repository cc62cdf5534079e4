//! File types and metadata.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
    /// A type that the file system does not report.
    Unknown,
}

impl From<FileType> for FileKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Self::Device,
            FileType::Unknown => Self::Unknown,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::File => "regular file",
            Self::Directory => "directory",
            Self::Link => "symbolic link",
            Self::Fifo => "FIFO",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Unknown => "file of unknown kind",
        })
    }
}

/// The metadata of a file, from `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The type of the file.
    pub kind: FileKind,
    /// The length in bytes.
    pub size: u64,
    /// The bytes of its allocated blocks; fewer than `size` for a sparse file.
    pub allocated: u64,
    /// The permission bits with set-user-id, set-group-id and sticky, without the type.
    pub mode: u32,
    /// The user id of the owner.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
    /// The number of hard links.
    pub links: u64,
    /// The device that a device file stands for; 0 for 0:0 and for other types.
    pub device: u64,
    /// The device and inode numbers, which identify the file while it exists.
    pub identity: crate::Identity,
    /// The time of the last change of contents. The owner can set it to any value.
    pub modified: SystemTime,
    /// The time of the last change of contents, mode, owner or links. Only the kernel sets it.
    pub changed: SystemTime,
}

/// The unit in which `stat` counts allocated blocks, independent of the file system's block size.
const BLOCK: u64 = 512;

impl Metadata {
    /// Returns the metadata of the entry with this name in an open directory. A link is not followed.
    pub(crate) fn of_entry(parent: impl AsFd, name: &OsStr) -> Result<Self, Errno> {
        Ok(Self::from(&statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }
}

impl From<&Stat> for Metadata {
    fn from(stat: &Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode).into(),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            allocated: u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            links: stat.st_nlink,
            device: stat.st_rdev,
            identity: crate::Identity { device: stat.st_dev, inode: stat.st_ino },
            modified: time(stat.st_mtime, stat.st_mtime_nsec),
            changed: time(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// Times before 1970 are shown as 1970.
pub(crate) fn time(seconds: i64, nanos: u64) -> SystemTime {
    let nanos = u32::try_from(nanos).unwrap_or(0);
    UNIX_EPOCH + Duration::new(u64::try_from(seconds).unwrap_or(0), nanos)
}
