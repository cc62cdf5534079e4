//! The journal of a promotion: the steps, and the changes that they make.

use std::path::Path;

use carrel_domain::encoding::{Reader, put_number, put_os, put_text};
use carrel_fsroot::{
    AtomicFile, Attribute, Collision, Durability, Error, FileKind, Root, WriteOptions,
    unfinished_write_pid,
};

use crate::change::{Change, ChangeKind, Node};
use crate::plan::{Stamp, Step, Time};

const FILE: &str = "promote.journal";

const MAGIC: &[u8; 16] = b"carrel-promote-1";

/// Bounds the memory of reading a journal. A plan of a million entries has less.
const MAX_BYTES: u64 = 1 << 30;

/// Only the server reads and writes it.
const MODE: u32 = 0o600;

#[derive(Debug, PartialEq)]
pub(crate) struct Journal {
    pub(crate) durability: Durability,
    /// The inodes of base, fork and trash.
    pub(crate) roots: [u64; 3],
    /// The start of the names in the trash.
    pub(crate) trash_name: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) changes: Vec<Change>,
}

/// What is found under the name of the journal.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    Damaged,
    Journal(Journal),
}

/// Returns whether there is a journal.
pub(crate) fn exists(directory: &Root) -> Result<bool, Error> {
    Ok(crate::tree::metadata(directory, Path::new(FILE))?.is_some())
}

pub(crate) fn read(directory: &Root) -> Result<Found, Error> {
    match directory.read_strict(Path::new(FILE), MAX_BYTES) {
        Err(error) if error.is_not_found() => Ok(Found::Nothing),
        Err(error) => Err(error),
        Ok(bytes) => Ok(Journal::of_bytes(&bytes).map_or(Found::Damaged, Found::Journal)),
    }
}

/// Removes journals that processes were writing when they ended.
pub(crate) fn remove_unfinished(directory: &Root) -> Result<(), Error> {
    for entry in directory.list(Path::new("."))? {
        if unfinished_write_pid(&entry.name).is_some() {
            directory.remove_file(Path::new(&entry.name))?;
        }
    }
    Ok(())
}

/// Removes the journal. A missing one is fine.
pub(crate) fn remove(directory: &Root, durability: Durability) -> Result<(), Error> {
    match directory.remove_file(Path::new(FILE)) {
        Err(error) if error.is_not_found() => {}
        removed => removed?,
    }
    match durability {
        Durability::Synced | Durability::Atomic => directory.sync_directory(Path::new(".")),
        Durability::Buffered => Ok(()),
    }
}

impl Journal {
    /// Writes the journal under another name. It gets its own when that is committed.
    pub(crate) fn begin_write(&self, directory: &Root) -> Result<AtomicFile, Error> {
        let durability = match self.durability {
            Durability::Synced | Durability::Atomic => Durability::Synced,
            Durability::Buffered => Durability::Buffered,
        };
        let options =
            WriteOptions { collision: Collision::Replace, durability, new_mode: Some(MODE) };
        let mut file = directory.begin_write(Path::new(FILE), options)?;
        file.append(&self.to_bytes())?;
        Ok(file)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(match self.durability {
            Durability::Synced => 0,
            Durability::Atomic => 1,
            Durability::Buffered => 2,
        });
        for inode in self.roots {
            put_number(&mut bytes, inode);
        }
        put_os(&mut bytes, &self.trash_name);
        put_number(&mut bytes, self.steps.len() as u64);
        for step in &self.steps {
            put_step(&mut bytes, step);
        }
        put_number(&mut bytes, self.changes.len() as u64);
        for change in &self.changes {
            put_os(&mut bytes, &change.path);
            let kind = ChangeKind::ALL.iter().position(|kind| *kind == change.kind);
            put_number(&mut bytes, kind.unwrap_or_default() as u64);
            put_node(&mut bytes, change.old.as_ref());
            put_node(&mut bytes, change.new.as_ref());
        }
        let checksum = blake3::hash(&bytes);
        bytes.extend_from_slice(checksum.as_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, checksum) = bytes.split_last_chunk::<{ blake3::OUT_LEN }>()?;
        if blake3::hash(body).as_bytes() != checksum {
            return None;
        }
        let mut reader = Reader::new(body.strip_prefix(MAGIC)?);
        let durability = match reader.byte()? {
            0 => Durability::Synced,
            1 => Durability::Atomic,
            2 => Durability::Buffered,
            _ => return None,
        };
        let roots = [reader.number()?, reader.number()?, reader.number()?];
        let trash_name = reader.os()?.into_string().ok()?;
        let steps = (0..reader.count()?).map(|_| step(&mut reader)).collect::<Option<_>>()?;
        let changes = (0..reader.count()?).map(|_| change(&mut reader)).collect::<Option<_>>()?;
        reader.is_empty().then_some(Self { durability, roots, trash_name, steps, changes })
    }
}

