//! What every store says and judges in the same way.

use std::time::Duration;

use carrel_domain::{Priority, TaskStatus, Timestamp};
use serde_json::{Map, Value, json};

use crate::model::{Claim, Event, EventKind, Finish, NewEvent, NewTask, Release, Task};

/// Returns the event that tells where a task stands, with what else there is to say about it.
pub(crate) fn status_changed(
    status: TaskStatus,
    more: impl IntoIterator<Item = (&'static str, Value)>,
    at: Timestamp,
) -> NewEvent {
    let mut data = Map::new();
    data.insert("status".to_owned(), status.as_str().into());
    data.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    NewEvent { kind: EventKind::StatusChanged, data: Value::Object(data), at }
}

/// What is said of a task whose worker did not come back.
pub(crate) const LOST: &str = "its worker did not answer any more";

/// How a task is taken back that runs.
pub(crate) struct Tries {
    pub(crate) cancel_requested: bool,
    pub(crate) attempt: u32,
    pub(crate) lost: u32,
    pub(crate) max_attempts: u32,
}

/// Where a task stands that was taken back.
pub(crate) struct TakenBack {
    pub(crate) status: TaskStatus,
    pub(crate) error: Option<String>,
    pub(crate) lost: u32,
    pub(crate) told: Vec<NewEvent>,
}

impl Tries {
    /// Says where the task stands once it is taken back.
    pub(crate) fn taken_back(&self, back: &Release) -> TakenBack {
        let Release { reason, now, counts, .. } = back;
        let lost = self.lost + u32::from(*counts);
        if self.cancel_requested {
            let status = TaskStatus::Cancelled;
            let told = vec![status_changed(status, [], *now)];
            return TakenBack { status, error: Some(reason.clone()), lost, told };
        }
        if lost >= self.max_attempts {
            let error = format!("given up after {lost} lost attempts: {reason}");
            let (status, told) = ended(TaskStatus::Dead, &error, *now);
            return TakenBack { status, error: Some(error), lost, told };
        }
        let status = TaskStatus::Queued;
        let more = [("attempt", json!(self.attempt)), ("reason", json!(reason))];
        TakenBack { status, error: None, lost, told: vec![status_changed(status, more, *now)] }
    }
}

/// Returns what is told of a task that ends for a reason: the reason first.
pub(crate) fn ended(
    status: TaskStatus,
    error: &str,
    now: Timestamp,
) -> (TaskStatus, Vec<NewEvent>) {
    let reason = NewEvent { kind: EventKind::Error, data: json!({ "error": error }), at: now };
    (status, vec![reason, status_changed(status, [], now)])
}

/// Tells whether events that are there are those that somebody wants to write.
pub(crate) fn tells_the_same(there: &[Event], wanted: &[NewEvent]) -> bool {
    // A fraction may lose its last digit on its way through a text, as what is there did.
    let stored = |data: &Value| serde_json::from_str::<Value>(&data.to_string()).ok();
    let same = |(there, wanted): (&Event, &NewEvent)| {
        (there.kind, there.at) == (wanted.kind, wanted.at)
            && Some(&there.data) == stored(&wanted.data).as_ref()
    };
    there.len() == wanted.len() && there.iter().zip(wanted).all(same)
}

/// Tells whether a task is over because this end was written before.
pub(crate) fn is_end_of(task: &Task, claim: Claim, finish: &Finish) -> bool {
    // Only whoever finished it says how long it took.
    task.attempt == claim.attempt
        && task.status.is_terminal()
        && (task.status == finish.status || task.cancel_requested)
        && task.execution_time.is_some()
        && task.last_event == finish.after + finish.events.len() as u64 + 1
}

/// Returns a submission as the task that it makes.
pub(crate) fn queued(new: &NewTask) -> Task {
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

/// Returns the number that stands for an urgency: the most urgent sorts first.
pub(crate) fn rank(priority: Priority) -> i16 {
    match priority {
        Priority::Critical => 0,
        Priority::High => 1,
        Priority::Normal => 2,
        Priority::Low => 3,
    }
}

/// Returns a length of time as databases have it.
pub(crate) fn to_millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a number as databases have it. What does not fit is the largest there is.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
