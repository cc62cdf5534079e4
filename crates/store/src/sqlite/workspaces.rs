//! Workspaces and their credentials.

use carrel_domain::{Network, Timestamp, VolumeId, WorkspaceId};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::idempotency;
use super::rows::{self, WORKSPACE_COLUMNS};
use crate::error::StoreError;
use crate::lifecycle::signed;
use crate::{Counts, Sealed, Workspace};

/// Adds a workspace. Returns the existing one if the id is taken.
pub(super) fn add(
    connection: &Connection,
    new: &Workspace,
) -> Result<Option<Workspace>, StoreError> {
    if let Some(existing) = find(connection, new.id)? {
        return Ok(Some(existing));
    }
    connection
        .prepare_cached(
            "INSERT INTO workspaces (id, name, layout, network, quota_bytes, created_at, volume)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            new.id.to_bytes(),
            new.name,
            new.layout.as_str(),
            new.network.map(Network::as_str),
            signed(new.quota_bytes),
            new.created_at.as_millis(),
            new.volume.map(VolumeId::to_bytes)
        ])?;
    Ok(None)
}

pub(super) fn find(
    connection: &Connection,
    id: WorkspaceId,
) -> Result<Option<Workspace>, StoreError> {
    let found = connection
        .prepare_cached(&format!("SELECT {WORKSPACE_COLUMNS} FROM workspaces WHERE id = ?"))?
        .query_row([id.to_bytes()], rows::workspace)
        .optional()?;
    Ok(found)
}

pub(super) fn list(
    connection: &Connection,
    after: Option<WorkspaceId>,
    limit: u32,
) -> Result<Vec<Workspace>, StoreError> {
    let mut select = connection.prepare_cached(&format!(
        "SELECT {WORKSPACE_COLUMNS} FROM workspaces WHERE id > ? ORDER BY id LIMIT ?"
    ))?;
    let after = after.map_or([0; 16], WorkspaceId::to_bytes);
    let found = select.query_map(params![after, limit], rows::workspace)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Deletes a workspace with its tasks, credentials and replies, unless a task is queued or running.
pub(super) fn delete(connection: &Connection, id: WorkspaceId) -> Result<bool, StoreError> {
    let name = id.to_string();
    let id = id.to_bytes();
    let idle = connection
        .prepare_cached("SELECT 1 FROM workspaces WHERE id = ? AND queued = 0 AND running = 0")?
        .exists([id])?;
    if !idle {
        return Ok(false);
    }
    for statement in [
        "DELETE FROM task_events WHERE task IN
             (SELECT sequence FROM task_executions WHERE workspace_id = ?)",
        "DELETE FROM task_executions WHERE workspace_id = ?",
        "DELETE FROM credentials WHERE workspace_id = ?",
        "DELETE FROM workspaces WHERE id = ?",
    ] {
        connection.prepare_cached(statement)?.execute([id])?;
    }
    idempotency::delete_workspace(connection, &name)?;
    Ok(true)
}

pub(super) fn put_credential(
    connection: &Connection,
    workspace: WorkspaceId,
    name: &str,
    sealed: &Sealed,
    now: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO credentials (workspace_id, name, sealed, at)
             VALUES (?, ?, ?, ?)",
        )?
        .execute(params![workspace.to_bytes(), name, sealed.0, now.as_millis()])?;
    Ok(())
}

pub(super) fn credential(
    connection: &Connection,
    workspace: WorkspaceId,
    name: &str,
) -> Result<Option<Sealed>, StoreError> {
    let found = connection
        .prepare_cached("SELECT sealed FROM credentials WHERE workspace_id = ? AND name = ?")?
        .query_row(params![workspace.to_bytes(), name], |row| row.get(0))
        .optional()?;
    Ok(found.map(Sealed))
}

pub(super) fn credential_names(
    connection: &Connection,
    workspace: WorkspaceId,
) -> Result<Vec<String>, StoreError> {
    let mut select = connection
        .prepare_cached("SELECT name FROM credentials WHERE workspace_id = ? ORDER BY name")?;
    let names = select.query_map([workspace.to_bytes()], |row| row.get(0))?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn delete_credential(
    connection: &Connection,
    workspace: WorkspaceId,
    name: &str,
) -> Result<bool, StoreError> {
    let deleted = connection
        .prepare_cached("DELETE FROM credentials WHERE workspace_id = ? AND name = ?")?
        .execute(params![workspace.to_bytes(), name])?;
    Ok(deleted > 0)
}

pub(super) fn delete_tasks(connection: &Connection, before: Timestamp) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "DELETE FROM task_events WHERE task IN
                 (SELECT sequence FROM task_executions WHERE completed_at < ?)",
        )?
        .execute([before.as_millis()])?;
    connection
        .prepare_cached("DELETE FROM task_executions WHERE completed_at < ?")?
        .execute([before.as_millis()])
}

pub(super) fn counts(connection: &Connection) -> Result<Counts, StoreError> {
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    let counted = connection
        .prepare_cached(
            "SELECT count(*), coalesce(sum(queued), 0), coalesce(sum(running), 0) FROM workspaces",
        )?
        .query_row([], |row| {
            Ok(Counts {
                workspaces: unsigned(row.get(0)?),
                queued: unsigned(row.get(1)?),
                running: unsigned(row.get(2)?),
            })
        })?;
    Ok(counted)
}
