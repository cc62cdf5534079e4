//! Who gets which task next.

use carrel_domain::{Timestamp, WorkspaceId};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::events::Journal;
use super::rows::{self, task_columns};
use crate::error::StoreError;
use crate::facts::status_changed;
use crate::model::{Claim, ClaimRequest, Claimed};

/// Returns a turn after the last one. Turns are times, so that they go on after a restart.
pub(super) fn next_turn(last: i64, now: Timestamp) -> i64 {
    now.as_millis().saturating_mul(1000).max(last + 1)
}

/// Gives a worker its next task: of the workspace whose turn it is, the most urgent, then the oldest.
pub(super) fn claim(
    connection: &Connection,
    request: &ClaimRequest,
    turn: i64,
    now: Timestamp,
) -> Result<Option<Claimed>, StoreError> {
    let mut waiting = connection.prepare_cached(
        "SELECT id FROM workspaces WHERE queued > 0 AND running < ?
             AND (volume IS NULL OR volume = ?) ORDER BY turn",
    )?;
    let volume = request.volume.to_bytes();
    let mut workspaces = waiting.query(params![request.per_workspace, volume])?;
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
    let mut take = connection.prepare_cached(concat!(
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
    let taken =
        take.query_row(bound, |row| Ok((rows::task(row)?, row.get(rows::SEQUENCE)?))).optional()?;
    let Some((mut task, sequence)) = taken else { return Ok(None) };
    let mut journal = Journal { task: task.id, sequence, last: task.last_event };
    let more = [("attempt", json!(task.attempt)), ("worker_id", json!(request.worker.0))];
    let event = status_changed(task.status, more, now);
    let events = journal.write(connection, vec![event])?;
    task.last_event = journal.last;
    let claim = Claim { task: task.id, attempt: task.attempt };
    Ok(Some(Claimed { claim, task, events }))
}

/// Returns when the next task is due that waits for its time.
pub(super) fn next_due(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let due: Option<i64> = connection
        .prepare_cached(
            "SELECT min(due_at) FROM task_executions WHERE status = 'queued' AND attempt > 0",
        )?
        .query_row([], |row| row.get(0))?;
    Ok(due.map(Timestamp::from_millis))
}

/// Tells whether anything is queued at all.
pub(super) fn is_any_queued(connection: &Connection) -> Result<bool, StoreError> {
    Ok(connection.prepare_cached("SELECT 1 FROM workspaces WHERE queued > 0 LIMIT 1")?.exists([])?)
}
