//! Snapshots of the workspaces of issues before each turn of their agents.

use std::sync::Arc;

use carrel_conductor::drive::{SnapshotFactory, SnapshotRequest};
use carrel_domain::{WorkspaceAccess, message_of};
use carrel_tools::{AutomaticSnapshot, SnapshotStores};
use carrel_workspace::Amount;
use futures_util::FutureExt as _;

use super::agent_tools::named;

/// Returns what takes snapshots before turns, if the operator's policy wants them.
pub(super) fn factory(stores: Arc<SnapshotStores>) -> Arc<SnapshotFactory> {
    Arc::new(move |request| take(Arc::clone(&stores), request).boxed())
}

async fn take(
    stores: Arc<SnapshotStores>,
    request: SnapshotRequest,
) -> Result<Option<String>, String> {
    let SnapshotRequest { runner, workspace, issue, turn } = request;
    let policy = runner.policy().snapshots;
    if !policy.turns {
        return Ok(None);
    }
    // Nothing is written, so that what the workspace uses does not matter.
    let handle = runner.open_counted(Arc::clone(&workspace), Amount::default()).await;
    let handle = handle.map_err(|error| message_of(&error))?;
    let workspace = Arc::new(named(&workspace, WorkspaceAccess::ReadOnly, handle));
    let taken = stores.take(&workspace, AutomaticSnapshot::before_turn(&issue, turn), policy);
    taken.await.map_err(|failure| failure.message)
}
