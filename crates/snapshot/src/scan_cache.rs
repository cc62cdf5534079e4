//! The tree as the last scan found it, with the change keys of its files and directories.
//!
//! A cache: what is on disk has a checksum, and is dropped if that or its version does not fit. Content that it names
//! and the store does not have is read again.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use carrel_domain::encoding::{Reader, put_length, put_number, put_text};
use carrel_fsroot::FileKind;

use crate::change_key::ChangeKey;
use crate::object_id::ObjectId;
use crate::objects::Objects;
use crate::scan_options::{Ignored, ScanLimits};
use crate::sealed;
use crate::tree::{Node, Omission, REPOSITORY};

const MAGIC: &[u8; 16] = b"carrel-scanned-1";

/// Bounds the recursion of reading damaged bytes.
const MAX_DEPTH: usize = 512;

/// The last scan of a workspace.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ScanCache {
    /// The device of the workspace; no other one is entered.
    pub(crate) device: u64,
    /// The options by which the lists were made.
    pub(crate) options: (Ignored, ScanLimits),
    pub(crate) top: KnownDirectory,
}

/// A directory as it was found.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct KnownDirectory {
    pub(crate) key: ChangeKey,
    /// The key tells whether an entry was added or removed.
    pub(crate) is_settled: bool,
    /// The keys of the files with ignore rules.
    pub(crate) rule_keys: Vec<ChangeKey>,
    /// Sorted by name.
    pub(crate) children: Vec<Known>,
    /// The stored list of the children; `None` if they changed since.
    pub(crate) list: Option<ObjectId>,
}

/// An entry as it was found.
#[derive(Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) name: OsString,
    pub(crate) is_directory: bool,
    pub(crate) is_ignored: bool,
    pub(crate) state: State,
}

/// What is known of an entry.
#[derive(Debug, PartialEq)]
pub(crate) enum State {
    /// It has to be looked at.
    Unknown,
    /// It is `.git`, whose presence ends the rules of an outer repository.
    Repository,
    File {
        key: ChangeKey,
        mode: u32,
        id: ObjectId,
        is_settled: bool,
    },
    Link {
        key: ChangeKey,
        target: PathBuf,
    },
    Directory {
        mode: u32,
        directory: Box<KnownDirectory>,
    },
    LeftOut(Omission),
}

impl Known {
    pub(crate) fn new(name: OsString, kind: FileKind) -> Self {
        let is_repository = name == REPOSITORY;
        let state = if is_repository { State::Repository } else { State::Unknown };
        Self { name, is_directory: kind == FileKind::Directory, is_ignored: false, state }
    }

    /// Returns what a snapshot has of the entry; `None` for what it must not have.
    pub(crate) fn node(&self) -> Option<Node> {
        match &self.state {
            State::Unknown => None,
            State::Repository => Some(Node::LeftOut(Omission::Repository)),
            State::File { key, mode, id, .. } => {
                Some(Node::File { mode: *mode, modified: key.modified, size: key.size, id: *id })
            }
            State::Link { target, .. } => Some(Node::Link { target: target.clone() }),
            State::Directory { mode, directory } => {
                directory.list.map(|id| Node::Directory { mode: *mode, id })
            }
            State::LeftOut(omission) => Some(Node::LeftOut(*omission)),
        }
    }
}

impl KnownDirectory {
    /// Forgets the stored lists, which other options would make different.
    pub(crate) fn forget_lists(&mut self) {
        self.list = None;
        for child in &mut self.children {
            if let State::Directory { directory, .. } = &mut child.state {
                directory.forget_lists();
            }
        }
    }

    /// Forgets content that is not stored, or may not stay stored.
    pub(crate) fn retain_stored(&mut self, objects: &Objects) {
        self.list = self.list.filter(|id| objects.is_reusable(id));
        for child in &mut self.children {
            match &mut child.state {
                State::File { id, .. } if !objects.is_reusable(id) => {
                    child.state = State::Unknown;
                    self.list = None;
                }
                State::Directory { directory, .. } => directory.retain_stored(objects),
                State::Unknown
                | State::Repository
                | State::File { .. }
                | State::Link { .. }
                | State::LeftOut(_) => {}
            }
        }
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        self.key.put(bytes);
        bytes.push(u8::from(self.is_settled));
        put_length(bytes, self.rule_keys.len());
        self.rule_keys.iter().for_each(|key| key.put(bytes));
        bytes.push(u8::from(self.list.is_some()));
        if let Some(list) = &self.list {
            bytes.extend_from_slice(list.as_bytes());
        }
        put_length(bytes, self.children.len());
        for child in &self.children {
            put_text(bytes, child.name.as_bytes());
            bytes.push(u8::from(child.is_directory) | u8::from(child.is_ignored) << 1);
            child.state.put(bytes);
        }
    }

