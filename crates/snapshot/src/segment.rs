//! The format of segments: a header and records, one after the other.
//!
//! ```text
//! segment:  "carrel-segment-1" record record …
//! record:   "crR1" · kind u8 · codec u8 · 0 u16 · stored length u32 · length u32 · id 32 · body · check 8
//! ```
//!
//! `id` is the BLAKE3 hash of the content, `check` the first bytes of that of everything before it in the record.
//! The check finds a torn record without decompressing it; the id proves content when it is read. A record
//! that does not check is either the end of what was written before a crash, or damage; [`scan`] tells them apart
//! by searching for a whole record behind it.

use crate::disk::Disk;
use crate::error::StorageError;
use crate::object_id::ObjectId;

/// The start of a segment. The number changes with the format.
pub(crate) const MAGIC: &[u8; 16] = b"carrel-segment-1";

/// The part of the magic that all versions have.
const MAGIC_STEM: &[u8] = b"carrel-segment-";

const RECORD_MAGIC: &[u8; 4] = b"crR1";
const HEADER: usize = 48;
const CHECK: usize = 8;

/// The most bytes of one content; a length beyond it is damage.
pub(crate) const MAX_CONTENT: u64 = 1 << 30;

/// Content below this length does not shrink.
const MIN_COMPRESSED: usize = 64;

/// The most by which LZ4 makes content smaller.
const MAX_RATIO: usize = 255;

/// The purpose of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Content, found by its id.
    Object = 0,
    /// A checkpoint of undo.
    Checkpoint = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Raw = 0,
    Lz4 = 1,
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    codec: Codec,
    stored: u32,
    length: u32,
    pub(crate) id: ObjectId,
}

impl Header {
    /// Returns the length of the whole record.
    pub(crate) fn record_length(&self) -> u64 {
        (HEADER + CHECK) as u64 + u64::from(self.stored)
    }

    fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(RECORD_MAGIC);
        bytes[4] = self.kind as u8;
        bytes[5] = self.codec as u8;
        bytes[8..12].copy_from_slice(&self.stored.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..].copy_from_slice(self.id.as_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8; HEADER]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (&[kind, codec, 0, 0], rest) = rest.split_first_chunk::<4>()? else { return None };
        let (stored, rest) = rest.split_first_chunk::<4>()?;
        let (length, id) = rest.split_first_chunk::<4>()?;
        let header = Self {
            kind: match kind {
                0 => Kind::Object,
                1 => Kind::Checkpoint,
                _ => return None,
            },
            codec: match codec {
                0 => Codec::Raw,
                1 => Codec::Lz4,
                _ => return None,
            },
            stored: u32::from_le_bytes(*stored),
            length: u32::from_le_bytes(*length),
            id: ObjectId::from_bytes(id.try_into().ok()?),
        };
        let is_possible = u64::from(header.length) <= MAX_CONTENT && header.stored <= header.length;
        (magic == RECORD_MAGIC && is_possible).then_some(header)
    }
}

/// Appends a record to a buffer. The content has at most [`MAX_CONTENT`] bytes.
pub(crate) fn append(buffer: &mut Vec<u8>, kind: Kind, id: ObjectId, content: &[u8]) -> Header {
    let is_worthwhile = content.len() >= MIN_COMPRESSED;
    let compressed = is_worthwhile.then(|| lz4_flex::block::compress(content));
    let compressed = compressed.filter(|compressed| compressed.len() < content.len());
    let (codec, body) = match &compressed {
        Some(compressed) => (Codec::Lz4, compressed.as_slice()),
        None => (Codec::Raw, content),
    };
    let length = |length| u32::try_from(length).unwrap_or(u32::MAX);
    let header =
        Header { kind, codec, stored: length(body.len()), length: length(content.len()), id };
    let start = buffer.len();
    buffer.extend_from_slice(&header.to_bytes());
    buffer.extend_from_slice(body);
    let check = check(&buffer[start..]);
    buffer.extend_from_slice(&check);
    header
}

fn check(record: &[u8]) -> [u8; CHECK] {
    let hash = blake3::hash(record);
    let mut check = [0; CHECK];
    check.copy_from_slice(&hash.as_bytes()[..CHECK]);
    check
}

/// Returns the content of a record, if it is whole and has its id.
pub(crate) fn content(record: &[u8]) -> Option<(Header, Vec<u8>)> {
    let (header, body) = split(record)?;
    let length = usize::try_from(header.length).ok()?;
    let content = match header.codec {
        Codec::Raw => body.to_vec(),
        // What is damaged must not take any amount of memory.
        Codec::Lz4 if length / MAX_RATIO > body.len() => return None,
        Codec::Lz4 => lz4_flex::block::decompress(body, length).ok()?,
    };
    (content.len() == length && ObjectId::of(&content) == header.id).then_some((header, content))
}

