//! The rules of a task's life that both databases share.
//!
//! ```text
//!            claim              finish
//!   queued ─────────► running ─────────► completed | failed | timed_out | cancelled
//!     ▲                  │ release
//!     └──────────────────┴─────────────► dead (last attempt lost) | cancelled (requested)
//! ```
//!
//! A queued task can also become cancelled, or failed if its hint could not be sent. Triggers of both
//! schemas refuse any change of a terminal status. Here are the events of each transition, the decision about a
//! released task, and the recognition of repeated writes, so that both stores reply in the same words.

use carrel_domain::{Clock as _, SystemClock, TaskId, TaskStatus, Timestamp};
use serde_json::{Map, Value, json};

use crate::event::numbered;
use crate::value::from_row;
use crate::{
    Claim, Claimed, Event, EventKind, Finish, Heartbeat, NewEvent, NewTask, Release, Task,
};

/// Returns the event of a change to `status`, with further fields.
pub(crate) fn status_changed(
    status: TaskStatus,
    fields: impl IntoIterator<Item = (&'static str, Value)>,
    at: Timestamp,
) -> NewEvent {
    let mut data = Map::new();
    data.insert("status".to_owned(), status.as_str().into());
    data.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
    NewEvent { kind: EventKind::StatusChanged, data: Value::Object(data), at }
}

/// The fields of a task's row that decide about its next transition.
pub(crate) struct TaskState {
    pub(crate) id: TaskId,
    pub(crate) sequence: i64,
    pub(crate) last_event: u64,
    pub(crate) status: TaskStatus,
    pub(crate) cancel_requested: bool,
    pub(crate) attempt: u32,
    pub(crate) lost: u32,
    pub(crate) max_attempts: u32,
}

from_row! { TaskState: id, sequence, last_event, status, cancel_requested, attempt, lost,
max_attempts }

/// Selects [`TaskState`].
macro_rules! select_task_state {
    ($condition:literal) => {
        concat!(
            "SELECT id, sequence, last_event, status, cancel_requested, attempt, lost, max_attempts
             FROM task_executions WHERE ",
            $condition
        )
    };
}
pub(crate) use select_task_state;

/// A change of a task that is not running afterwards.
pub(crate) struct Transition {
    pub(crate) status: TaskStatus,
    pub(crate) error: Option<String>,
    pub(crate) lost: u32,
    /// The earliest time of the next attempt, if there is one.
    pub(crate) due: Option<Timestamp>,
    pub(crate) events: Vec<NewEvent>,
    pub(crate) now: Timestamp,
}

impl Transition {
    /// Returns the time of a terminal status.
    pub(crate) fn completed_at(&self) -> Option<Timestamp> {
        self.status.is_terminal().then_some(self.now)
    }
}

impl TaskState {
    /// Decides about a released task: cancelled if that was requested, dead after its last attempt, queued
    /// otherwise.
    pub(crate) fn release(&self, release: &Release) -> Transition {
        let Release { reason, now, due, counts_as_lost } = release;
        let lost = self.lost + u32::from(*counts_as_lost);
        if self.cancel_requested {
            return Transition { error: Some(reason.clone()), lost, ..self.cancel(*now) };
        }
        if lost >= self.max_attempts {
            let error = format!("given up after {lost} lost attempts: {reason}");
            return Transition { lost, ..self.fail(TaskStatus::Dead, error, *now) };
        }
        let status = TaskStatus::Queued;
        let fields = [("attempt", json!(self.attempt)), ("reason", json!(reason))];
        let events = vec![status_changed(status, fields, *now)];
        Transition { status, error: None, lost, due: Some(*due), events, now: *now }
    }

    pub(crate) fn cancel(&self, now: Timestamp) -> Transition {
        let status = TaskStatus::Cancelled;
        let events = vec![status_changed(status, [], now)];
        Transition { status, error: None, lost: self.lost, due: None, events, now }
    }

    /// Ends the task with an error, which has an event before that of the status.
    pub(crate) fn fail(&self, status: TaskStatus, error: String, now: Timestamp) -> Transition {
        let data = json!({ "error": error });
        let reported = NewEvent { kind: EventKind::Error, data, at: now };
        let events = vec![reported, status_changed(status, [], now)];
        Transition { status, error: Some(error), lost: self.lost, due: None, events, now }
    }
}

impl Heartbeat {
    /// Returns the reply to a heartbeat that found its claim with this mark, or did not find it.
    pub(crate) fn of(cancel_requested: Option<bool>) -> Self {
        cancel_requested.map_or(Self::Lost, |cancel_requested| Self::Held { cancel_requested })
    }
}

impl Release {
    /// A lost attempt whose worker sent no heartbeats.
    pub(crate) fn expired(due: Timestamp, now: Timestamp) -> Self {
        let reason = "its worker stopped sending heartbeats".to_owned();
        Self { reason, due, now, counts_as_lost: true }
    }

    /// A claim that never reached its worker.
    pub(crate) fn unused(reason: &str) -> Self {
        let now = SystemClock.now();
        Self { reason: reason.to_owned(), due: now, now, counts_as_lost: false }
    }
}

/// The reason for the release of a claim whose caller did not wait for the reply.
pub(crate) const WORKER_GONE: &str = "its worker stopped before it began";

/// Returns a task that was just claimed, with the event of the claim as its last.
pub(crate) fn claimed(task: Task, now: Timestamp) -> Claimed {
    let worker = task.worker.as_ref().map(|worker| worker.0.as_str());
    let fields = [("attempt", task.attempt.into()), ("worker_id", worker.into())];
    let event = status_changed(task.status, fields, now);
    let events = numbered(task.id, [(task.last_event, event)]);
    Claimed { claim: Claim { task: task.id, attempt: task.attempt }, task, events }
}

/// Returns the events with which a task ends, the one of its status last.
pub(crate) fn last_events(finish: Finish, status: TaskStatus) -> Vec<NewEvent> {
    let took = i64::try_from(finish.took.as_millis()).unwrap_or(i64::MAX);
    let mut events = finish.events;
    events.push(status_changed(status, [("execution_time_ms", json!(took))], finish.now));
    events
}

/// Returns whether the stored events are the new ones, so that an append is a repetition.
pub(crate) fn is_repeated_append(stored: &[Event], new: &[NewEvent]) -> bool {
    // Stored data went through text, where a float may lose its last digit: compare in that form.
    let through_text = |data: &Value| serde_json::from_str::<Value>(&data.to_string()).ok();
    let same = |(stored, new): (&Event, &NewEvent)| {
        (stored.kind, stored.at) == (new.kind, new.at)
            && Some(&stored.data) == through_text(&new.data).as_ref()
    };
    stored.len() == new.len() && stored.iter().zip(new).all(same)
}

/// Returns whether the task was ended by the same `finish` before, whose reply was lost.
pub(crate) fn is_repeated_finish(task: &Task, claim: Claim, finish: &Finish) -> bool {
    // Only `finish` sets an execution time; a release that ended the task does not.
    task.attempt == claim.attempt
        && task.status.is_terminal()
        && (task.status == finish.status || task.cancel_requested)
        && task.execution_time.is_some()
        && task.last_event == finish.after + finish.events.len() as u64 + 1
}

pub(crate) fn queued_task(new: &NewTask) -> Task {
    Task {
        id: new.id,
        workspace: new.workspace,
        task_type: new.task_type.clone(),
        priority: new.priority,
        status: TaskStatus::Queued,
        configuration: new.configuration.clone(),
        timeout: new.timeout,
        correlation_id: new.correlation_id.clone(),
        submitted_at: new.now,
        started_at: None,
        completed_at: None,
        attempt: 0,
        max_attempts: new.max_attempts,
        worker: None,
        cancel_requested: false,
        result: None,
        error: None,
        execution_time: None,
        last_event: 1,
    }
}
