//! Collecting garbage: copying the records of segments that are still needed.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::disk::{Disk, UNFINISHED};
use crate::error::StorageError;
use crate::object_id::ObjectId;
use crate::object_index::Location;
use crate::objects::{MAX_PENDING_BYTES, MAX_SEGMENT_BYTES, Objects, name_of};
use crate::segment::{self, MAGIC};

impl Objects {
    /// Returns the segments that have records without need, in groups that are copied at once.
    pub(crate) fn pieces(&self, live: &HashSet<ObjectId>) -> Vec<Vec<u32>> {
        let mut kept: HashMap<u32, u64> = HashMap::new();
        for location in live.iter().filter_map(|id| self.location(id)) {
            *kept.entry(location.segment).or_default() += u64::from(location.length);
        }
        let (mut pieces, mut bytes): (Vec<Vec<u32>>, u64) = (Vec::new(), 0);
        for (number, length) in self.segments() {
            let kept = kept.get(number).copied().unwrap_or(0);
            if kept + MAGIC.len() as u64 >= *length {
                continue;
            }
            match pieces.last_mut() {
                Some(piece) if bytes + kept <= MAX_SEGMENT_BYTES => piece.push(*number),
                _ => {
                    pieces.push(vec![*number]);
                    bytes = 0;
                }
            }
            bytes += kept;
        }
        pieces
    }

    /// Copies the live records of some segments to a new one and removes these. Until the new segment has its name the
    /// old ones are untouched; afterwards a crash leaves content twice at most.
    pub(crate) fn compact(
        &mut self,
        piece: &[u32],
        live: &HashSet<ObjectId>,
    ) -> Result<(), StorageError> {
        // From here on only the new segment is appended to and synced.
        self.sync()?;
        let old: BTreeSet<u32> =
            piece.iter().copied().filter(|number| self.segments().contains_key(number)).collect();
        if old.is_empty() {
            return Ok(());
        }
        let number = self.free_number()?;
        let name = name_of(number);
        let unfinished = format!("{name}{UNFINISHED}");
        let disk = self.disk();
        disk.truncate(&unfinished, 0)?;
        let mut copy = Copy { disk: &*disk, name: &unfinished, written: 0, buffer: MAGIC.to_vec() };
        let mut in_order: Vec<_> = live
            .iter()
            .filter_map(|id| Some((self.location(id)?, *id)))
            .filter(|(location, _)| old.contains(&location.segment))
            .map(|(location, id)| (location.segment, location.offset, id))
            .collect();
        in_order.sort_unstable();
        let mut index = HashMap::with_capacity(in_order.len());
        for (_, _, id) in in_order {
            let record = self.record(&id)?.filter(|record| {
                segment::content(record).is_some_and(|(header, _)| header.id == id)
            });
            // Damage is kept where it is: a part of it may still be read by other means.
            let record = record.ok_or(StorageError::Damaged { id })?;
            let offset = copy.append(&record)?;
            let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
            index.insert(id, Location { segment: number, offset, length });
        }
        let length = copy.finish()?;
        disk.sync(&unfinished)?;
        disk.rename(&unfinished, &name)?;
        disk.sync_names()?;
        self.replace_segments(&old, (number, length), index, live)
    }
}

/// A segment that is being written.
struct Copy<'a> {
    disk: &'a dyn Disk,
    name: &'a str,
    written: u64,
    buffer: Vec<u8>,
}

impl Copy<'_> {
    fn append(&mut self, record: &[u8]) -> Result<u64, StorageError> {
        let offset = self.written + self.buffer.len() as u64;
        self.buffer.extend_from_slice(record);
        if self.buffer.len() >= MAX_PENDING_BYTES {
            self.finish()?;
        }
        Ok(offset)
    }

    fn finish(&mut self) -> Result<u64, StorageError> {
        self.disk.write_at(self.name, self.written, &self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(self.written)
    }
}
