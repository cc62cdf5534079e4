//! Chooses the next task of a claim.
//!
//! Workspaces take turns: each has the turn in which it was last served, and the one with the smallest
//! turn that has queued tasks, fewer than the limit running, and the right volume is next. Inside a
//! workspace the highest priority and then the oldest task wins. A turn is a time in microseconds, so that
//! the order continues after a restart without being stored anywhere else. Triggers keep the numbers of
//! queued and running tasks in the workspace's row, so that no claim counts tasks.

use carrel_domain::{Timestamp, WorkspaceId};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::events::EventLog;
use super::rows::{self, task_columns};
use crate::error::StoreError;
use crate::lifecycle::status_changed;
use crate::{Claim, ClaimRequest, Claimed};

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
    let mut candidates = connection.prepare_cached(
        "SELECT id FROM workspaces WHERE queued > 0 AND running < ?
             AND (volume IS NULL OR volume = ?) ORDER BY turn",
    )?;
    let volume = request.volume.to_bytes();
    let mut workspaces = candidates.query(params![request.per_workspace, volume])?;
    while let Some(row) = workspaces.next()? {
        let workspace = WorkspaceId::from_bytes(row.get(0)?);
        if let Some(claimed) = claim_in(connection, workspace, request, now)? {
            connection
                .prepare_cached(
                    "UPDATE workspaces SET turn = ?, volume = coalesce(volume, ?) WHERE id = ?",
                )?
                .execute(params![turn, volume, workspace.to_bytes()])?;
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
    let mut update = connection.prepare_cached(concat!(
        "UPDATE task_executions SET status = 'running', attempt = attempt + 1, worker_id = ?1,
             lease_until = ?2, started_at = ?3
         WHERE sequence = (
             SELECT sequence FROM task_executions
             WHERE workspace_id = ?4 AND status = 'queued' AND due_at <= ?3
             ORDER BY priority, sequence LIMIT 1)
         RETURNING ",
        task_columns!()
    ))?;
    let until = now.after(request.lease).as_millis();
    let bound = params![request.worker.0, until, now.as_millis(), workspace.to_bytes()];
    let claimed = update
        .query_row(bound, |row| Ok((rows::task(row)?, row.get(rows::SEQUENCE)?)))
        .optional()?;
    let Some((mut task, sequence)) = claimed else { return Ok(None) };
    let mut log = EventLog { task: task.id, sequence, last: task.last_event };
    let fields = [("attempt", json!(task.attempt)), ("worker_id", json!(request.worker.0))];
    let event = status_changed(task.status, fields, now);
    let events = log.append(connection, vec![event])?;
    task.last_event = log.last;
    let claim = Claim { task: task.id, attempt: task.attempt };
    Ok(Some(Claimed { claim, task, events }))
}

/// Returns the due time of the earliest released task. New tasks are due at once and need no timer.
pub(super) fn next_due(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let due: Option<i64> = connection
        .prepare_cached(
            "SELECT min(due_at) FROM task_executions WHERE status = 'queued' AND attempt > 0",
        )?
        .query_row([], |row| row.get(0))?;
    Ok(due.map(Timestamp::from_millis))
}

pub(super) fn is_any_queued(connection: &Connection) -> Result<bool, StoreError> {
    Ok(connection.prepare_cached("SELECT 1 FROM workspaces WHERE queued > 0 LIMIT 1")?.exists([])?)
}
