//! The steps that make a base what its fork is.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_fsroot::{Attribute, Metadata};

use crate::change::Change;

/// The changes of a fork, and the steps that bring them into the base.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// In path order.
    pub(crate) changes: Vec<Change>,
    /// In the order in which they are taken.
    pub(crate) steps: Vec<Step>,
    /// Files and directories of the fork whose contents move into the base.
    pub(crate) moved: Vec<PathBuf>,
}

/// One step. Entries are recognised by their inodes, so a step that was taken is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Strips an entry of the fork of the attributes of the overlay, but for these.
    Strip { path: PathBuf, inode: u64, mode: u32, attributes: Vec<Attribute> },
    /// Removes a whiteout from a directory of the fork, whose mode is given and which moves as a whole.
    Discard { path: PathBuf, inode: u64, parent_mode: u32 },
    /// Moves an entry of the base into the trash.
    Aside { path: PathBuf, entry: Stamp },
    /// Moves an entry of the fork into the base, where it replaces a file.
    Install { path: PathBuf, inode: u64, replaced: Option<Stamp>, directory_mode: Option<u32> },
    /// Gives a directory of the base the mode, the time and, if they differ, the attributes that it has in the fork;
    /// a file as it is in the base, the time.
    Finish {
        path: PathBuf,
        inode: u64,
        mode: u32,
        modified: Time,
        attributes: Option<Vec<Attribute>>,
    },
}

impl Step {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Strip { path, .. }
            | Self::Discard { path, .. }
            | Self::Aside { path, .. }
            | Self::Install { path, .. }
            | Self::Finish { path, .. } => path,
        }
    }
}

/// An entry of the base that goes. An inode number is used again when its file is gone, with another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) inode: u64,
    pub(crate) modified: Time,
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self { inode: metadata.identity.inode, modified: metadata.modified.into() }
    }
}

/// A time in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) u64);

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Time> for SystemTime {
    fn from(time: Time) -> Self {
        UNIX_EPOCH + Duration::from_nanos(time.0)
    }
}