const STRIP: u8 = 0;
const DISCARD: u8 = 1;
const ASIDE: u8 = 2;
const INSTALL: u8 = 3;
const FINISH: u8 = 4;

fn put_step(bytes: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Strip { path, inode, mode, attributes } => {
            begin_step(bytes, STRIP, path, *inode);
            put_number(bytes, u64::from(*mode));
            put_attributes(bytes, attributes);
        }
        Step::Discard { path, inode, parent_mode } => {
            begin_step(bytes, DISCARD, path, *inode);
            put_number(bytes, u64::from(*parent_mode));
        }
        Step::Aside { path, entry } => {
            begin_step(bytes, ASIDE, path, entry.inode);
            put_number(bytes, entry.modified.0);
        }
        Step::Install { path, inode, replaced, directory_mode } => {
            begin_step(bytes, INSTALL, path, *inode);
            put_option(bytes, replaced.map(|replaced| replaced.inode));
            put_number(bytes, replaced.map_or(0, |replaced| replaced.modified.0));
            put_option(bytes, directory_mode.map(u64::from));
        }
        Step::Finish { path, inode, mode, modified, attributes } => {
            begin_step(bytes, FINISH, path, *inode);
            put_number(bytes, u64::from(*mode));
            put_number(bytes, modified.0);
            bytes.push(u8::from(attributes.is_some()));
            put_attributes(bytes, attributes.as_deref().unwrap_or_default());
        }
    }
}

fn begin_step(bytes: &mut Vec<u8>, tag: u8, path: &Path, inode: u64) {
    bytes.push(tag);
    put_os(bytes, path);
    put_number(bytes, inode);
}

fn step(reader: &mut Reader<'_>) -> Option<Step> {
    let (tag, path, inode) = (reader.byte()?, reader.path()?, reader.number()?);
    Some(match tag {
        STRIP => Step::Strip { path, inode, mode: mode(reader)?, attributes: attributes(reader)? },
        DISCARD => Step::Discard { path, inode, parent_mode: mode(reader)? },
        ASIDE => Step::Aside { path, entry: Stamp { inode, modified: Time(reader.number()?) } },
        INSTALL => {
            let (replaced, modified) = (option(reader.number()?), Time(reader.number()?));
            Step::Install {
                path,
                inode,
                replaced: replaced.map(|inode| Stamp { inode, modified }),
                directory_mode: option(reader.number()?).map(u32::try_from).transpose().ok()?,
            }
        }
        FINISH => {
            let (mode, modified) = (mode(reader)?, Time(reader.number()?));
            let has_attributes = reader.byte()? == 1;
            let attributes = Some(attributes(reader)?).filter(|_| has_attributes);
            Step::Finish { path, inode, mode, modified, attributes }
        }
        _ => return None,
    })
}

fn mode(reader: &mut Reader<'_>) -> Option<u32> {
    reader.small().filter(|mode| *mode <= 0o7777)
}

/// Writes a number that may be missing, of which the largest does not exist.
fn put_option(bytes: &mut Vec<u8>, value: Option<u64>) {
    put_number(bytes, value.map_or(0, |value| value.saturating_add(1)));
}

fn option(number: u64) -> Option<u64> {
    number.checked_sub(1)
}

fn put_attributes(bytes: &mut Vec<u8>, attributes: &[Attribute]) {
    put_number(bytes, attributes.len() as u64);
    for attribute in attributes {
        put_os(bytes, &attribute.name);
        put_text(bytes, &attribute.value);
    }
}

fn attributes(reader: &mut Reader<'_>) -> Option<Vec<Attribute>> {
    let attribute = |reader: &mut Reader<'_>| {
        Some(Attribute { name: reader.os()?, value: reader.text()?.to_vec() })
    };
    (0..reader.count()?).map(|_| attribute(reader)).collect()
}

const KINDS: [FileKind; 4] =
    [FileKind::Fifo, FileKind::Socket, FileKind::Device, FileKind::Unknown];

