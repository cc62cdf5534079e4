//! The readers of stored bytes, for fuzzing. Where bytes end with a checksum, the right one is appended, so that the reader
//! behind it is reached.

use std::path::{Component, Path};

use crate::disk::Disk;
use crate::error::StorageError;
use crate::journal::Journal;
use crate::object_id::ObjectId;
use crate::object_index::ObjectIndex;
use crate::scan_cache::ScanCache;
use crate::segment;
use crate::snapshot::Snapshot;
use crate::tree::{begin_list, put_entry, read_list};
use crate::undo::UndoJournal;
use crate::undo_record::Record;

/// A disk with one file that is only read.
#[derive(Debug)]
struct Memory(Vec<u8>);

fn read_only<T>() -> Result<T, StorageError> {
    Err(StorageError::io("memory")(std::io::ErrorKind::ReadOnlyFilesystem.into()))
}

impl Disk for Memory {
    fn list(&self) -> Result<Vec<String>, StorageError> {
        Ok(vec!["memory".to_owned()])
    }

    fn length(&self, _: &str) -> Result<Option<u64>, StorageError> {
        Ok(Some(self.0.len() as u64))
    }

    fn read_at(&self, _: &str, offset: u64, buffer: &mut [u8]) -> Result<bool, StorageError> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let Some(found) = self.0.get(from..).and_then(|rest| rest.get(..buffer.len())) else {
            return Ok(false);
        };
        buffer.copy_from_slice(found);
        Ok(true)
    }

    fn write_at(&self, _: &str, _: u64, _: &[u8]) -> Result<(), StorageError> {
        read_only()
    }

    fn truncate(&self, _: &str, _: u64) -> Result<(), StorageError> {
        read_only()
    }

    fn sync(&self, _: &str) -> Result<(), StorageError> {
        read_only()
    }

    fn rename(&self, _: &str, _: &str) -> Result<(), StorageError> {
        read_only()
    }

    fn remove(&self, _: &str) -> Result<(), StorageError> {
        read_only()
    }

    fn sync_names(&self) -> Result<(), StorageError> {
        read_only()
    }
}

fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    [bytes, ObjectId::of(bytes).as_bytes()].concat()
}

fn is_inside(path: &Path) -> bool {
    let is_name = |name| matches!(name, Component::Normal(name) if name != ".git");
    path.is_relative() && path.components().all(is_name)
}

/// Reads bytes as a segment, with a whole record of them at the end, and as a record.
pub fn segment(bytes: &[u8]) {
    if let Some((header, content)) = segment::content(bytes) {
        assert_eq!(ObjectId::of(&content), header.id);
    }
    let mut stored = bytes.to_vec();
    let end = segment::append(&mut stored, segment::Kind::Object, ObjectId::of(bytes), bytes);
    let length = stored.len() as u64;
    let Ok(scanned) = segment::scan(&Memory(stored), "memory", 0) else { return };
    // A whole record is found behind any bytes.
    assert_eq!(scanned.end, length);
    assert_eq!(scanned.found.last().map(|found| found.header), Some(end));
}

/// Reads bytes as the list of a directory.
pub fn list(bytes: &[u8]) {
    let magic = begin_list(0);
    for bytes in [bytes.to_vec(), [&magic[..magic.len() - 1], bytes].concat()] {
        let Some(entries) = read_list(&bytes) else { continue };
        let mut written = begin_list(entries.len());
        for entry in &entries {
            put_entry(&mut written, &entry.name, &entry.node);
            assert_eq!(Path::new(&entry.name).components().count(), 1);
        }
        assert_eq!(read_list(&written).as_ref(), Some(&entries));
    }
}

/// Reads bytes as the record of a snapshot.
pub fn record(bytes: &[u8]) {
    let checksum = format!("\n{}\n", ObjectId::of(bytes));
    for bytes in [bytes.to_vec(), [bytes, checksum.as_bytes()].concat()] {
        if let Ok(snapshot) = Snapshot::of_bytes(&bytes) {
            assert_eq!(Snapshot::of_bytes(&snapshot.to_bytes()).as_ref(), Ok(&snapshot));
        }
    }
}

/// Reads bytes as the index of stored content, and as the last scan.
pub fn index(bytes: &[u8]) {
    for magic in [&b""[..], b"carrel-objects-1", b"carrel-scanned-1"] {
        let bytes = with_checksum(&[magic, bytes].concat());
        drop((ObjectIndex::of_bytes(&bytes), ScanCache::of_bytes(&bytes)));
    }
}

/// Reads bytes as a checkpoint of undo.
pub fn undo(bytes: &[u8]) {
    if let Some(record) = Record::of_bytes(bytes) {
        assert!(record.touched.iter().all(|touched| is_inside(&touched.path)));
        assert_eq!(Record::of_bytes(&record.to_bytes()).as_ref(), Some(&record));
    }
}

/// Reads bytes as the journals of a restore and of an undo.
pub fn journal(bytes: &[u8]) {
    for magic in [&b""[..], b"carrel-restore-1", b"carrel-restore-2"] {
        let bytes = with_checksum(&[magic, bytes].concat());
        let _ = UndoJournal::of_bytes(&bytes);
        if let Some(journal) = Journal::of_bytes(&bytes) {
            assert!(journal.changes.iter().all(|change| is_inside(&change.path)));
            assert!(journal.granted.iter().all(|(path, _)| is_inside(path)));
            assert_eq!(Journal::of_bytes(&journal.to_bytes()).as_ref(), Some(&journal));
        }
    }
}
