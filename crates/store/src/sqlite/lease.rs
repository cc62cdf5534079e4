//! Writes of a claim, and the release of tasks.
//!
//! Every write begins with [`held`], which finds the task only if it is running with the attempt of the
//! claim: this is the fence. Since the writer thread runs one operation after the other, the check and the
//! write cannot be separated by another write.

use std::time::Duration;

use carrel_domain::{TaskStatus, Timestamp};
use rusqlite::Connection;

use super::connection::Execute as _;
use super::tasks;
use crate::error::StoreError;
use crate::event::numbered;
use crate::lifecycle::{
    TaskState, Transition, is_repeated_append, is_repeated_finish, last_events, select_task_state,
};
use crate::value::values;
use crate::{
    Appended, Claim, Event, Finish, Finished, Heartbeat, NewEvent, Release, Released, WorkerId,
};

/// Returns the task if the claim's attempt is the current one.
fn held(connection: &Connection, claim: Claim) -> Result<Option<TaskState>, StoreError> {
    const HELD: &str = select_task_state!("id = $1 AND attempt = $2 AND status = 'running'");
    connection.first(HELD, values![claim.task, claim.attempt])
}

pub(super) fn heartbeat(
    connection: &Connection,
    claim: Claim,
    until: Timestamp,
) -> Result<Heartbeat, StoreError> {
    const EXTEND: &str = "UPDATE task_executions SET lease_until = max(lease_until, $1)
        WHERE id = $2 AND attempt = $3 AND status = 'running' RETURNING cancel_requested";
    let held = connection.first(EXTEND, values![until, claim.task, claim.attempt])?;
    Ok(Heartbeat::of(held))
}

pub(super) fn append(
    connection: &Connection,
    claim: Claim,
    after: u64,
    events: Vec<NewEvent>,
) -> Result<Appended, StoreError> {
    const LAST: &str = "UPDATE task_executions SET last_event = $1 WHERE sequence = $2";
    let Some(task) = held(connection, claim)? else { return Ok(Appended::Lost) };
    if task.last_event == after {
        let events = numbered(task.id, (after + 1..).zip(events));
        tasks::insert_events(connection, task.sequence, &events)?;
        connection.change(LAST, values![after + events.len() as u64, task.sequence])?;
        return Ok(Appended::Written(events));
    }
    let stored = tasks::events(connection, claim.task, after, events.len())?;
    let repeated = is_repeated_append(&stored, &events);
    Ok(if repeated { Appended::Written(stored) } else { Appended::Lost })
}

/// Ends a task, unless the same end was written before.
pub(super) fn finish(
    connection: &Connection,
    claim: Claim,
    finish: Finish,
) -> Result<Finished, StoreError> {
    const RESULT: &str =
        "UPDATE task_executions SET result = $1, execution_time_ms = $2 WHERE sequence = $3";
    let Some(task) = held(connection, claim)? else {
        return repeated_finish(connection, claim, &finish);
    };
    if task.last_event != finish.after {
        return Ok(Finished::Lost);
    }
    // A requested cancellation was acknowledged and wins over the worker's status.
    let status = if task.cancel_requested { TaskStatus::Cancelled } else { finish.status };
    debug_assert!(status.is_terminal(), "{status} is no end");
    connection.change(RESULT, values![&finish.result, finish.took, task.sequence])?;
    let (error, now) = (finish.error.clone(), finish.now);
    let events = last_events(finish, status);
    let end = Transition { status, error, lost: task.lost, due: None, events, now };
    Ok(Finished::Done { status, events: write(connection, &task, end)? })
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
    let events = tasks::events(connection, claim.task, finish.after, usize::MAX)?;
    Ok(Finished::Done { status: task.status, events })
}

/// Writes a transition with its events, which are returned.
pub(super) fn write(
    connection: &Connection,
    task: &TaskState,
    transition: Transition,
) -> Result<Vec<Event>, StoreError> {
    const UPDATE: &str = "UPDATE task_executions SET status = $2, error_message = $3,
            completed_at = $4, due_at = coalesce($5, due_at), lost = $6, last_event = $7,
            lease_until = NULL
        WHERE sequence = $1 AND completed_at IS NULL";
    let completed = transition.completed_at();
    let Transition { status, error, lost, due, events, .. } = transition;
    let last = task.last_event + events.len() as u64;
    let events = numbered(task.id, (task.last_event + 1..).zip(events));
    connection.change(UPDATE, values![task.sequence, status, error, completed, due, lost, last])?;
    tasks::insert_events(connection, task.sequence, &events)?;
    Ok(events)
}

pub(super) fn release(
    connection: &Connection,
    claim: Claim,
    release: &Release,
) -> Result<Released, StoreError> {
    let Some(task) = held(connection, claim)? else { return Ok(Released::Lost) };
    let transition = task.release(release);
    let status = transition.status;
    Ok(Released::Done { status, events: write(connection, &task, transition)? })
}

pub(super) fn release_expired(
    connection: &Connection,
    now: Timestamp,
    delay: fn(u32) -> Duration,
) -> Result<Vec<Event>, StoreError> {
    const EXPIRED: &str =
        select_task_state!("status = 'running' AND lease_until <= $1 ORDER BY lease_until");
    let mut events = Vec::new();
    for task in connection.all::<TaskState>(EXPIRED, values![now])? {
        let release = Release::expired(now.after(delay(task.lost + 1)), now);
        events.extend(write(connection, &task, task.release(&release))?);
    }
    Ok(events)
}

/// Releases every running task whose worker is not in `alive`.
pub(super) fn release_except(
    connection: &Connection,
    alive: &[WorkerId],
    now: Timestamp,
) -> Result<Vec<Event>, StoreError> {
    const RUNNING: &str =
        "SELECT id, sequence, last_event, status, cancel_requested, attempt, lost,
        max_attempts, worker_id FROM task_executions WHERE status = 'running' ORDER BY sequence";
    let mut events = Vec::new();
    for (task, worker) in connection.all::<(TaskState, Option<WorkerId>)>(RUNNING, vec![])? {
        if worker.is_none_or(|worker| !alive.contains(&worker)) {
            let release = Release::expired(now, now);
            events.extend(write(connection, &task, task.release(&release))?);
        }
    }
    Ok(events)
}
