//! The journal of a restore: what is to be changed, with the state before and after.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use carrel_domain::encoding::{Reader, put_length, put_number, put_text};
use carrel_fsroot::Durability;

use crate::compare::{Change, ChangeKind};
use crate::name::SnapshotId;
use crate::sealed;
use crate::tree::Node;
use crate::tree_writer::{Times, recorded_path};

pub(crate) const FILE: &str = "restore.journal";

const MAGIC: &[u8; 16] = b"carrel-restore-2";

/// The version before, which does not list directories that are made writable.
const MAGIC_1: &[u8; 16] = b"carrel-restore-1";

#[derive(Debug, PartialEq)]
pub(crate) struct Journal {
    /// The process that began the restore.
    pub(crate) process: u32,
    pub(crate) snapshot: SnapshotId,
    pub(crate) before: SnapshotId,
    pub(crate) times: Times,
    pub(crate) durability: Durability,
    pub(crate) changes: Vec<Change>,
    /// Directories that are made writable meanwhile, and the modes that they get back.
    pub(crate) granted: Vec<(PathBuf, u32)>,
}

impl Journal {
    /// Returns the changes that take these back.
    pub(crate) fn reversed(&self) -> Self {
        let reversed = |change: &Change| Change {
            path: change.path.clone(),
            kind: match &change.kind {
                ChangeKind::Added | ChangeKind::Renamed { .. } => ChangeKind::Deleted,
                ChangeKind::Deleted => ChangeKind::Added,
                kind @ (ChangeKind::Modified | ChangeKind::Mode | ChangeKind::Type) => kind.clone(),
            },
            old: change.new.clone(),
            new: change.old.clone(),
        };
        let (changes, granted) =
            (self.changes.iter().map(reversed).collect(), self.granted.clone());
        Self { changes, granted, ..*self }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put_number(&mut bytes, u64::from(self.process));
        put_number(&mut bytes, self.snapshot.0);
        put_number(&mut bytes, self.before.0);
        bytes.push(match self.times {
            Times::Now => 0,
            Times::Recorded => 1,
        });
        bytes.push(match self.durability {
            Durability::Synced => 0,
            Durability::Atomic => 1,
            Durability::Buffered => 2,
        });
        put_length(&mut bytes, self.changes.len());
        for change in &self.changes {
            put_text(&mut bytes, change.path.as_os_str().as_bytes());
            bytes.push(match change.kind {
                ChangeKind::Added | ChangeKind::Renamed { .. } => 0,
                ChangeKind::Deleted => 1,
                ChangeKind::Modified => 2,
                ChangeKind::Mode => 3,
                ChangeKind::Type => 4,
            });
            for node in [&change.old, &change.new] {
                bytes.push(u8::from(node.is_some()));
                if let Some(node) = node {
                    node.put(&mut bytes);
                }
            }
        }
        put_granted(&mut bytes, &self.granted);
        sealed::seal(bytes)
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let lists_granted = bytes.starts_with(MAGIC);
        let mut reader = sealed::open(bytes, if lists_granted { MAGIC } else { MAGIC_1 })?;
        let process = reader.small()?;
        let (snapshot, before) = (SnapshotId(reader.number()?), SnapshotId(reader.number()?));
        let times = match reader.byte()? {
            0 => Times::Now,
            1 => Times::Recorded,
            _ => return None,
        };
        let durability = match reader.byte()? {
            0 => Durability::Synced,
            1 => Durability::Atomic,
            2 => Durability::Buffered,
            _ => return None,
        };
        let changes =
            (0..reader.count()?).map(|_| change(&mut reader)).collect::<Option<Vec<_>>>()?;
        let granted = if lists_granted { read_granted(&mut reader)? } else { Vec::new() };
        let journal = Self { process, snapshot, before, times, durability, changes, granted };
        reader.is_empty().then_some(journal)
    }
}

/// Appends the directories that are made writable, with their modes.
pub(crate) fn put_granted(bytes: &mut Vec<u8>, granted: &[(PathBuf, u32)]) {
    put_length(bytes, granted.len());
    for (path, mode) in granted {
        put_text(bytes, path.as_os_str().as_bytes());
        put_number(bytes, u64::from(*mode));
    }
}

pub(crate) fn read_granted(reader: &mut Reader<'_>) -> Option<Vec<(PathBuf, u32)>> {
    let count = reader.count()?;
    let one = |_| {
        let path = PathBuf::from(reader.os()?);
        let mode = reader.small()?;
        (recorded_path(&path).as_ref() == Some(&path)).then_some((path, mode))
    };
    (0..count).map(one).collect()
}

fn change(reader: &mut Reader<'_>) -> Option<Change> {
    let path = PathBuf::from(reader.os()?);
    let is_recorded = !path.as_os_str().is_empty() && recorded_path(&path).as_ref() == Some(&path);
    let kind = match reader.byte()? {
        0 => ChangeKind::Added,
        1 => ChangeKind::Deleted,
        2 => ChangeKind::Modified,
        3 => ChangeKind::Mode,
        4 => ChangeKind::Type,
        _ => return None,
    };
    let mut node = || match reader.byte()? {
        0 => Some(None),
        1 => Node::read(reader).map(Some),
        _ => None,
    };
    let (old, new) = (node()?, node()?);
    is_recorded.then_some(Change { path, kind, old, new })
}
