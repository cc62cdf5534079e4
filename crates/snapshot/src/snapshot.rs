//! The record of a snapshot: everything but the tree, which it names by its id.
//!
//! A record is a file of its own, written last: while it is not there, the snapshot is not. It is JSON with a
//! checksum, so a damaged one is never taken for another snapshot.

use carrel_domain::Timestamp;
use serde::{Deserialize, Serialize};

use crate::name::{SnapshotId, SnapshotName};
use crate::object_id::ObjectId;
use crate::scan_options::{Ignored, Totals};

const PREFIX: &str = "snapshot-";

/// The highest version of records. One beyond it is refused.
const VERSION: u32 = 2;

/// The version of records that do not name what their tree began as.
const VERSION_WITHOUT_ORIGIN: u32 = 1;

/// The reason of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason", content = "kind")]
pub enum Reason {
    /// A caller asked for it.
    Asked,
    /// It was taken before something that changes much, such as `apply_patch`.
    Automatic(String),
    /// It is what a restore replaced.
    BeforeRestore,
}

/// A recorded state of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The number.
    pub id: SnapshotId,
    /// The name, if it was given one.
    pub name: Option<SnapshotName>,
    /// The time.
    pub created: Timestamp,
    /// The reason.
    pub reason: Reason,
    /// Who took it, in the caller's words.
    pub author: String,
    /// What it is for, in the caller's words.
    pub description: String,
    /// The snapshot before it.
    pub parent: Option<SnapshotId>,
    /// The size of the tree.
    pub totals: Totals,
    /// The bytes that the store grew by.
    pub added_bytes: u64,
    /// The part that ignore rules exclude.
    pub ignored: Ignored,
    /// The list of the top directory.
    pub top: ObjectId,
    /// That of the tree that this one began as, for the work of a fork.
    pub origin: Option<ObjectId>,
}

/// The form of a record in its file.
#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    id: SnapshotId,
    name: Option<SnapshotName>,
    created: Timestamp,
    #[serde(flatten)]
    reason: Reason,
    author: String,
    description: String,
    parent: Option<SnapshotId>,
    totals: Totals,
    added_bytes: u64,
    ignored_taken: bool,
    top: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

/// The member that records of all versions have.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Why a record could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordError {
    NewerVersion,
    Damaged,
}

impl Snapshot {
    pub(crate) fn file_name(&self) -> String {
        file_name(self.id)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let stored = Stored {
            version: if self.origin.is_some() { VERSION } else { VERSION_WITHOUT_ORIGIN },
            id: self.id,
            name: self.name.clone(),
            created: self.created,
            reason: self.reason.clone(),
            author: self.author.clone(),
            description: self.description.clone(),
            parent: self.parent,
            totals: self.totals,
            added_bytes: self.added_bytes,
            ignored_taken: self.ignored == Ignored::Taken,
            top: self.top.to_string(),
            origin: self.origin.map(|origin| origin.to_string()),
        };
        let mut bytes = serde_json::to_vec(&stored).unwrap_or_default();
        let checksum = ObjectId::of(&bytes);
        bytes.extend_from_slice(format!("\n{checksum}\n").as_bytes());
        bytes
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let (Some(json), Some(checksum)) = (lines.next(), lines.next()) else {
            return Err(RecordError::Damaged);
        };
        if ObjectId::of(json).to_string().as_bytes() != checksum {
            return Err(RecordError::Damaged);
        }
        let Ok(Version { version }) = serde_json::from_slice(json) else {
            return Err(RecordError::Damaged);
        };
        if version > VERSION {
            return Err(RecordError::NewerVersion);
        }
        let stored: Stored = serde_json::from_slice(json).map_err(|_| RecordError::Damaged)?;
        let list = |text: &String| ObjectId::from_hex(text).ok_or(RecordError::Damaged);
        Ok(Self {
            id: stored.id,
            name: stored.name,
            created: stored.created,
            reason: stored.reason,
            author: stored.author,
            description: stored.description,
            parent: stored.parent,
            totals: stored.totals,
            added_bytes: stored.added_bytes,
            ignored: if stored.ignored_taken { Ignored::Taken } else { Ignored::LeftAlone },
            top: list(&stored.top)?,
            origin: stored.origin.as_ref().map(list).transpose()?,
        })
    }
}

pub(crate) fn file_name(id: SnapshotId) -> String {
    format!("{PREFIX}{:06}", id.0)
}

/// Returns the number of the snapshot whose record has this name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}
