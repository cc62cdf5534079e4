//! Writes of a claim, and the release of tasks.
//!
//! Every write begins with [`held`], which finds the task only if it is running with the attempt of the
//! claim: this is the fence. Since the writer thread runs one operation after the other, the check and the
//! write cannot be separated by another write.

use std::time::Duration;

use carrel_domain::{TaskId, TaskStatus, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::{Value, json};

use super::events::{self, EventLog};
use super::tasks;
use crate::error::StoreError;
use crate::lifecycle::{
    AttemptState, LEASE_EXPIRED, Transition, failed, is_repeated_append, is_repeated_finish,
    status_changed, to_millis,
};
use crate::{
    Appended, Claim, Event, Finish, Finished, Heartbeat, NewEvent, Release, Released, WorkerId,
};

struct RunningTask {
    log: EventLog,
    state: AttemptState,
}

const RUNNING_COLUMNS: &str =
    "id, sequence, last_event, cancel_requested, attempt, lost, max_attempts";

fn running_task(row: &Row<'_>) -> rusqlite::Result<RunningTask> {
    let last: i64 = row.get(2)?;
    Ok(RunningTask {
        log: EventLog {
            task: TaskId::from_bytes(row.get(0)?),
            sequence: row.get(1)?,
            last: u64::try_from(last)
                .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(2, last))?,
        },
        state: AttemptState {
            cancel_requested: row.get(3)?,
            attempt: row.get(4)?,
            lost: row.get(5)?,
            max_attempts: row.get(6)?,
        },
    })
}

/// Returns the task if the claim's attempt is the current one.
fn held(connection: &Connection, claim: Claim) -> rusqlite::Result<Option<RunningTask>> {
    connection
        .prepare_cached(&format!(
            "SELECT {RUNNING_COLUMNS} FROM task_executions
             WHERE id = ? AND attempt = ? AND status = 'running'"
        ))?
        .query_row(params![claim.task.to_bytes(), claim.attempt], running_task)
        .optional()
}

pub(super) fn heartbeat(
    connection: &Connection,
    claim: Claim,
    until: Timestamp,
) -> Result<Heartbeat, StoreError> {
    let cancel_requested = connection
        .prepare_cached(
            "UPDATE task_executions SET lease_until = max(lease_until, ?)
             WHERE id = ? AND attempt = ? AND status = 'running' RETURNING cancel_requested",
        )?
        .query_row(params![until.as_millis(), claim.task.to_bytes(), claim.attempt], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(cancel_requested
        .map_or(Heartbeat::Lost, |cancel_requested| Heartbeat::Held { cancel_requested }))
}

pub(super) fn append(
    connection: &Connection,
    claim: Claim,
    after: u64,
    events: Vec<NewEvent>,
) -> Result<Appended, StoreError> {
    let Some(mut running) = held(connection, claim)? else { return Ok(Appended::Lost) };
    if running.log.last == after {
        return Ok(Appended::Written(running.log.append(connection, events)?));
    }
    let limit = u32::try_from(events.len()).unwrap_or(u32::MAX);
    let stored = events::after(connection, claim.task, after, limit)?;
    let repeated = is_repeated_append(&stored, &events);
    Ok(if repeated { Appended::Written(stored) } else { Appended::Lost })
}

/// Ends a task, unless the same end was written before.
pub(super) fn finish(
    connection: &Connection,
    claim: Claim,
    finish: Finish,
) -> Result<Finished, StoreError> {
    let Some(running) = held(connection, claim)? else {
        return repeated_finish(connection, claim, &finish);
    };
    if running.log.last != finish.after {
        return Ok(Finished::Lost);
    }
    // A requested cancellation was acknowledged and wins over the worker's status.
    let status = if running.state.cancel_requested { TaskStatus::Cancelled } else { finish.status };
    let took = to_millis(finish.took);
    let mut events = finish.events;
    events.push(status_changed(status, [("execution_time_ms", json!(took))], finish.now));
    let end = TerminalState {
        status,
        result: Some(&finish.result),
        error: finish.error.as_deref(),
        took: Some(took),
        now: finish.now,
    };
    let events = end.write(connection, running.log, events)?;
    Ok(Finished::Done { status, events })
}

/// Returns the earlier reply to a worker that missed it, or `Lost`.
fn repeated_finish(
    connection: &Connection,
    claim: Claim,
    finish: &Finish,
) -> Result<Finished, StoreError> {
    let Some(task) = tasks::find(connection, claim.task)? else { return Ok(Finished::Lost) };
    if !is_repeated_finish(&task, claim, finish) {
        return Ok(Finished::Lost);
    }
    let events = events::after(connection, claim.task, finish.after, u32::MAX)?;
    Ok(Finished::Done { status: task.status, events })
}

struct TerminalState<'a> {
    status: TaskStatus,
    result: Option<&'a Value>,
    error: Option<&'a str>,
    took: Option<i64>,
    now: Timestamp,
}

