//! Submission and cancellation of tasks, and their events. A task's row stores the number of its last
//! event, so that an append needs no query for the maximum, and a claim's view of the events can be
//! compared with one number.

use carrel_domain::{TaskId, TaskStatus, Timestamp};
use rusqlite::Connection;

use super::connection::Execute as _;
use super::lease;
use crate::error::StoreError;
use crate::event::numbered;
use crate::lifecycle::{TaskState, queued_task, select_task_state, status_changed};
use crate::records::{EVENTS, TASK};
use crate::value::values;
use crate::{Cancellation, Event, NewTask, Submission, Task};

/// Queues a task, unless its id or its idempotency key was submitted before.
pub(super) fn submit(connection: &Connection, new: &NewTask) -> Result<Submission, StoreError> {
    const FIRST: &str = "SELECT digest, task_id FROM replies WHERE scope = $1 AND key = $2";
    const QUEUED: &str = "SELECT queued FROM workspaces WHERE id = $1";
    const KEY: &str = "INSERT OR REPLACE INTO replies (scope, key, digest, task_id, at)
        VALUES ($1, $2, $3, $4, $5)";
    if let Some(key) = &new.idempotency_key
        && let Some(first) = connection.first(FIRST, values![&key.scope, &key.key])?
    {
        let (digest, made): ([u8; 32], Option<TaskId>) = first;
        if digest != key.digest {
            return Ok(Submission::Mismatch);
        }
        if let Some(task) = made.map(|id| find(connection, id)).transpose()?.flatten()
            && task.id != new.id
        {
            return Ok(Submission::Repeated(task));
        }
    }
    if let Some(task) = find(connection, new.id)? {
        return Ok(Submission::Created(task, events(connection, new.id, 0, 1)?));
    }
    match connection.first::<u64>(QUEUED, values![new.workspace])? {
        None => return Ok(Submission::NoWorkspace),
        Some(queued) if queued >= new.max_waiting => {
            return Ok(Submission::Full { limit: new.max_waiting });
        }
        Some(_) => {}
    }
    if let Some(key) = &new.idempotency_key {
        connection.change(KEY, values![&key.scope, &key.key, key.digest, new.id, new.now])?;
    }
    insert(connection, new)
}

fn insert(connection: &Connection, new: &NewTask) -> Result<Submission, StoreError> {
    const INSERT: &str = "INSERT INTO task_executions (id, workspace_id, task_type, priority,
            status, configuration, timeout_ms, correlation_id, submitted_at, due_at, max_attempts,
            last_event)
        VALUES ($1, $2, $3, $4, 'queued', $5, $6, $7, $8, $8, $9, 1)";
    let task = queued_task(new);
    connection.change(
        INSERT,
        values![
            task.id,
            task.workspace,
            &task.task_type,
            task.priority,
            &task.configuration,
            task.timeout,
            task.correlation_id.as_ref(),
            new.now,
            task.max_attempts
        ],
    )?;
    let sequence = connection.last_insert_rowid();
    let events = numbered(task.id, [(1, status_changed(task.status, [], new.now))]);
    insert_events(connection, sequence, &events)?;
    Ok(Submission::Created(task, events))
}

/// Adds events of the task with this row id.
pub(super) fn insert_events(
    connection: &Connection,
    sequence: i64,
    events: &[Event],
) -> Result<(), StoreError> {
    const INSERT: &str =
        "INSERT INTO task_events (task, number, kind, data, at) VALUES ($1, $2, $3, $4, $5)";
    for event in events {
        let values = values![sequence, event.number, event.kind, &event.data, event.at];
        connection.change(INSERT, values)?;
    }
    Ok(())
}

fn state(connection: &Connection, id: TaskId) -> Result<Option<TaskState>, StoreError> {
    connection.first(select_task_state!("id = $1"), values![id])
}

/// Cancels a queued task, or requests the cancellation of a running one.
pub(super) fn cancel(
    connection: &Connection,
    id: TaskId,
    now: Timestamp,
) -> Result<Cancellation, StoreError> {
    const REQUEST: &str = "UPDATE task_executions SET cancel_requested = 1 WHERE sequence = $1";
    let Some(task) = state(connection, id)? else { return Ok(Cancellation::Unknown) };
    match task.status {
        TaskStatus::Queued => {
            Ok(Cancellation::Cancelled(lease::write(connection, &task, task.cancel(now))?))
        }
        TaskStatus::Running => {
            connection.change(REQUEST, values![task.sequence])?;
            Ok(Cancellation::Requested)
        }
        TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Cancelled
        | TaskStatus::TimedOut
        | TaskStatus::Dead => Ok(Cancellation::Finished(task.status)),
    }
}

/// Ends a queued task as failed and deletes its idempotency key.
pub(super) fn fail(
    connection: &Connection,
    id: TaskId,
    error: String,
    now: Timestamp,
) -> Result<Option<Vec<Event>>, StoreError> {
    match state(connection, id)? {
        Some(task) if task.status == TaskStatus::Queued => {
            connection.change("DELETE FROM replies WHERE task_id = $1", values![id])?;
            let failure = task.fail(TaskStatus::Failed, error, now);
            Ok(Some(lease::write(connection, &task, failure)?))
        }
        _ => Ok(None),
    }
}

pub(super) fn find(connection: &Connection, id: TaskId) -> Result<Option<Task>, StoreError> {
    connection.first(TASK, values![id])
}

/// Returns up to `limit` events with numbers greater than `after`.
pub(super) fn events(
    connection: &Connection,
    task: TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    Ok(numbered(task, connection.all(EVENTS, values![task, after, limit])?))
}
