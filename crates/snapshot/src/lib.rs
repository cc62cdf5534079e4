//! Snapshots of a workspace and undo of edits, in a content-addressed store of the server.
//!
//! A [`Store`] is opened on a directory of the server, which is for nothing else, and on the [`Root`] of a workspace.
//! All calls block; callers on an async runtime move them to a blocking thread. A caller that also writes files holds
//! the workspace's write lock around [`Store::create`] and [`Store::apply`], so that no edit falls in between.
//!
//! ```no_run
//! use carrel_snapshot::{CreateRequest, Reference, RestoreOptions, SnapshotName, Store};
//! # fn tools(store: &Store, name: &str, session: &str) -> Result<(), Box<dyn std::error::Error>> {
//! // snapshot_create
//! let created = store.create(&CreateRequest::named(SnapshotName::new(name)?))?;
//! println!("snapshot {name} created: {} files", created.snapshot.totals.files);
//!
//! // snapshot_restore: `plan_restore` and `apply` where a plan is shown first, `restore` for both
//! let restored = store.restore(&Reference::parse(name)?, RestoreOptions::default())?;
//! println!("restored; {} brings the state before back", restored.before.id);
//! for change in &restored.changes {
//!     println!("{} {}", change.kind.as_str(), change.path.display());
//! }
//!
//! // around a call that edits files, and undo
//! let mut checkpoint = store.begin_checkpoint(session, "Edit");
//! checkpoint.before_image("src/main.rs".as_ref())?;
//! // ... the edit ...
//! if let Some(id) = checkpoint.commit()? {
//!     let undone = store.undo(session, id, &[])?;
//!     assert!(undone.conflicts.is_empty());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! How it is built, from below:
//!
//! - `disk` is the one way to the store's files, in steps that a test can record and cut short.
//! - `segment` and `objects` keep content by its hash in append-only files.
//! - `tree` is the list of a directory, which is content as well: the id of the top list stands for a whole tree.
//! - `scan` makes the lists of the present tree, from change keys and the names of the last scan.
//! - `create`, `compare`, `restore`, `rebase`, `undo` and `collect` are the operations; each says at its top in which order it
//!   writes, and what a crash between two steps leaves.
//!
//! Undo guards against mistakes, not against power loss. `docs/snapshots.md` lists what is guaranteed.
//!
//! [`Root`]: carrel_fsroot::Root
#![forbid(unsafe_code)]

mod change_key;
mod codes;
mod collect;
mod compaction;
mod compare;
mod create;
mod disk;
mod error;
#[cfg(test)]
mod faults;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod journal;
mod name;
mod object_id;
mod object_index;
mod objects;
mod pending_checkpoint;
#[cfg(test)]
mod power_loss;
#[cfg(test)]
mod reader_tests;
mod rebase;
mod restore;
mod restore_steps;
#[cfg(test)]
mod restore_tests;
mod scan;
mod scan_cache;
mod scan_level;
mod scan_options;
#[cfg(test)]
mod scan_tests;
mod sealed;
mod segment;
mod snapshot;
mod store;
mod tree;
mod tree_writer;
mod unchanged;
mod undo;
mod undo_record;

pub use collect::{Budget, Collected, Deleted, Retention, Usage};
pub use compare::{Change, ChangeKind, CompareError, Comparison, Contents, Renames, Side};
pub use create::{CreateError, CreateRequest, Created, SameName};
pub use error::StorageError;
pub use name::{InvalidName, SnapshotId, SnapshotName};
pub use object_id::ObjectId;
pub use pending_checkpoint::{LeftImage, PendingCheckpoint};
pub use rebase::{RebaseError, Rebased};
pub use restore::{Recovery, RestoreError, RestoreOptions, RestorePlan, Restored};
pub use scan_options::{Ignored, ScanError, ScanLimits, ScanOptions, Totals, Trust};
pub use snapshot::{Reason, Snapshot};
pub use store::{FindError, Reference, Store};
pub use tree::{Entry, Node, Omission};
pub use tree_writer::Times;
pub use undo::{Checkpoint, CheckpointId, Conflict, MAX_CHECKPOINTS, UndoError, Undone};
