//! What the holder of a claim may do, and how a task is taken from it.

use std::time::Duration;

use carrel_domain::{TaskId, TaskStatus, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::{Value, json};

use super::events::{self, Journal};
use super::tasks;
use crate::error::StoreError;
use crate::facts::{
    LOST, TakenBack, Tries, ended, is_end_of, status_changed, tells_the_same, to_millis,
};
use crate::model::{
    Appended, Claim, Event, Finish, Finished, Heartbeat, NewEvent, Release, Released, WorkerId,
};

/// A task that runs, as far as it matters to its holder.
struct Running {
    journal: Journal,
    tries: Tries,
}

const RUNNING_COLUMNS: &str =
    "id, sequence, last_event, cancel_requested, attempt, lost, max_attempts";

fn running(row: &Row<'_>) -> rusqlite::Result<Running> {
    let last: i64 = row.get(2)?;
    Ok(Running {
        journal: Journal {
            task: TaskId::from_bytes(row.get(0)?),
            sequence: row.get(1)?,
            last: u64::try_from(last)
                .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(2, last))?,
        },
        tries: Tries {
            cancel_requested: row.get(3)?,
            attempt: row.get(4)?,
            lost: row.get(5)?,
            max_attempts: row.get(6)?,
        },
    })
}

/// Returns the task, if the claim still holds.
fn held(connection: &Connection, claim: Claim) -> rusqlite::Result<Option<Running>> {
    connection
        .prepare_cached(&format!(
            "SELECT {RUNNING_COLUMNS} FROM task_executions
             WHERE id = ? AND attempt = ? AND status = 'running'"
        ))?
        .query_row(params![claim.task.to_bytes(), claim.attempt], running)
        .optional()
}

/// Makes a claim hold until then.
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

/// Remembers what a worker has to tell.
pub(super) fn append(
    connection: &Connection,
    claim: Claim,
    after: u64,
    events: Vec<NewEvent>,
) -> Result<Appended, StoreError> {
    let Some(mut running) = held(connection, claim)? else { return Ok(Appended::Lost) };
    if running.journal.last == after {
        return Ok(Appended::Written(running.journal.write(connection, events)?));
    }
    let limit = u32::try_from(events.len()).unwrap_or(u32::MAX);
    let there = events::after(connection, claim.task, after, limit)?;
    Ok(if tells_the_same(&there, &events) { Appended::Written(there) } else { Appended::Lost })
}

/// Ends a task.
pub(super) fn finish(
    connection: &Connection,
    claim: Claim,
    finish: Finish,
) -> Result<Finished, StoreError> {
    let Some(running) = held(connection, claim)? else {
        return finished_before(connection, claim, &finish);
    };
    if running.journal.last != finish.after {
        return Ok(Finished::Lost);
    }
    // Whoever asked for the end was told that it would come.
    let status = if running.tries.cancel_requested { TaskStatus::Cancelled } else { finish.status };
    let took = to_millis(finish.took);
    let told = status_changed(status, [("execution_time_ms", json!(took))], finish.now);
    let mut events = finish.events;
    events.push(told);
    let end = End {
        status,
        result: Some(&finish.result),
        error: finish.error.as_deref(),
        took: Some(took),
        now: finish.now,
    };
    let events = end.write(connection, running.journal, events)?;
    Ok(Finished::Done { status, events })
}

/// Answers a worker that did not hear the answer to the end of its task.
fn finished_before(
    connection: &Connection,
    claim: Claim,
    finish: &Finish,
) -> Result<Finished, StoreError> {
    let Some(task) = tasks::find(connection, claim.task)? else { return Ok(Finished::Lost) };
    if !is_end_of(&task, claim, finish) {
        return Ok(Finished::Lost);
    }
    let events = events::after(connection, claim.task, finish.after, u32::MAX)?;
    Ok(Finished::Done { status: task.status, events })
}

/// A terminal state.
struct End<'a> {
    status: TaskStatus,
    result: Option<&'a Value>,
    error: Option<&'a str>,
    took: Option<i64>,
    now: Timestamp,
}

impl End<'_> {
    /// Writes the state and its events.
    fn write(
        &self,
        connection: &Connection,
        mut journal: Journal,
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
                journal.sequence
            ])?;
        journal.write(connection, events)
    }
}

/// Ends a task that waits, as failed.
pub(super) fn fail_queued(
    connection: &Connection,
    journal: Journal,
    error: &str,
    now: Timestamp,
) -> rusqlite::Result<Vec<Event>> {
    let (status, told) = ended(TaskStatus::Failed, error, now);
    let end = End { status, result: None, error: Some(error), took: None, now };
    end.write(connection, journal, told)
}

/// Ends a task that waits.
pub(super) fn cancel_queued(
    connection: &Connection,
    journal: Journal,
    now: Timestamp,
) -> rusqlite::Result<Vec<Event>> {
    let status = TaskStatus::Cancelled;
    let end = End { status, result: None, error: None, took: None, now };
    end.write(connection, journal, vec![status_changed(status, [], now)])
}

/// Takes a task back from its worker.
pub(super) fn release(
    connection: &Connection,
    claim: Claim,
    back: &Release,
) -> Result<Released, StoreError> {
    let Some(running) = held(connection, claim)? else { return Ok(Released::Lost) };
    let (status, events) = take_back(connection, running, back)?;
    Ok(Released::Done { status, events })
}

fn take_back(
    connection: &Connection,
    running: Running,
    back: &Release,
) -> rusqlite::Result<(TaskStatus, Vec<Event>)> {
    let Running { mut journal, tries } = running;
    let TakenBack { status, error, lost, told } = tries.taken_back(back);
    if status.is_terminal() {
        let end = End { status, result: None, error: error.as_deref(), took: None, now: back.now };
        return Ok((status, end.write(connection, journal, told)?));
    }
    connection
        .prepare_cached(
            "UPDATE task_executions SET status = 'queued', lease_until = NULL, due_at = ?, lost = ?
             WHERE sequence = ?",
        )?
        .execute(params![back.due.as_millis(), lost, journal.sequence])?;
    Ok((status, journal.write(connection, told)?))
}

/// Takes back every task whose claim has run out.
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
        select.query_map([now.as_millis()], running)?.collect::<rusqlite::Result<_>>()?;
    let mut told = Vec::new();
    for running in expired {
        let due = now.after(delay(running.tries.lost + 1));
        let back = Release { reason: LOST.to_owned(), due, now, counts: true };
        told.extend(take_back(connection, running, &back)?.1);
    }
    Ok(told)
}

/// Takes back every task of workers that are not among these.
pub(super) fn release_except(
    connection: &Connection,
    alive: &[WorkerId],
    now: Timestamp,
) -> Result<Vec<Event>, StoreError> {
    let mut select = connection.prepare_cached(&format!(
        "SELECT {RUNNING_COLUMNS}, worker_id FROM task_executions WHERE status = 'running'
         ORDER BY sequence"
    ))?;
    let all: Vec<(Running, Option<String>)> = select
        .query_map([], |row| Ok((running(row)?, row.get(7)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut told = Vec::new();
    for (running, worker) in all {
        if alive.iter().any(|alive| Some(&alive.0) == worker.as_ref()) {
            continue;
        }
        let back = Release { reason: LOST.to_owned(), due: now, now, counts: true };
        told.extend(take_back(connection, running, &back)?.1);
    }
    Ok(told)
}
