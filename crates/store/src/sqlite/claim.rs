//! Chooses the next task of a claim.
//!
//! Workspaces take turns: each has the turn in which it was last served, and the one with the smallest
//! turn that has queued tasks, fewer than the limit running, and the right volume is next. Inside a
//! workspace the highest priority and then the oldest task wins. A turn is a time in microseconds, so that
//! the order continues after a restart without being stored anywhere else. Triggers keep the numbers of
//! queued and running tasks in the workspace's row, so that no claim counts tasks.

use carrel_domain::{Timestamp, WorkspaceId};
use rusqlite::{Connection, params};

use super::connection::Execute as _;
use super::tasks;
use crate::error::StoreError;
use crate::lifecycle::claimed;
use crate::task::task_columns;
use crate::value::values;
use crate::{ClaimRequest, Claimed, Task};

/// Returns a turn that is greater than `last` and not before `now`.
pub(super) fn next_turn(last: i64, now: Timestamp) -> i64 {
    now.as_millis().saturating_mul(1000).max(last + 1)
}

/// Claims the next due task, if there is one. `turn` becomes the turn of its workspace, and the worker's
/// volume that of a workspace without one.
pub(super) fn claim(
    connection: &Connection,
    request: &ClaimRequest,
    turn: i64,
    now: Timestamp,
) -> Result<Option<Claimed>, StoreError> {
    const SERVED: &str =
        "UPDATE workspaces SET turn = $1, volume = coalesce(volume, $2) WHERE id = $3";
    // Read one by one: nearly always the first workspace has a due task.
    let mut candidates = connection.prepare_cached(
        "SELECT id FROM workspaces WHERE queued > 0 AND running < ?
             AND (volume IS NULL OR volume = ?) ORDER BY turn",
    )?;
    let volume = request.volume.to_bytes();
    let mut workspaces = candidates.query(params![request.per_workspace, volume])?;
    while let Some(row) = workspaces.next()? {
        let workspace = WorkspaceId::from_bytes(row.get(0)?);
        if let Some(claimed) = claim_in(connection, workspace, request, now)? {
            connection.change(SERVED, values![turn, request.volume, workspace])?;
            return Ok(Some(claimed));
        }
    }
    Ok(None)
}

fn claim_in(
    connection: &Connection,
    workspace: WorkspaceId,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Option<Claimed>, StoreError> {
    const CLAIM: &str = concat!(
        "UPDATE task_executions SET status = 'running', attempt = attempt + 1, worker_id = $1,
             lease_until = $2, started_at = $3, last_event = last_event + 1
         WHERE sequence = (
             SELECT sequence FROM task_executions
             WHERE workspace_id = $4 AND status = 'queued' AND due_at <= $3
             ORDER BY priority, sequence LIMIT 1)
         RETURNING ",
        task_columns!(),
        ", sequence"
    );
    let until = now.after(request.lease);
    let found = connection.first(CLAIM, values![&request.worker, until, now, workspace])?;
    let Some((task, sequence)): Option<(Task, i64)> = found else { return Ok(None) };
    let claimed = claimed(task, now);
    tasks::insert_events(connection, sequence, &claimed.events)?;
    Ok(Some(claimed))
}

/// Returns the due time of the earliest released task. New tasks are due at once and need no timer.
pub(super) fn next_due(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    const NEXT: &str =
        "SELECT min(due_at) FROM task_executions WHERE status = 'queued' AND attempt > 0";
    Ok(connection.first(NEXT, vec![])?.flatten())
}

pub(super) fn is_any_queued(connection: &Connection) -> Result<bool, StoreError> {
    Ok(!connection.rows("SELECT 1 FROM workspaces WHERE queued > 0 LIMIT 1", &[])?.is_empty())
}
