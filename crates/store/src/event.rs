//! Events: the numbered, durable history of a task.
//!
//! The events of a task have the numbers 1, 2, 3, … without gaps, in the order in which they were
//! committed. Every change of status is committed in the same transaction as its event. The last event of
//! a task reports its terminal status; no event follows it.

use carrel_domain::{TaskId, TaskStatus, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::value::from_row;

/// One event of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The task.
    pub task: TaskId,
    /// The position among the events of the task, from 1 without gaps.
    pub number: u64,
    /// The kind, which decides the fields of `data`.
    pub kind: EventKind,
    /// The fields of the event, an object.
    pub data: Value,
    /// The time at which it happened, by the clock of the process that wrote it.
    pub at: Timestamp,
}

impl Event {
    /// Returns whether this is the terminal event of its task.
    pub fn is_last(&self) -> bool {
        self.kind == EventKind::StatusChanged
            && self.data["status"]
                .as_str()
                .and_then(|word| word.parse().ok())
                .is_some_and(TaskStatus::is_terminal)
    }
}

/// An event to append; the store numbers it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// The kind, which decides the fields of `data`.
    pub kind: EventKind,
    /// The fields of the event, an object.
    pub data: Value,
    /// The time at which it happened.
    pub at: Timestamp,
}

from_row! { NewEvent: kind, data, at }

/// Returns events of a task with their numbers.
pub(crate) fn numbered(
    task: TaskId,
    events: impl IntoIterator<Item = (u64, NewEvent)>,
) -> Vec<Event> {
    let number = |(number, NewEvent { kind, data, at })| Event { task, number, kind, data, at };
    events.into_iter().map(number).collect()
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The task has a new status: `data.status`, with `attempt`, `worker_id`, `reason` or `execution_time_ms`
    /// where they apply.
    StatusChanged,
    /// A step begins: `data.step`, `total_steps` and `description`.
    ProgressUpdate,
    /// A command printed a line: `data.step`, `stream` and `line`, masked and cut to its limit.
    LogLine,
    /// A step or the task failed: `data.error`, with `step` or `code` where there is one.
    Error,
}

impl EventKind {
    /// Every kind.
    pub const ALL: &[Self] =
        &[Self::StatusChanged, Self::ProgressUpdate, Self::LogLine, Self::Error];

    /// Returns the name on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StatusChanged => "status_changed",
            Self::ProgressUpdate => "progress_update",
            Self::LogLine => "log_line",
            Self::Error => "error",
        }
    }

    /// Parses the name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }
}
