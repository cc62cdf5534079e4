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

use std::time::Duration;

use carrel_domain::{Priority, TaskStatus, Timestamp};
use serde_json::{Map, Value, json};

use crate::{Claim, Event, EventKind, Finish, NewEvent, NewTask, Release, Task};

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

pub(crate) const LEASE_EXPIRED: &str = "its worker stopped sending heartbeats";

/// The fields of a running task that decide about its release.
pub(crate) struct AttemptState {
    pub(crate) cancel_requested: bool,
    pub(crate) attempt: u32,
    pub(crate) lost: u32,
    pub(crate) max_attempts: u32,
}

pub(crate) struct Transition {
    pub(crate) status: TaskStatus,
    pub(crate) error: Option<String>,
    pub(crate) lost: u32,
    pub(crate) events: Vec<NewEvent>,
}

impl AttemptState {
    /// Decides about a released task: cancelled if that was requested, dead after its last attempt, queued
    /// otherwise.
    pub(crate) fn release(&self, release: &Release) -> Transition {
        let Release { reason, now, counts_as_lost, .. } = release;
        let lost = self.lost + u32::from(*counts_as_lost);
        if self.cancel_requested {
            let status = TaskStatus::Cancelled;
            let events = vec![status_changed(status, [], *now)];
            return Transition { status, error: Some(reason.clone()), lost, events };
        }
        if lost >= self.max_attempts {
            let error = format!("given up after {lost} lost attempts: {reason}");
            let events = failed(TaskStatus::Dead, &error, *now);
            return Transition { status: TaskStatus::Dead, error: Some(error), lost, events };
        }
        let status = TaskStatus::Queued;
        let fields = [("attempt", json!(self.attempt)), ("reason", json!(reason))];
        let events = vec![status_changed(status, fields, *now)];
        Transition { status, error: None, lost, events }
    }
}

/// Returns the events of a task that ends with an error: the error, and then the status.
pub(crate) fn failed(status: TaskStatus, error: &str, now: Timestamp) -> Vec<NewEvent> {
    let error = NewEvent { kind: EventKind::Error, data: json!({ "error": error }), at: now };
    vec![error, status_changed(status, [], now)]
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

/// Returns the stored form of a priority, which sorts the most urgent first.
pub(crate) fn rank(priority: Priority) -> i16 {
    match priority {
        Priority::Critical => 0,
        Priority::High => 1,
        Priority::Normal => 2,
        Priority::Low => 3,
    }
}

/// Returns a duration in whole milliseconds, the unit of all stored durations.
pub(crate) fn to_millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Converts to the signed integers of databases, saturating.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
