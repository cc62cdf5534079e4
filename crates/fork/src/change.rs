//! The changes of a fork, in the words that snapshots use.

use std::path::PathBuf;

use carrel_fsroot::FileKind;

/// A difference between a base and its fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    /// The difference.
    pub kind: ChangeKind,
    /// The entry of the base; `None` if it has none.
    pub old: Option<Node>,
    /// The entry of the fork.
    pub new: Option<Node>,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// The base does not have the entry.
    Added,
    /// The fork does not have the entry.
    Deleted,
    /// A file has other content, or a link another target.
    Modified,
    /// Only the permission bits differ, or those and extended attributes.
    Mode,
    /// The entry is of another type, such as a link in place of a file.
    Type,
    /// Only extended attributes differ.
    Attributes,
}

impl ChangeKind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Added, Self::Deleted, Self::Modified, Self::Mode, Self::Type, Self::Attributes];

    /// Returns the name used in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Modified => "modified",
            Self::Mode => "mode",
            Self::Type => "type",
            Self::Attributes => "attributes",
        }
    }
}

/// An entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File {
        /// The permission bits.
        mode: u32,
        /// The length in bytes.
        size: u64,
    },
    /// A directory.
    Directory {
        /// The permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Its target.
        target: PathBuf,
    },
    /// A FIFO, a socket or a device.
    Special(FileKind),
}

impl Node {
    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }
}
