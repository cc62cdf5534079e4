//! From what a transaction did to what its operations are told.

use carrel_domain::{TaskId, TaskStatus};
use serde_json::json;

use super::batch::Outcome;
use super::operation::{Operation, Reply};
use super::session::Session;
use super::tasks;
use super::trouble::Trouble;
use crate::error::StoreError;
use crate::facts::{is_end_of, queued, status_changed, tells_the_same, to_millis};
use crate::model::{
    Appended, Claim, Claimed, Event, Finish, Finished, Heartbeat, NewEvent, NewTask, Submission,
};

/// Answers everybody. Returns the claims that nobody was left to take, and what is left for those who
/// wait.
pub(super) async fn answer(
    session: &mut Session,
    operations: Vec<Operation>,
    outcome: Outcome,
) -> (Vec<Claim>, Vec<Option<Claimed>>) {
    let Outcome { submitted, finished, appended, beats, claimed, .. } = outcome;
    let (mut submitted, mut finished) = (submitted.into_iter(), finished.into_iter());
    let (mut appended, mut beats) = (appended.into_iter(), beats.into_iter());
    let mut claimed = claimed.into_iter();
    let mut unclaimed = Vec::new();
    for operation in operations {
        match operation {
            Operation::Submit(new, reply) => {
                let answer = match submitted.next() {
                    Some((verdict, first)) => submission(session, *new, &verdict, first).await,
                    None => Err(Trouble::passing("a submission was not answered")),
                };
                send(reply, answer);
            }
            Operation::Finish(claim, finish, reply) => {
                let status = finished.next().flatten();
                send(reply, end(session, claim, *finish, status.as_deref()).await);
            }
            Operation::Append(claim, after, events, reply) => {
                let written = appended.next().unwrap_or(false);
                send(reply, news(session, claim, after, events, written).await);
            }
            Operation::Heartbeat(_, _, reply) => {
                let held = beats.next().flatten();
                let beat = held.map_or(Heartbeat::Lost, |cancel_requested| Heartbeat::Held {
                    cancel_requested,
                });
                send(reply, Ok(beat));
            }
            Operation::Claim(_, reply) => {
                let got = claimed.next().flatten();
                let claim = got.as_ref().map(|claimed| claimed.claim);
                if reply.send(Ok(got)).is_err() {
                    unclaimed.extend(claim);
                }
            }
        }
    }
    (unclaimed, claimed.collect())
}

fn send<T>(reply: Reply<T>, answer: Result<T, Trouble>) {
    // Whoever asked may have given up; what is done is done.
    let _ = reply.send(answer.map_err(StoreError::from));
}

fn numbered(task: TaskId, after: u64, events: Vec<NewEvent>) -> Vec<Event> {
    let numbers = after + 1..;
    let number = |(number, NewEvent { kind, data, at })| Event { task, number, kind, data, at };
    numbers.zip(events).map(number).collect()
}

async fn submission(
    session: &mut Session,
    new: NewTask,
    verdict: &str,
    first: TaskId,
) -> Result<Submission, Trouble> {
    match verdict {
        "created" => {
            let told = status_changed(TaskStatus::Queued, [], new.now);
            let task = queued(&new);
            Ok(Submission::Created(task, numbered(new.id, 0, vec![told])))
        }
        "mismatch" => Ok(Submission::Mismatch),
        "no_workspace" => Ok(Submission::NoWorkspace),
        "full" => Ok(Submission::Full { limit: new.max_waiting }),
        _ => {
            let there = tasks::find(session, first).await?;
            let there = there.ok_or_else(|| Trouble::passing("the task was just forgotten"))?;
            if there.id != new.id {
                return Ok(Submission::Repeated(there));
            }
            let events = tasks::events(session, new.id, 0, 1).await?;
            Ok(Submission::Created(there, events))
        }
    }
}

async fn end(
    session: &mut Session,
    claim: Claim,
    finish: Finish,
    status: Option<&str>,
) -> Result<Finished, Trouble> {
    if let Some(status) = status {
        let status = status.parse::<TaskStatus>();
        let status = status.map_err(|error| StoreError::Unreadable { what: error.to_string() })?;
        let more = [("execution_time_ms", json!(to_millis(finish.took)))];
        let mut events = finish.events;
        events.push(status_changed(status, more, finish.now));
        return Ok(Finished::Done { status, events: numbered(claim.task, finish.after, events) });
    }
    let Some(task) = tasks::find(session, claim.task).await? else { return Ok(Finished::Lost) };
    if !is_end_of(&task, claim, &finish) {
        return Ok(Finished::Lost);
    }
    let events = tasks::events(session, claim.task, finish.after, u32::MAX).await?;
    Ok(Finished::Done { status: task.status, events })
}

async fn news(
    session: &mut Session,
    claim: Claim,
    after: u64,
    events: Vec<NewEvent>,
    written: bool,
) -> Result<Appended, Trouble> {
    if written {
        return Ok(Appended::Written(numbered(claim.task, after, events)));
    }
    let held = tasks::find(session, claim.task)
        .await?
        .is_some_and(|task| task.status == TaskStatus::Running && task.attempt == claim.attempt);
    let limit = u32::try_from(events.len()).unwrap_or(u32::MAX);
    let there = tasks::events(session, claim.task, after, limit).await?;
    let same = held && tells_the_same(&there, &events);
    Ok(if same { Appended::Written(there) } else { Appended::Lost })
}
