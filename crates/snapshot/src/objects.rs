//! Content by its hash, in segments.
//!
//! Content is appended once and never changed. The index in memory says where each content lies; its copy on disk
//! is a cache, written only after the segments that it covers were synced, so what it says is true after a power
//! loss. What was appended since is found by scanning the ends of the segments, and an index that does not fit
//! them is made again from all of them.
//!
//! Several processes append in turn, each under the lock of the store. A process that takes the lock therefore looks at
//! the ends of the segments that it knows and for segments that others began, and no segment is ever begun in
//! the place of another one.
//!
//! After a sync that failed, the kernel may have dropped what it could not write, and reports no error for it again. What
//! the segment got since the last sync that succeeded is then doubtful: it can be read while it is there, and is stored
//! again rather than be counted on. An empty file beside the segment, `doubtful-NNNNNN-OFFSET`, says so to all
//! processes until the segment is collected.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use carrel_domain::encoding::Reader;
use tracing::{debug, warn};

use crate::disk::{self, Disk};
use crate::error::StorageError;
use crate::object_id::ObjectId;
use crate::object_index::{Location, ObjectIndex};
use crate::segment::{self, Kind, MAGIC};

const PREFIX: &str = "segment-";
const DOUBTFUL: &str = "doubtful-";
const INDEX: &str = "objects.index";

/// A segment beyond this size is not appended to any more, so that collecting garbage can go piece by piece.
pub(crate) const MAX_SEGMENT_BYTES: u64 = if cfg!(test) { 4096 } else { 256 << 20 };

/// Appended records are written in pieces of this size.
pub(crate) const MAX_PENDING_BYTES: usize = 1 << 20;

/// The records that the next opening may have to find by scanning, beyond which the index is written.
const MAX_UNCOVERED: usize = if cfg!(test) { 8 } else { 256 };

/// The content of a store.
#[derive(Debug)]
pub(crate) struct Objects {
    disk: Arc<dyn Disk>,
    index: HashMap<ObjectId, Location>,
    /// The segments and their lengths, without what is pending.
    segments: BTreeMap<u32, u64>,
    /// The offsets from which on the contents of segments may be lost with the next power loss.
    doubtful: BTreeMap<u32, u64>,
    /// The length of the newest segment when it was last synced, as far as is known.
    synced: (u32, u64),
    pending: Vec<u8>,
    /// The checkpoints of undo, by their numbers.
    checkpoints: BTreeMap<u64, ObjectId>,
    is_unsynced: bool,
    uncovered: usize,
    damaged: u64,
    /// Content was found to be damaged when it was read.
    has_lost: bool,
}