/// Splits a record into its header and its body, without looking at the check.
fn split(record: &[u8]) -> Option<(Header, &[u8])> {
    let header = Header::of_bytes(record.first_chunk()?)?;
    let body = record.get(HEADER..record.len().checked_sub(CHECK)?)?;
    (body.len() == usize::try_from(header.stored).ok()?).then_some((header, body))
}

/// A record that was found by [`scan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) header: Header,
    pub(crate) offset: u64,
}

/// What [`scan`] found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    pub(crate) found: Vec<Found>,
    /// The end of the last whole record.
    pub(crate) end: u64,
    /// The bytes between whole records that belong to none.
    pub(crate) damaged: u64,
}

/// The bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// Finds the records of a segment from an offset on.
pub(crate) fn scan(disk: &dyn Disk, name: &str, from: u64) -> Result<Scanned, StorageError> {
    let length = disk.length(name)?.unwrap_or(0);
    let mut scanned = Scanned { end: from, ..Scanned::default() };
    let mut offset = from;
    let mut window = Window { disk, name, length, start: 0, bytes: Vec::new() };
    while offset + (HEADER + CHECK) as u64 <= length {
        let Some(header) = window.record_at(offset)? else {
            // Not a record. A torn end has no whole record behind it.
            match window.next_record(offset + 1)? {
                Some(next) => {
                    scanned.damaged += next - offset;
                    offset = next;
                    continue;
                }
                None => break,
            }
        };
        scanned.found.push(Found { header, offset });
        offset += header.record_length();
        scanned.end = offset;
    }
    Ok(scanned)
}

/// Checks the start of a segment; returns false if it is not one.
pub(crate) fn is_segment(disk: &dyn Disk, name: &str) -> Result<bool, StorageError> {
    let mut magic = [0; MAGIC.len()];
    if !disk.read_at(name, 0, &mut magic)? {
        return Ok(false);
    }
    let is_other_version = magic.starts_with(MAGIC_STEM) && magic != *MAGIC;
    if is_other_version {
        return Err(StorageError::NewerVersion { file: name.to_owned() });
    }
    Ok(magic == *MAGIC)
}

/// A part of a segment in memory.
struct Window<'a> {
    disk: &'a dyn Disk,
    name: &'a str,
    length: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// Returns `count` bytes at an offset; `None` beyond the end.
    fn at(&mut self, offset: u64, count: usize) -> Result<Option<&[u8]>, StorageError> {
        let end = offset.saturating_add(count as u64);
        if end > self.length {
            return Ok(None);
        }
        if offset < self.start || end > self.start + self.bytes.len() as u64 {
            let rest = usize::try_from(self.length - offset).unwrap_or(usize::MAX);
            self.bytes.resize(count.max(BLOCK).min(rest), 0);
            self.start = offset;
            if !self.disk.read_at(self.name, offset, &mut self.bytes)? {
                self.bytes.clear();
                return Ok(None);
            }
        }
        let skipped = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        Ok(self.bytes.get(skipped..).and_then(|bytes| bytes.get(..count)))
    }

    /// Returns the header of the whole record at an offset.
    fn record_at(&mut self, offset: u64) -> Result<Option<Header>, StorageError> {
        let header = self.at(offset, HEADER)?;
        let Some(header) = header.and_then(<[u8]>::first_chunk).and_then(Header::of_bytes) else {
            return Ok(None);
        };
        let length = usize::try_from(header.record_length()).unwrap_or(usize::MAX);
        let Some(record) = self.at(offset, length)? else { return Ok(None) };
        let (checked, stored) = record.split_at(length - CHECK);
        Ok((check(checked) == stored).then_some(header))
    }

    /// Returns the offset of the next whole record.
    fn next_record(&mut self, from: u64) -> Result<Option<u64>, StorageError> {
        let mut offset = from;
        loop {
            let rest = self.length.saturating_sub(offset);
            let count = usize::try_from(rest.min(BLOCK as u64)).unwrap_or(BLOCK);
            if count < HEADER + CHECK {
                return Ok(None);
            }
            let Some(bytes) = self.at(offset, count)? else { return Ok(None) };
            let starts: Vec<_> = bytes
                .windows(RECORD_MAGIC.len())
                .enumerate()
                .filter(|(_, window)| *window == RECORD_MAGIC)
                .map(|(start, _)| offset + start as u64)
                .collect();
            for start in starts {
                if self.record_at(start)?.is_some() {
                    return Ok(Some(start));
                }
            }
            // The magic may lie across the border.
            offset += (count - RECORD_MAGIC.len() + 1) as u64;
        }
    }
}
