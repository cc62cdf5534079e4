//! Manifests: the recorded list of each directory.
//!
//! The list of a directory names its entries in order, with the id of the content of each file and of the list of
//! each directory, and is stored by its own id like any content. The id of the top list therefore stands for the
//! whole tree, directories that did not change are stored once for all snapshots, and comparing two trees skips
//! the equal ones.
//!
//! Recorded are the permission bits, for a file also the time of its last change, and the target of a link.
//! Owners, extended attributes, set-user-id and hard links are not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use carrel_domain::encoding::{Reader, put_length, put_number, put_text};

use crate::object_id::ObjectId;

/// The start of each list. The number changes with the format.
const MAGIC: &[u8; 4] = b"crT1";

/// An entry of a recorded directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name, which need not be UTF-8.
    pub name: OsString,
    /// What was there.
    pub node: Node,
}

/// What a name stood for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File {
        /// The permission bits, without set-user-id and set-group-id.
        mode: u32,
        /// The time of the last change, in nanoseconds since 1970.
        modified: u64,
        /// The length in bytes.
        size: u64,
        /// The content.
        id: ObjectId,
    },
    /// A directory.
    Directory {
        /// The permission bits.
        mode: u32,
        /// The list of its entries.
        id: ObjectId,
    },
    /// A symbolic link.
    Link {
        /// Its target.
        target: PathBuf,
    },
    /// Something that was there and was not taken. A restore leaves it alone.
    LeftOut(Omission),
}

/// The reason why something was not taken into a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Omission {
    /// An ignore rule excludes it.
    Ignored,
    /// The file is larger than the limit for one file.
    TooLarge,
    /// The files before it reached the limit for all.
    OverTotal,
    /// It is a FIFO, a socket or a device.
    Special,
    /// It may not be read.
    Unreadable,
    /// It was changed each time while it was read.
    Torn,
    /// Another file system is mounted there.
    Mount,
    /// It lies too deep.
    TooDeep,
    /// It is the `.git` of a repository.
    Repository,
}

impl Omission {
    const ALL: [Self; 9] = [
        Self::Ignored,
        Self::TooLarge,
        Self::OverTotal,
        Self::Special,
        Self::Unreadable,
        Self::Torn,
        Self::Mount,
        Self::TooDeep,
        Self::Repository,
    ];

    /// Returns the name used in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::TooLarge => "too_large",
            Self::OverTotal => "over_total",
            Self::Special => "special",
            Self::Unreadable => "unreadable",
            Self::Torn => "torn",
            Self::Mount => "mount",
            Self::TooDeep => "too_deep",
            Self::Repository => "repository",
        }
    }

    pub(crate) fn to_byte(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

/// The name that a list has only to say that it is left alone.
pub(crate) const REPOSITORY: &str = ".git";

const FILE: u8 = 0;
const DIRECTORY: u8 = 1;
const LINK: u8 = 2;
const LEFT_OUT: u8 = 3;

impl Node {
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::File { mode, modified, size, id } => {
                bytes.push(FILE);
                put_number(bytes, u64::from(*mode));
                put_number(bytes, *modified);
                put_number(bytes, *size);
                bytes.extend_from_slice(id.as_bytes());
            }
            Self::Directory { mode, id } => {
                bytes.push(DIRECTORY);
                put_number(bytes, u64::from(*mode));
                bytes.extend_from_slice(id.as_bytes());
            }
            Self::Link { target } => {
                bytes.push(LINK);
                put_text(bytes, target.as_os_str().as_bytes());
            }
            Self::LeftOut(omission) => bytes.extend_from_slice(&[LEFT_OUT, omission.to_byte()]),
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(match reader.byte()? {
            FILE => Self::File {
                mode: mode(reader)?,
                modified: reader.number()?,
                size: reader.number()?,
                id: ObjectId::read(reader)?,
            },
            DIRECTORY => Self::Directory { mode: mode(reader)?, id: ObjectId::read(reader)? },
            LINK => Self::Link { target: link_target(reader)? },
            LEFT_OUT => Self::LeftOut(Omission::of_byte(reader.byte()?)?),
            _ => return None,
        })
    }

    /// Returns whether two nodes are the same but for the time of the last change.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { mode, id, .. }, Self::File { mode: other_mode, id: other_id, .. }) => {
                (mode, id) == (other_mode, other_id)
            }
            _ => self == other,
        }
    }
}

fn mode(reader: &mut Reader<'_>) -> Option<u32> {
    reader.small().filter(|mode| *mode <= 0o7777)
}

fn link_target(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let target = reader.text()?;
    let is_possible = !target.is_empty() && !target.contains(&0);
    is_possible.then(|| PathBuf::from(OsString::from_vec(target.to_vec())))
}

/// Appends an entry to the list of a directory.
pub(crate) fn put_entry(list: &mut Vec<u8>, name: &OsStr, node: &Node) {
    put_text(list, name.as_bytes());
    node.put(list);
}

/// Begins the list of a directory with this number of entries.
pub(crate) fn begin_list(count: usize) -> Vec<u8> {
    let mut list = Vec::with_capacity(64 * count);
    list.extend_from_slice(MAGIC);
    put_length(&mut list, count);
    list
}

/// Reads the list of a directory. Its names are single components in strict order.
pub(crate) fn read_list(bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut reader = Reader::new(bytes.strip_prefix(MAGIC)?);
    let count = reader.count()?;
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let name = reader.name()?;
        let node = Node::read(&mut reader)?;
        let is_repository = node == Node::LeftOut(Omission::Repository);
        let is_in_order = entries.last().is_none_or(|last| last.name < name);
        if !is_in_order || is_repository != (name == REPOSITORY) {
            return None;
        }
        entries.push(Entry { name, node });
    }
    reader.is_empty().then_some(entries)
}