impl Objects {
    /// Opens the segments of a store and repairs their ends.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<Self, StorageError> {
        let (mut segments, mut doubtful) = (BTreeMap::new(), BTreeMap::new());
        for name in disk.list()? {
            doubtful.extend(doubt_of(&name));
            let Some(number) = number_of(&name) else { continue };
            if segment::is_segment(&*disk, &name)? {
                segments.insert(number, 0);
            } else {
                // The header of a new segment was lost; nothing that was reported is in it.
                warn!(name, "a segment without a header is left out");
            }
        }
        let mut objects = Self {
            disk,
            index: HashMap::new(),
            segments,
            doubtful,
            synced: (0, 0),
            pending: Vec::new(),
            checkpoints: BTreeMap::new(),
            // Another process may have ended before it synced.
            is_unsynced: true,
            uncovered: 0,
            damaged: 0,
            has_lost: false,
        };
        if objects.load_index()?.is_none() {
            debug!("the index of stored content is made again");
            objects.index.clear();
            objects.checkpoints.clear();
            for covered in objects.segments.values_mut() {
                *covered = MAGIC.len() as u64;
            }
        }
        objects.scan_ends()?;
        Ok(objects)
    }

    fn load_index(&mut self) -> Result<Option<()>, StorageError> {
        let Some(bytes) = disk::read(&*self.disk, INDEX)? else { return Ok(None) };
        let Some(stored) = ObjectIndex::of_bytes(&bytes) else { return Ok(None) };
        for (number, covered) in &stored.segments {
            let Some(known) = self.segments.get_mut(number) else { return Ok(None) };
            if self.disk.length(&name_of(*number))?.unwrap_or(0) < *covered {
                return Ok(None);
            }
            *known = *covered;
            self.synced = self.synced.max((*number, *covered));
        }
        for length in self.segments.values_mut() {
            *length = (*length).max(MAGIC.len() as u64);
        }
        self.index = stored.index;
        self.checkpoints = stored.checkpoints;
        Ok(Some(()))
    }

    /// Adds the records behind the known ends of the segments and those of new segments, and cuts off a torn one.
    pub(crate) fn scan_ends(&mut self) -> Result<(), StorageError> {
        self.find_new_segments()?;
        let newest = self.segments.keys().next_back().copied();
        for (number, known) in self.segments.clone() {
            let name = name_of(number);
            let length = self.disk.length(&name)?.unwrap_or(0);
            if length <= known {
                continue;
            }
            let scanned = segment::scan(&*self.disk, &name, known)?;
            self.is_unsynced |= !scanned.found.is_empty();
            self.uncovered += scanned.found.len();
            self.damaged += scanned.damaged;
            for found in scanned.found {
                let length = u32::try_from(found.header.record_length()).unwrap_or(u32::MAX);
                let location = Location { segment: number, offset: found.offset, length };
                self.index.insert(found.header.id, location);
                if found.header.kind == Kind::Checkpoint {
                    self.note_checkpoint(found.header.id)?;
                }
            }
            if scanned.end < length && Some(number) == newest {
                debug!(
                    name,
                    from = length,
                    to = scanned.end,
                    "the torn end of a segment is cut off"
                );
                self.disk.truncate(&name, scanned.end)?;
            }
            self.segments.insert(number, scanned.end);
        }
        Ok(())
    }

    /// Adds the segments that other processes began.
    fn find_new_segments(&mut self) -> Result<(), StorageError> {
        let mut number = self.segments.keys().next_back().map_or(1, |newest| newest + 1);
        // A file without a header is passed over: nothing is in it, and another segment may be behind it.
        while self.disk.length(&name_of(number))?.is_some() {
            if segment::is_segment(&*self.disk, &name_of(number))? {
                self.segments.insert(number, MAGIC.len() as u64);
            }
            number += 1;
        }
        Ok(())
    }

    fn note_checkpoint(&mut self, id: ObjectId) -> Result<(), StorageError> {
        let content = self.get(id)?;
        if let Some(number) = Reader::new(&content).number() {
            self.checkpoints.insert(number, id);
        }
        Ok(())
    }

    pub(crate) fn contains(&self, id: &ObjectId) -> bool {
        self.index.contains_key(id)
    }

    /// Returns whether content is stored and will be there after the next sync.
    pub(crate) fn is_reusable(&self, id: &ObjectId) -> bool {
        self.index.get(id).is_some_and(|location| !self.is_doubtful(location))
    }

    fn is_doubtful(&self, location: &Location) -> bool {
        self.doubtful.get(&location.segment).is_some_and(|from| location.offset >= *from)
    }

    /// Returns the bytes of the record of some content.
    pub(crate) fn length_of(&self, id: &ObjectId) -> u64 {
        self.index.get(id).map_or(0, |location| u64::from(location.length))
    }

    /// Returns whether records wait to be written.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Stores content, unless it is there, and returns its id.
    pub(crate) fn put(&mut self, content: &[u8]) -> Result<ObjectId, StorageError> {
        let id = ObjectId::of(content);
        self.put_as(id, content)?;
        Ok(id)
    }

    /// Stores content whose id is known, unless it is there.
    pub(crate) fn put_as(&mut self, id: ObjectId, content: &[u8]) -> Result<(), StorageError> {
        if self.is_reusable(&id) { Ok(()) } else { self.append(Kind::Object, id, content) }
    }

    /// Stores a checkpoint, whose content begins with its number.
    pub(crate) fn put_checkpoint(
        &mut self,
        number: u64,
        content: &[u8],
    ) -> Result<(), StorageError> {
        let id = ObjectId::of(content);
        self.append(Kind::Checkpoint, id, content)?;
        self.checkpoints.insert(number, id);
        Ok(())
    }

    pub(crate) fn checkpoints(&self) -> &BTreeMap<u64, ObjectId> {
        &self.checkpoints
    }

    fn append(&mut self, kind: Kind, id: ObjectId, content: &[u8]) -> Result<(), StorageError> {
        let (segment, length) = self.active()?;
        let offset = length + self.pending.len() as u64;
        let header = segment::append(&mut self.pending, kind, id, content);
        let length = u32::try_from(header.record_length()).unwrap_or(u32::MAX);
        self.index.insert(id, Location { segment, offset, length });
        self.uncovered += 1;
        if self.pending.len() >= MAX_PENDING_BYTES { self.flush() } else { Ok(()) }
    }

    /// Returns the segment that is appended to, and its length.
    fn active(&mut self) -> Result<(u32, u64), StorageError> {
        let newest = self.segments.iter().next_back().map(|(number, length)| (*number, *length));
        match newest {
            Some(active) if !self.pending.is_empty() => Ok(active),
            Some((number, _)) if self.doubtful.contains_key(&number) => self.begin_segment(),
            Some((number, length)) if length < MAX_SEGMENT_BYTES => Ok((number, length)),
            Some((number, _)) => {
                // From here on only the newest segment has to be synced.
                self.sync_segment(number)?;
                self.begin_segment()
            }
            None => self.begin_segment(),
        }
    }

    /// Returns the number of a segment that is not there yet.
    pub(crate) fn free_number(&self) -> Result<u32, StorageError> {
        let mut number = self.segments.keys().next_back().map_or(1, |newest| newest + 1);
        while self.disk.length(&name_of(number))?.is_some() {
            number += 1;
        }
        Ok(number)
    }

    fn begin_segment(&mut self) -> Result<(u32, u64), StorageError> {
        let number = self.free_number()?;
        // Its header is durable before it has a name: a segment without one is not read.
        disk::replace(&*self.disk, &name_of(number), MAGIC)?;
        let length = MAGIC.len() as u64;
        self.segments.insert(number, length);
        self.synced = (number, length);
        Ok((number, length))
    }

    /// Writes what was appended, without syncing it.
    pub(crate) fn flush(&mut self) -> Result<(), StorageError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (number, length) = self.active()?;
        self.disk.write_at(&name_of(number), length, &self.pending)?;
        self.segments.insert(number, length + self.pending.len() as u64);
        self.pending.clear();
        self.is_unsynced = true;
        Ok(())
    }

    /// Returns whether content was appended since the last sync.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.is_unsynced || self.has_pending()
    }

    /// Waits until all content would survive a power loss.
    pub(crate) fn sync(&mut self) -> Result<(), StorageError> {
        self.flush()?;
        if let (true, Some(number)) = (self.is_unsynced, self.segments.keys().next_back().copied())
        {
            self.sync_segment(number)?;
        }
        self.is_unsynced = false;
        Ok(())
    }

    /// Syncs a segment; what it got since the last time is doubtful if that fails.
    fn sync_segment(&mut self, number: u32) -> Result<(), StorageError> {
        let Err(error) = self.disk.sync(&name_of(number)) else {
            let length = self.segments.get(&number).copied().unwrap_or(0);
            self.synced = self.synced.max((number, length));
            return Ok(());
        };
        let from = if self.synced.0 == number { self.synced.1 } else { MAGIC.len() as u64 };
        let from = self.doubtful.get(&number).map_or(from, |before| from.min(*before));
        self.doubtful.insert(number, from);
        // An empty file, which a full disk still has room for in most cases.
        if let Err(error) = self.disk.truncate(&doubt_name(number, from), 0) {
            warn!(%error, "could not note that a part of a segment may be lost");
        }
        Err(error)
    }

    /// Writes the index, if the next opening would have much to scan otherwise. The content was synced.
    pub(crate) fn save_index_if_worthwhile(&mut self) -> Result<(), StorageError> {
        if self.uncovered > MAX_UNCOVERED && !self.is_unsynced { self.save_index() } else { Ok(()) }
    }

    /// Writes the index at opening, if much had to be scanned: undo alone never writes it.
    pub(crate) fn cover(&mut self) -> Result<(), StorageError> {
        if self.uncovered > MAX_UNCOVERED {
            self.sync()?;
            self.save_index()?;
        }
        Ok(())
    }

    pub(crate) fn save_index(&mut self) -> Result<(), StorageError> {
        disk::replace_cache(&*self.disk, INDEX, &self.index_bytes())?;
        self.uncovered = 0;
        Ok(())
    }

    /// Returns the index without what is doubtful: a power loss may take that.
    fn index_bytes(&self) -> Vec<u8> {
        let mut segments = self.segments.clone();
        for (number, from) in &self.doubtful {
            if let Some(covered) = segments.get_mut(number) {
                *covered = (*covered).min(*from);
            }
        }
        let certain = |location: &&Location| !self.is_doubtful(location);
        let index = self.index.iter().filter(|(_, location)| certain(location));
        let checkpoints = self.checkpoints.iter().filter(|(_, id)| self.is_reusable(id));
        ObjectIndex {
            segments,
            index: index.map(|(id, location)| (*id, *location)).collect(),
            checkpoints: checkpoints.map(|(number, id)| (*number, *id)).collect(),
        }
        .to_bytes()
    }

    /// Returns content by its id.
    pub(crate) fn get(&mut self, id: ObjectId) -> Result<Vec<u8>, StorageError> {
        let damaged = StorageError::Damaged { id };
        let Some(record) = self.record(&id)? else { return Err(damaged) };
        match segment::content(&record) {
            Some((header, content)) if header.id == id => Ok(content),
            _ => {
                // The next scan that meets this content stores it again.
                self.index.remove(&id);
                self.has_lost = true;
                Err(damaged)
            }
        }
    }

    /// Returns whether content was lost since this was last asked.
    pub(crate) fn take_loss(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    /// Returns the bytes of a record; `None` if there is none.
    pub(crate) fn record(&mut self, id: &ObjectId) -> Result<Option<Vec<u8>>, StorageError> {
        let Some(location) = self.index.get(id).copied() else { return Ok(None) };
        let written = self.segments.get(&location.segment).copied().unwrap_or(0);
        if location.offset + u64::from(location.length) > written {
            self.flush()?;
        }
        let mut record = vec![0; location.length as usize];
        let name = name_of(location.segment);
        Ok(self.disk.read_at(&name, location.offset, &mut record)?.then_some(record))
    }

    /// Returns the bytes of all segments.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.segments.values().sum::<u64>() + self.pending.len() as u64
    }

    /// Returns the bytes that belong to no record although records lie behind them.
    pub(crate) fn damaged_bytes(&self) -> u64 {
        self.damaged
    }

    /// Returns the bytes of the records that are not in a set.
    pub(crate) fn bytes_without(&self, live: &HashSet<ObjectId>) -> u64 {
        let kept = self.index.iter().filter(|(id, _)| live.contains(*id));
        let kept: u64 = kept.map(|(_, location)| u64::from(location.length)).sum();
        let headers = self.segments.len() * MAGIC.len();
        self.stored_bytes().saturating_sub(kept + headers as u64)
    }

    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        Arc::clone(&self.disk)
    }

    /// Returns the segments and their lengths.
    pub(crate) fn segments(&self) -> &BTreeMap<u32, u64> {
        &self.segments
    }

    pub(crate) fn location(&self, id: &ObjectId) -> Option<Location> {
        self.index.get(id).copied()
    }

    /// Removes segments whose needed records were copied to a new one, which is synced.
    pub(crate) fn replace_segments(
        &mut self,
        old: &BTreeSet<u32>,
        (number, length): (u32, u64),
        copied: HashMap<ObjectId, Location>,
        live: &HashSet<ObjectId>,
    ) -> Result<(), StorageError> {
        for old in old {
            self.disk.remove(&name_of(*old))?;
            if let Some(from) = self.doubtful.remove(old) {
                self.disk.remove(&doubt_name(*old, from))?;
            }
            self.segments.remove(old);
        }
        self.disk.sync_names()?;
        self.segments.insert(number, length);
        self.synced = (number, length);
        self.index.retain(|_, location| !old.contains(&location.segment));
        self.index.extend(copied);
        self.checkpoints.retain(|_, id| live.contains(id));
        self.is_unsynced = false;
        self.save_index()
    }
}

pub(crate) fn name_of(number: u32) -> String {
    format!("{PREFIX}{number:06}")
}

fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn doubt_name(number: u32, from: u64) -> String {
    format!("{DOUBTFUL}{number:06}-{from}")
}

/// Returns the segment and the offset that the name of a file says to be doubtful.
fn doubt_of(name: &str) -> Option<(u32, u64)> {
    let (number, from) = name.strip_prefix(DOUBTFUL)?.split_once('-')?;
    Some((number.parse().ok()?, from.parse().ok()?))
}
