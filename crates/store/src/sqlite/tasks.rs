//! Submission, cancellation and lists of tasks.

use carrel_domain::{TaskId, TaskStatus, Timestamp, WorkspaceId};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::events::EventLog;
use super::rows::{self, task_columns};
use super::{events, idempotency, lease};
use crate::error::StoreError;
use crate::lifecycle::{queued_task, rank, signed, status_changed, to_millis};
use crate::{Cancellation, Event, NewTask, Page, QueuedTask, Submission, Task, TaskFilter};

/// Queues a task, unless its id or its idempotency key was submitted before.
pub(super) fn submit(connection: &Connection, new: &NewTask) -> Result<Submission, StoreError> {
    if let Some(key) = &new.idempotency_key
        && let Some((digest, made)) = idempotency::task_of(connection, key)?
    {
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
        let events = events::after(connection, new.id, 0, 1)?;
        return Ok(Submission::Created(task, events));
    }
    let queued: Option<i64> = connection
        .prepare_cached("SELECT queued FROM workspaces WHERE id = ?")?
        .query_row([new.workspace.to_bytes()], |row| row.get(0))
        .optional()?;
    match queued {
        None => return Ok(Submission::NoWorkspace),
        Some(queued) if queued >= signed(new.max_waiting) => {
            return Ok(Submission::Full { limit: new.max_waiting });
        }
        Some(_) => {}
    }
    if let Some(key) = &new.idempotency_key {
        idempotency::save_task(connection, key, new.id, new.now)?;
    }
    insert(connection, new)
}

fn insert(connection: &Connection, new: &NewTask) -> Result<Submission, StoreError> {
    let now = new.now.as_millis();
    connection
        .prepare_cached(
            "INSERT INTO task_executions (id, workspace_id, task_type, priority, status,
                 configuration, timeout_ms, correlation_id, submitted_at, due_at, max_attempts)
             VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            new.id.to_bytes(),
            new.workspace.to_bytes(),
            new.task_type,
            rank(new.priority),
            new.configuration.to_string(),
            to_millis(new.timeout),
            new.correlation_id,
            now,
            now,
            new.max_attempts
        ])?;
    let sequence = connection.last_insert_rowid();
    let mut log = EventLog { task: new.id, sequence, last: 0 };
    let event = status_changed(TaskStatus::Queued, [], new.now);
    let events = log.append(connection, vec![event])?;
    Ok(Submission::Created(queued_task(new), events))
}

/// Cancels a queued task, or requests the cancellation of a running one.
pub(super) fn cancel(
    connection: &Connection,
    id: TaskId,
    now: Timestamp,
) -> Result<Cancellation, StoreError> {
    let Some((task, log)) = find_with_log(connection, id)? else {
        return Ok(Cancellation::Unknown);
    };
    match task.status {
        TaskStatus::Queued => {
            Ok(Cancellation::Cancelled(lease::cancel_queued(connection, log, now)?))
        }
        TaskStatus::Running => {
            connection
                .prepare_cached(
                    "UPDATE task_executions SET cancel_requested = 1 WHERE sequence = ?",
                )?
                .execute([log.sequence])?;
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
    error: &str,
    now: Timestamp,
) -> Result<Option<Vec<Event>>, StoreError> {
    match find_with_log(connection, id)? {
        Some((task, log)) if task.status == TaskStatus::Queued => {
            idempotency::delete_task(connection, id)?;
            Ok(Some(lease::fail_queued(connection, log, error, now)?))
        }
        _ => Ok(None),
    }
}

/// Returns queued tasks that were due before a time, by priority and then by age.
pub(super) fn queued(
    connection: &Connection,
    due_before: Timestamp,
    limit: u32,
) -> Result<Vec<QueuedTask>, StoreError> {
    let mut select = connection.prepare_cached(
        "SELECT t.id, t.workspace_id, t.priority, w.volume
         FROM task_executions t JOIN workspaces w ON w.id = t.workspace_id
         WHERE t.status = 'queued' AND t.due_at < ? ORDER BY t.priority, t.sequence LIMIT ?",
    )?;
    let found = select.query_map(params![due_before.as_millis(), limit], |row| {
        Ok(QueuedTask {
            task: TaskId::from_bytes(row.get(0)?),
            workspace: WorkspaceId::from_bytes(row.get(1)?),
            priority: rows::priority(row, 2)?,
            volume: rows::volume(row, 3)?,
        })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn find_with_log(
    connection: &Connection,
    id: TaskId,
) -> Result<Option<(Task, EventLog)>, StoreError> {
    let found = connection
        .prepare_cached(concat!("SELECT ", task_columns!(), " FROM task_executions WHERE id = ?"))?
        .query_row([id.to_bytes()], |row| Ok((rows::task(row)?, row.get(rows::SEQUENCE)?)))
        .optional()?;
    Ok(found.map(|(task, sequence)| {
        let log = EventLog { task: id, sequence, last: task.last_event };
        (task, log)
    }))
}

pub(super) fn find(connection: &Connection, id: TaskId) -> Result<Option<Task>, StoreError> {
    let found = connection
        .prepare_cached(concat!("SELECT ", task_columns!(), " FROM task_executions WHERE id = ?"))?
        .query_row([id.to_bytes()], rows::task)
        .optional()?;
    Ok(found)
}

pub(super) fn list(connection: &Connection, filter: &TaskFilter) -> Result<Page, StoreError> {
    // Configurations and results may be large and are left out of lists.
    const COLUMNS: &str = "id, workspace_id, task_type, priority, status, 'null', timeout_ms,
        correlation_id, submitted_at, started_at, completed_at, attempt, max_attempts, worker_id,
        cancel_requested, NULL, error_message, execution_time_ms, last_event, sequence";
    const WHERE: &str = "FROM task_executions WHERE workspace_id = ?1
        AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR task_type = ?3)";
    let workspace = filter.workspace.to_bytes();
    let status = filter.status.map(TaskStatus::as_str);
    let total: i64 = connection
        .prepare_cached(&format!("SELECT count(*) {WHERE}"))?
        .query_row(params![workspace, status, filter.task_type], |row| row.get(0))?;
    let mut select = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} {WHERE} ORDER BY sequence DESC LIMIT ?4 OFFSET ?5"
    ))?;
    let bound = params![workspace, status, filter.task_type, filter.limit, signed(filter.offset)];
    let tasks = select.query_map(bound, rows::task)?.collect::<rusqlite::Result<_>>()?;
    Ok(Page { tasks, total: u64::try_from(total).unwrap_or(0) })
}