impl TerminalState<'_> {
    fn write(
        &self,
        connection: &Connection,
        mut log: EventLog,
        events: Vec<NewEvent>,
    ) -> rusqlite::Result<Vec<Event>> {
        debug_assert!(self.status.is_terminal(), "{} is no end", self.status);
        connection
            .prepare_cached(
                "UPDATE task_executions SET status = ?, result = ?, error_message = ?,
                     execution_time_ms = ?, completed_at = ?, lease_until = NULL
                 WHERE sequence = ? AND completed_at IS NULL",
            )?
            .execute(params![
                self.status.as_str(),
                self.result.map(Value::to_string),
                self.error,
                self.took,
                self.now.as_millis(),
                log.sequence
            ])?;
        log.append(connection, events)
    }
}

pub(super) fn fail_queued(
    connection: &Connection,
    log: EventLog,
    error: &str,
    now: Timestamp,
) -> rusqlite::Result<Vec<Event>> {
    let status = TaskStatus::Failed;
    let end = TerminalState { status, result: None, error: Some(error), took: None, now };
    end.write(connection, log, failed(status, error, now))
}

pub(super) fn cancel_queued(
    connection: &Connection,
    log: EventLog,
    now: Timestamp,
) -> rusqlite::Result<Vec<Event>> {
    let status = TaskStatus::Cancelled;
    let end = TerminalState { status, result: None, error: None, took: None, now };
    end.write(connection, log, vec![status_changed(status, [], now)])
}

pub(super) fn release(
    connection: &Connection,
    claim: Claim,
    release: &Release,
) -> Result<Released, StoreError> {
    let Some(running) = held(connection, claim)? else { return Ok(Released::Lost) };
    let (status, events) = release_task(connection, running, release)?;
    Ok(Released::Done { status, events })
}

fn release_task(
    connection: &Connection,
    running: RunningTask,
    release: &Release,
) -> rusqlite::Result<(TaskStatus, Vec<Event>)> {
    let RunningTask { mut log, state } = running;
    let Transition { status, error, lost, events } = state.release(release);
    if status.is_terminal() {
        let error = error.as_deref();
        let end = TerminalState { status, result: None, error, took: None, now: release.now };
        return Ok((status, end.write(connection, log, events)?));
    }
    connection
        .prepare_cached(
            "UPDATE task_executions SET status = 'queued', lease_until = NULL, due_at = ?, lost = ?
             WHERE sequence = ?",
        )?
        .execute(params![release.due.as_millis(), lost, log.sequence])?;
    Ok((status, log.append(connection, events)?))
}

pub(super) fn release_expired(
    connection: &Connection,
    now: Timestamp,
    delay: fn(u32) -> Duration,
) -> Result<Vec<Event>, StoreError> {
    let mut select = connection.prepare_cached(&format!(
        "SELECT {RUNNING_COLUMNS} FROM task_executions
         WHERE status = 'running' AND lease_until <= ? ORDER BY lease_until"
    ))?;
    let expired: Vec<_> =
        select.query_map([now.as_millis()], running_task)?.collect::<rusqlite::Result<_>>()?;
    let mut events = Vec::new();
    for running in expired {
        let due = now.after(delay(running.state.lost + 1));
        let reason = LEASE_EXPIRED.to_owned();
        let release = Release { reason, due, now, counts_as_lost: true };
        events.extend(release_task(connection, running, &release)?.1);
    }
    Ok(events)
}

/// Releases every running task whose worker is not in `alive`.
pub(super) fn release_except(
    connection: &Connection,
    alive: &[WorkerId],
    now: Timestamp,
) -> Result<Vec<Event>, StoreError> {
    let mut select = connection.prepare_cached(&format!(
        "SELECT {RUNNING_COLUMNS}, worker_id FROM task_executions WHERE status = 'running'
         ORDER BY sequence"
    ))?;
    let all: Vec<(RunningTask, Option<String>)> = select
        .query_map([], |row| Ok((running_task(row)?, row.get(7)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut events = Vec::new();
    for (running, worker) in all {
        if alive.iter().any(|alive| Some(&alive.0) == worker.as_ref()) {
            continue;
        }
        let reason = LEASE_EXPIRED.to_owned();
        let release = Release { reason, due: now, now, counts_as_lost: true };
        events.extend(release_task(connection, running, &release)?.1);
    }
    Ok(events)
}
