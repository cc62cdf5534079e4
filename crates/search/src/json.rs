//! Kinds and times of files in JSON.

use std::time::{SystemTime, UNIX_EPOCH};

use carrel_domain::Timestamp;
use carrel_fsroot::FileKind;
use serde::{Serialize, Serializer};

/// Returns the word for a kind of file in JSON.
fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Link => "link",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::Device => "device",
        FileKind::Unknown => "unknown",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(crate) fn kind<S: Serializer>(kind: &FileKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(word(*kind))
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde gives a reference"
)]
pub(crate) fn optional_kind<S: Serializer>(
    kind: &Option<FileKind>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    kind.map(word).serialize(serializer)
}

/// Writes a time as the domain does.
pub(crate) fn time<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(millis).serialize(serializer)
}
