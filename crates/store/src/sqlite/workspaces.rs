//! The deletion of workspaces and of old rows, and the assignment of workspaces to volumes.

use carrel_domain::{Timestamp, VolumeId, WorkspaceId};
use rusqlite::Connection;

use super::connection::Execute as _;
use crate::error::StoreError;
use crate::value::values;

/// Deletes a workspace with its tasks, credentials and replies, unless a task is queued or running.
pub(super) fn delete(connection: &Connection, id: WorkspaceId) -> Result<bool, StoreError> {
    const IDLE: &str = "SELECT 1 FROM workspaces WHERE id = $1 AND queued = 0 AND running = 0";
    // Scopes of a workspace begin with its id and a space, which `!` follows in ASCII.
    const REPLIES: &str = "DELETE FROM replies WHERE scope >= $1 || ' ' AND scope < $1 || '!'";
    if connection.first::<i64>(IDLE, values![id])?.is_none() {
        return Ok(false);
    }
    for statement in [
        "DELETE FROM task_events WHERE task IN
             (SELECT sequence FROM task_executions WHERE workspace_id = $1)",
        "DELETE FROM task_executions WHERE workspace_id = $1",
        "DELETE FROM credentials WHERE workspace_id = $1",
        "DELETE FROM workspaces WHERE id = $1",
    ] {
        connection.change(statement, values![id])?;
    }
    connection.change(REPLIES, values![id.to_string()])?;
    Ok(true)
}

/// Returns the volume of a workspace, and assigns the emptiest of `among` if it has none. One process is
/// server and worker here, so that there is one volume; the operation exists for the trait and its suite.
pub(super) fn assign_volume(
    connection: &Connection,
    workspace: WorkspaceId,
    among: &[VolumeId],
) -> Result<Option<VolumeId>, StoreError> {
    const ASSIGNED: &str = "SELECT volume FROM workspaces WHERE id = $1";
    const HELD: &str = "SELECT count(*) FROM workspaces WHERE volume = $1";
    let assigned: Option<Option<VolumeId>> = connection.first(ASSIGNED, values![workspace])?;
    let Some(None) = assigned else { return Ok(assigned.flatten()) };
    let mut least: Option<(i64, VolumeId)> = None;
    for volume in among {
        let held = connection.first(HELD, values![*volume])?.unwrap_or_default();
        if least.is_none_or(|(fewest, _)| held < fewest) {
            least = Some((held, *volume));
        }
    }
    let Some((_, volume)) = least else { return Ok(None) };
    connection
        .change("UPDATE workspaces SET volume = $1 WHERE id = $2", values![volume, workspace])?;
    Ok(Some(volume))
}

/// Deletes old replies and tasks. Returns how many.
pub(super) fn delete_before(
    connection: &Connection,
    replies: Timestamp,
    tasks: Timestamp,
) -> Result<u64, StoreError> {
    const EVENTS: &str = "DELETE FROM task_events WHERE task IN
        (SELECT sequence FROM task_executions WHERE completed_at < $1)";
    const TASKS: &str = "DELETE FROM task_executions WHERE completed_at < $1";
    let replies = connection.change("DELETE FROM replies WHERE at < $1", values![replies])?;
    connection.change(EVENTS, values![tasks])?;
    Ok((replies + connection.change(TASKS, values![tasks])?) as u64)
}
