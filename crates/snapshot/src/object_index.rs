//! The index of stored content, as it is kept on disk: a cache with a checksum.

use std::collections::{BTreeMap, HashMap};

use carrel_domain::encoding::{put_length, put_number};

use crate::object_id::ObjectId;
use crate::sealed;

const MAGIC: &[u8; 16] = b"carrel-objects-1";

/// The place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// The index of the content of some segments, up to the lengths that they had.
#[derive(Debug)]
pub(crate) struct ObjectIndex {
    pub(crate) segments: BTreeMap<u32, u64>,
    pub(crate) index: HashMap<ObjectId, Location>,
    pub(crate) checkpoints: BTreeMap<u64, ObjectId>,
}

impl ObjectIndex {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put_length(&mut bytes, self.segments.len());
        for (number, length) in &self.segments {
            put_number(&mut bytes, u64::from(*number));
            put_number(&mut bytes, *length);
        }
        put_length(&mut bytes, self.index.len());
        for (id, location) in &self.index {
            bytes.extend_from_slice(id.as_bytes());
            put_number(&mut bytes, u64::from(location.segment));
            put_number(&mut bytes, location.offset);
            put_number(&mut bytes, u64::from(location.length));
        }
        put_length(&mut bytes, self.checkpoints.len());
        for (number, id) in &self.checkpoints {
            put_number(&mut bytes, *number);
            bytes.extend_from_slice(id.as_bytes());
        }
        sealed::seal(bytes)
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = sealed::open(bytes, MAGIC)?;
        let segments = (0..reader.count()?)
            .map(|_| Some((reader.small()?, reader.number()?)))
            .collect::<Option<_>>()?;
        let count = reader.count()?;
        let mut index = HashMap::with_capacity(count.min(bytes.len() / ObjectId::LENGTH));
        for _ in 0..count {
            let id = ObjectId::read(&mut reader)?;
            let segment = reader.small()?;
            let location = Location { segment, offset: reader.number()?, length: reader.small()? };
            index.insert(id, location);
        }
        let checkpoints = (0..reader.count()?)
            .map(|_| Some((reader.number()?, ObjectId::read(&mut reader)?)))
            .collect::<Option<_>>()?;
        reader.is_empty().then_some(Self { segments, index, checkpoints })
    }
}
