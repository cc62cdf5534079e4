//! Turns the outcome of a batch into the replies of its operations.
//!
//! An operation that took effect is replied to from its own values. Only one that did not is looked up: it may
//! be a repetition of an earlier one whose reply was lost.

use carrel_domain::{TaskId, TaskStatus};
use serde_json::json;

use super::batch::BatchOutcome;
use super::error::PgError;
use super::operation::{LaneOperation, ReplySender};
use super::session::PgSession;
use super::tasks;
use crate::error::StoreError;
use crate::lifecycle::{
    is_repeated_append, is_repeated_finish, queued_task, status_changed, to_millis,
};
use crate::{
    Appended, Claim, Claimed, Event, Finish, Finished, Heartbeat, NewEvent, NewTask, Submission,
};

/// Replies to all operations. Returns the claims whose caller has gone, and the claimed tasks that remain for
/// waiting claims.
pub(super) async fn reply(
    session: &mut PgSession,
    operations: Vec<LaneOperation>,
    outcome: BatchOutcome,
) -> (Vec<Claim>, Vec<Option<Claimed>>) {
    let mut submitted = outcome.submitted.into_iter();
    let mut finished = outcome.finished.into_iter();
    let mut appended = outcome.appended.into_iter();
    let mut heartbeats = outcome.heartbeats.into_iter();
    let mut claimed = outcome.claimed.into_iter();
    let mut abandoned = Vec::new();
    for operation in operations {
        match operation {
            LaneOperation::Submit(new, reply) => {
                let result = match submitted.next() {
                    Some((verdict, first)) => submission(session, *new, &verdict, first).await,
                    None => Err(PgError::transient("a submission got no reply")),
                };
                send(reply, result);
            }
            LaneOperation::Finish(claim, finish, reply) => {
                let status = finished.next().flatten();
                send(reply, finish_task(session, claim, *finish, status.as_deref()).await);
            }
            LaneOperation::Append(claim, after, events, reply) => {
                let written = appended.next().unwrap_or(false);
                send(reply, append(session, claim, after, events, written).await);
            }
            LaneOperation::Heartbeat(_, _, reply) => {
                let held = heartbeats.next().flatten();
                let heartbeat = held.map_or(Heartbeat::Lost, |cancel_requested| Heartbeat::Held {
                    cancel_requested,
                });
                send(reply, Ok(heartbeat));
            }
            LaneOperation::Claim(_, reply) => {
                let claimed = claimed.next().flatten();
                let claim = claimed.as_ref().map(|claimed| claimed.claim);
                if reply.send(Ok(claimed)).is_err() {
                    abandoned.extend(claim);
                }
            }
        }
    }
    (abandoned, claimed.collect())
}

fn send<T>(reply: ReplySender<T>, result: Result<T, PgError>) {
    // The caller may have gone; the operation is committed all the same.
    let _ = reply.send(result.map_err(StoreError::from));
}

fn numbered(task: TaskId, after: u64, events: Vec<NewEvent>) -> Vec<Event> {
    let numbers = after + 1..;
    let number = |(number, NewEvent { kind, data, at })| Event { task, number, kind, data, at };
    numbers.zip(events).map(number).collect()
}

async fn submission(
    session: &mut PgSession,
    new: NewTask,
    verdict: &str,
    first: TaskId,
) -> Result<Submission, PgError> {
    match verdict {
        "created" => {
            let event = status_changed(TaskStatus::Queued, [], new.now);
            let task = queued_task(&new);
            Ok(Submission::Created(task, numbered(new.id, 0, vec![event])))
        }
        "mismatch" => Ok(Submission::Mismatch),
        "no_workspace" => Ok(Submission::NoWorkspace),
        "full" => Ok(Submission::Full { limit: new.max_waiting }),
        _ => {
            let task = tasks::find(session, first).await?;
            let task = task.ok_or_else(|| PgError::transient("the task was just deleted"))?;
            if task.id != new.id {
                return Ok(Submission::Repeated(task));
            }
            let events = tasks::events(session, new.id, 0, 1).await?;
            Ok(Submission::Created(task, events))
        }
    }
}

async fn finish_task(
    session: &mut PgSession,
    claim: Claim,
    finish: Finish,
    status: Option<&str>,
) -> Result<Finished, PgError> {
    if let Some(status) = status {
        let status = status.parse::<TaskStatus>();
        let status = status.map_err(|error| StoreError::Unreadable { what: error.to_string() })?;
        let fields = [("execution_time_ms", json!(to_millis(finish.took)))];
        let mut events = finish.events;
        events.push(status_changed(status, fields, finish.now));
        return Ok(Finished::Done { status, events: numbered(claim.task, finish.after, events) });
    }
    let Some(task) = tasks::find(session, claim.task).await? else { return Ok(Finished::Lost) };
    if !is_repeated_finish(&task, claim, &finish) {
        return Ok(Finished::Lost);
    }
    let events = tasks::events(session, claim.task, finish.after, u32::MAX).await?;
    Ok(Finished::Done { status: task.status, events })
}

async fn append(
    session: &mut PgSession,
    claim: Claim,
    after: u64,
    events: Vec<NewEvent>,
    written: bool,
) -> Result<Appended, PgError> {
    if written {
        return Ok(Appended::Written(numbered(claim.task, after, events)));
    }
    let held = tasks::find(session, claim.task)
        .await?
        .is_some_and(|task| task.status == TaskStatus::Running && task.attempt == claim.attempt);
    let limit = u32::try_from(events.len()).unwrap_or(u32::MAX);
    let stored = tasks::events(session, claim.task, after, limit).await?;
    let repeated = held && is_repeated_append(&stored, &events);
    Ok(if repeated { Appended::Written(stored) } else { Appended::Lost })
}