fn put_node(bytes: &mut Vec<u8>, node: Option<&Node>) {
    match node {
        None => bytes.push(0),
        Some(Node::File { mode, size }) => {
            bytes.push(1);
            put_number(bytes, u64::from(*mode));
            put_number(bytes, *size);
        }
        Some(Node::Directory { mode }) => {
            bytes.push(2);
            put_number(bytes, u64::from(*mode));
        }
        Some(Node::Link { target }) => {
            bytes.push(3);
            put_os(bytes, target);
        }
        Some(Node::Special(kind)) => {
            bytes.push(4);
            let kind = KINDS.iter().position(|known| known == kind);
            put_number(bytes, kind.unwrap_or(KINDS.len() - 1) as u64);
        }
    }
}

fn node(reader: &mut Reader<'_>, tag: u8) -> Option<Node> {
    Some(match tag {
        1 => Node::File { mode: mode(reader)?, size: reader.number()? },
        2 => Node::Directory { mode: mode(reader)? },
        3 => Node::Link { target: reader.os()?.into() },
        4 => Node::Special(*KINDS.get(usize::try_from(reader.number()?).ok()?)?),
        _ => return None,
    })
}

fn change(reader: &mut Reader<'_>) -> Option<Change> {
    let path = reader.path()?;
    let kind = usize::try_from(reader.number()?).ok()?;
    let kind = *ChangeKind::ALL.get(kind)?;
    let mut nodes = [None, None];
    for node_read in &mut nodes {
        match reader.byte()? {
            0 => {}
            tag => *node_read = Some(node(reader, tag)?),
        }
    }
    let [old, new] = nodes;
    Some(Change { path, kind, old, new })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        let attribute = Attribute { name: "user.overlay.x".into(), value: vec![0, 255] };
        let attributes = vec![attribute];
        Journal {
            durability: Durability::Buffered,
            roots: [1, 2, u64::MAX],
            trash_name: "t".to_owned(),
            steps: vec![
                Step::Strip { path: "a".into(), inode: 3, mode: 0o644, attributes: vec![] },
                Step::Strip { path: "a".into(), inode: 3, mode: 0, attributes: attributes.clone() },
                Step::Discard { path: "b/c".into(), inode: 4, parent_mode: 0o755 },
                Step::Aside { path: "d".into(), entry: Stamp { inode: 5, modified: Time(6) } },
                Step::Install {
                    path: "e".into(),
                    inode: 6,
                    replaced: Some(Stamp { inode: 0, modified: Time(1) }),
                    directory_mode: None,
                },
                Step::Install {
                    path: "f".into(),
                    inode: 7,
                    replaced: None,
                    directory_mode: Some(0o700),
                },
                Step::Finish {
                    path: "g".into(),
                    inode: 8,
                    mode: 0o1777,
                    modified: Time(9),
                    attributes: Some(attributes),
                },
                Step::Finish {
                    path: "g".into(),
                    inode: 8,
                    mode: 0o700,
                    modified: Time(0),
                    attributes: None,
                },
            ],
            changes: ChangeKind::ALL
                .into_iter()
                .map(|kind| Change {
                    path: "x/y".into(),
                    kind,
                    old: Some(Node::Link { target: "z".into() }),
                    new: Some(Node::Special(FileKind::Socket)),
                })
                .chain([Change {
                    path: "x".into(),
                    kind: ChangeKind::Mode,
                    old: Some(Node::File { mode: 0o644, size: 1 << 40 }),
                    new: Some(Node::Directory { mode: 0o755 }),
                }])
                .collect(),
        }
    }

    #[test]
    fn a_journal_comes_back_and_a_damaged_one_does_not() {
        let bytes = journal().to_bytes();
        assert_eq!(Journal::of_bytes(&bytes), Some(journal()));
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 1;
            assert_eq!(Journal::of_bytes(&damaged), None, "byte {index}");
            assert_eq!(Journal::of_bytes(&bytes[..index]), None, "cut at {index}");
        }
    }

    #[test]
    fn random_bytes_with_a_right_checksum_never_panic() {
        let mut random = fastrand::Rng::with_seed(3);
        let whole = journal().to_bytes();
        let body = &whole[..whole.len() - blake3::OUT_LEN];
        for _ in 0..20_000 {
            let mut bytes = body.to_vec();
            for _ in 0..random.usize(1..6) {
                let index = random.usize(MAGIC.len()..bytes.len());
                bytes[index] = random.u8(..);
            }
            bytes.truncate(random.usize(MAGIC.len()..=bytes.len()));
            bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
            Journal::of_bytes(&bytes);
        }
    }
}
