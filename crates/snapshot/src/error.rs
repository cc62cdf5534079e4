//! Errors of the store itself, which every operation can meet.

use std::io;

use crate::name::SnapshotId;
use crate::object_id::ObjectId;

/// Why the files of a store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process holds the store for long.
    #[error(
        "another process is using the snapshots of this workspace; try again when it has ended"
    )]
    Busy,
    /// An operation on a file of the store failed.
    #[error("could not use {file} of the snapshot store")]
    Io {
        /// The name of the file.
        file: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// An operation on the directory of the store failed.
    #[error("could not use the directory of the snapshot store")]
    Directory(#[from] carrel_fsroot::Error),
    /// Content is missing or differs from its hash. It is not returned.
    #[error(
        "stored content {id} is missing or damaged; the snapshots that have it cannot be restored whole"
    )]
    Damaged {
        /// The identity of the content.
        id: ObjectId,
    },
    /// The record of a snapshot is damaged, so what it needs is not known.
    #[error("{file} of the snapshot store is damaged; delete {id} to give that snapshot up")]
    DamagedRecord {
        /// The name of the file.
        file: String,
        /// The snapshot.
        id: SnapshotId,
    },
    /// A file of the store was written by a newer version.
    #[error("{file} was written by a newer version; use that version, or move the store away")]
    NewerVersion {
        /// The name of the file.
        file: String,
    },
}

impl StorageError {
    pub(crate) fn io(file: &str) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { file: file.to_owned(), source }
    }
}
