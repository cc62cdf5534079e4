//! Turns the outcome of a batch into the replies of its operations.
//!
//! An operation that took effect is replied to from its own values. Only one that did not is looked up: it may
//! be a repetition of an earlier one whose reply was lost.

use carrel_domain::{TaskId, TaskStatus};

use super::batch::BatchOutcome;
use super::error::PgError;
use super::operation::{LaneOperation, ReplySender};
use super::session::PgSession;
use crate::error::StoreError;
use crate::event::numbered;
use crate::lifecycle::{
    is_repeated_append, is_repeated_finish, last_events, queued_task, status_changed,
};
use crate::records::{EVENTS, TASK};
use crate::value::values;
use crate::{
    Appended, Claim, Claimed, Event, Finish, Finished, Heartbeat, NewEvent, NewTask, Submission,
    Task,
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
                send(reply, finish_task(session, claim, *finish, status).await);
            }
            LaneOperation::Append(claim, after, events, reply) => {
                let written = appended.next().unwrap_or(false);
                send(reply, append(session, claim, after, events, written).await);
            }
            LaneOperation::Heartbeat(_, _, reply) => {
                send(reply, Ok(Heartbeat::of(heartbeats.next().flatten())));
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

async fn find(session: &mut PgSession, id: TaskId) -> Result<Option<Task>, PgError> {
    session.first(TASK, values![id]).await
}

/// Returns up to `limit` events with numbers greater than `after`.
async fn events_after(
    session: &mut PgSession,
    task: TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, PgError> {
    Ok(numbered(task, session.all(EVENTS, values![task, after, limit]).await?))
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
            Ok(Submission::Created(task, numbered(new.id, [(1, event)])))
        }
        "mismatch" => Ok(Submission::Mismatch),
        "no_workspace" => Ok(Submission::NoWorkspace),
        "full" => Ok(Submission::Full { limit: new.max_waiting }),
        _ => {
            let task = find(session, first).await?;
            let task = task.ok_or_else(|| PgError::transient("the task was just deleted"))?;
            if task.id != new.id {
                return Ok(Submission::Repeated(task));
            }
            let events = events_after(session, new.id, 0, 1).await?;
            Ok(Submission::Created(task, events))
        }
    }
}

async fn finish_task(
    session: &mut PgSession,
    claim: Claim,
    finish: Finish,
    status: Option<TaskStatus>,
) -> Result<Finished, PgError> {
    if let Some(status) = status {
        let numbers = finish.after + 1..;
        let events = numbered(claim.task, numbers.zip(last_events(finish, status)));
        return Ok(Finished::Done { status, events });
    }
    let Some(task) = find(session, claim.task).await? else { return Ok(Finished::Lost) };
    if !is_repeated_finish(&task, claim, &finish) {
        return Ok(Finished::Lost);
    }
    let events = events_after(session, claim.task, finish.after, usize::MAX).await?;
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
        return Ok(Appended::Written(numbered(claim.task, (after + 1..).zip(events))));
    }
    let held = find(session, claim.task)
        .await?
        .is_some_and(|task| task.status == TaskStatus::Running && task.attempt == claim.attempt);
    let stored = events_after(session, claim.task, after, events.len()).await?;
    let repeated = held && is_repeated_append(&stored, &events);
    Ok(if repeated { Appended::Written(stored) } else { Appended::Lost })
}
