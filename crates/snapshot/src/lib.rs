//! Snapshots of a workspace and undo of edits, in a content-addressed store of the server.
#![forbid(unsafe_code)]

mod bytes;
mod change_key;
mod codes;
mod collect;
mod compare;
mod create;
mod disk;
mod error;
mod journal;
mod name;
mod object_id;
mod objects;
#[cfg(test)]
mod power_loss;
#[cfg(test)]
mod reader_tests;
mod restore;
mod scan;
mod scan_cache;
mod segment;
mod snapshot;
mod store;
mod tree;
mod tree_writer;
mod undo;

pub use collect::{Budget, Collected, Retention, Usage};
pub use compare::{Change, ChangeKind, CompareError, Comparison, Renames, Side};
pub use create::{CreateError, CreateRequest, Created, SameName};
pub use error::StorageError;
pub use name::{InvalidName, SnapshotId, SnapshotName};
pub use object_id::ObjectId;
pub use restore::{Recovery, RestoreError, RestoreOptions, RestorePlan, Restored};
pub use scan::{Ignored, Limits, ScanError, ScanOptions, Totals, Trust};
pub use snapshot::{Reason, Snapshot};
pub use store::{FindError, Reference, Store};
pub use tree::{Entry, Node, Omission};
pub use tree_writer::Times;
pub use undo::{
    Checkpoint, CheckpointId, Conflict, MAX_CHECKPOINTS, PendingCheckpoint, UndoError, Undone,
};