    fn read(reader: &mut Reader<'_>, depth: usize) -> Option<Self> {
        let key = ChangeKey::read(reader)?;
        let is_settled = reader.byte()? == 1;
        let rule_keys =
            (0..reader.count()?).map(|_| ChangeKey::read(reader)).collect::<Option<_>>()?;
        let list = if reader.byte()? == 1 { Some(ObjectId::read(reader)?) } else { None };
        let children = (0..reader.count()?)
            .map(|_| {
                let name = reader.os()?;
                let flags = reader.byte()?;
                Some(Known {
                    name,
                    is_directory: flags & 1 != 0,
                    is_ignored: flags & 2 != 0,
                    state: State::read(reader, depth)?,
                })
            })
            .collect::<Option<_>>()?;
        Some(Self { key, is_settled, rule_keys, children, list })
    }
}

impl State {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Unknown => bytes.push(0),
            Self::Repository => bytes.push(1),
            Self::File { key, mode, id, is_settled } => {
                bytes.extend_from_slice(&[2, u8::from(*is_settled)]);
                key.put(bytes);
                put_number(bytes, u64::from(*mode));
                bytes.extend_from_slice(id.as_bytes());
            }
            Self::Link { key, target } => {
                bytes.push(3);
                key.put(bytes);
                put_text(bytes, target.as_os_str().as_bytes());
            }
            Self::Directory { mode, directory } => {
                bytes.push(4);
                put_number(bytes, u64::from(*mode));
                directory.put(bytes);
            }
            Self::LeftOut(omission) => bytes.extend_from_slice(&[5, omission.to_byte()]),
        }
    }

    fn read(reader: &mut Reader<'_>, depth: usize) -> Option<Self> {
        Some(match reader.byte()? {
            0 => Self::Unknown,
            1 => Self::Repository,
            2 => {
                let is_settled = reader.byte()? == 1;
                let key = ChangeKey::read(reader)?;
                Self::File { key, mode: reader.small()?, id: ObjectId::read(reader)?, is_settled }
            }
            3 => Self::Link { key: ChangeKey::read(reader)?, target: PathBuf::from(reader.os()?) },
            4 if depth < MAX_DEPTH => Self::Directory {
                mode: reader.small()?,
                directory: Box::new(KnownDirectory::read(reader, depth + 1)?),
            },
            5 => Self::LeftOut(Omission::of_byte(reader.byte()?)?),
            _ => return None,
        })
    }
}

impl ScanCache {
    /// Returns the change key of a file or link as the last scan found it.
    pub(crate) fn key_of(&self, path: &Path) -> Option<ChangeKey> {
        let mut directory = &self.top;
        let mut found = None;
        for name in path {
            let place =
                directory.children.binary_search_by(|child| (*child.name).cmp(name)).ok()?;
            match &directory.children.get(place)?.state {
                State::Directory { directory: below, .. } => directory = below,
                State::File { key, .. } | State::Link { key, .. } => found = Some(*key),
                State::Unknown | State::Repository | State::LeftOut(_) => return None,
            }
        }
        found
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put_number(&mut bytes, self.device);
        let (ignored, limits) = self.options;
        bytes.push(u8::from(ignored == Ignored::Taken));
        put_number(&mut bytes, limits.file_bytes);
        put_number(&mut bytes, limits.total_bytes);
        self.top.put(&mut bytes);
        sealed::seal(bytes)
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = sealed::open(bytes, MAGIC)?;
        let device = reader.number()?;
        let ignored = if reader.byte()? == 1 { Ignored::Taken } else { Ignored::LeftAlone };
        let limits = ScanLimits { file_bytes: reader.number()?, total_bytes: reader.number()? };
        let top = KnownDirectory::read(&mut reader, 0)?;
        reader.is_empty().then_some(Self { device, options: (ignored, limits), top })
    }
}
