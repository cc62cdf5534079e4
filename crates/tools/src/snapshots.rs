//! Snapshots of workspaces, and undo.

mod call_changes;
mod create;
mod delete;
mod diff;
mod facts;
mod list;
mod restore;
mod retention;
mod stores;
mod undo;

use carrel_domain::Failure;
use carrel_snapshot::Reference;

pub(crate) use call_changes::{CallChanges, Change};
pub use stores::SnapshotStores;
pub(crate) use undo::keep;

use crate::registry::Catalogue;

/// The changes that a reply lists.
const MAX_LISTED: usize = 200;

/// Characters of a tree's hash in the reply of `snapshot_create`, as many as a commit of git has.
const CREATED_ID: usize = 40;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<create::SnapshotCreate>();
    catalogue.add::<list::List>();
    catalogue.add::<diff::SnapshotDiff>();
    catalogue.add::<restore::SnapshotRestore>();
    catalogue.add::<delete::SnapshotDelete>();
    catalogue.add::<undo::Undo>();
    catalogue.add::<undo::UndoList>();
    catalogue.add::<undo::UndoRestore>();
}

/// Reads the name or number of a snapshot.
fn reference(name: &str) -> Result<Reference, Failure> {
    Reference::parse(name).map_err(|error| Failure::argument("name", error.to_string()))
}
