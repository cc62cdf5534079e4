//! `/api/tasks/{task_id}/events`: server-sent events.
//!
//! An event is one frame of the stream:
//!
//! ```text
//! id: 7
//! event: log_line
//! data: {"step":1,"stream":"stdout","line":"hello"}
//! ```
//!
//! The schema of [`TaskEvent`] describes the fields of the frame, which are texts. In Rust and in the output of
//! `carrel task watch --json` the number is a number and the data is an object.

use carrel_domain::TaskStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The query of an event stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEventsQuery {
    /// A ticket of `open_task_events`, in place of a token.
    pub ticket: Option<String>,
    /// The number of the last event that was received, for clients that cannot send the header.
    #[schemars(range(min = 0, max = u64::MAX))]
    pub last_event_id: Option<u64>,
}

/// An event of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskEvent {
    /// The number among the events of the task, counted from 1 without gaps.
    #[schemars(with = "String")]
    pub id: u64,
    /// The kind of the event.
    pub event: TaskEventKind,
    /// The facts, as JSON. A `status_changed` has `status`, a `progress_update` `step`, `total_steps`
    /// and `description`, a `log_line` `step`, `stream` and `line`, an `error` `error`.
    #[schemars(with = "String", extend("contentMediaType" = "application/json"))]
    pub data: Map<String, Value>,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskEventKind {
    /// The task has another status.
    StatusChanged,
    /// A step starts.
    ProgressUpdate,
    /// A command printed a line.
    LogLine,
    /// A step or the task failed.
    Error,
    /// A kind that this version does not know.
    #[serde(untagged)]
    #[schemars(skip)]
    Other(String),
}

impl TaskEventKind {
    /// Returns the name of the kind on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::StatusChanged => "status_changed",
            Self::ProgressUpdate => "progress_update",
            Self::LogLine => "log_line",
            Self::Error => "error",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for TaskEventKind {
    fn from(name: &str) -> Self {
        match name {
            "status_changed" => Self::StatusChanged,
            "progress_update" => Self::ProgressUpdate,
            "log_line" => Self::LogLine,
            "error" => Self::Error,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// The facts of an event, read by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskUpdate<'a> {
    /// The new status of the task.
    Status(TaskStatus),
    /// The start of a step.
    Progress {
        /// The number of the step, counted from 1.
        step: u64,
        /// The number of steps.
        total: u64,
        /// The description of the step.
        description: &'a str,
    },
    /// A line of output.
    Line {
        /// `stdout` or `stderr`.
        stream: &'a str,
        /// The line without its end.
        line: &'a str,
    },
    /// The message of a failure.
    Error(&'a str),
    /// An event of an unknown kind, or without the facts of its kind.
    Other,
}

impl TaskEvent {
    /// Returns the facts of the event.
    pub fn update(&self) -> TaskUpdate<'_> {
        let text = |name: &str| self.data.get(name).and_then(Value::as_str);
        let number = |name: &str| self.data.get(name).and_then(Value::as_u64).unwrap_or(0);
        let update = match &self.event {
            TaskEventKind::StatusChanged => {
                text("status").and_then(|word| word.parse().ok()).map(TaskUpdate::Status)
            }
            TaskEventKind::ProgressUpdate => Some(TaskUpdate::Progress {
                step: number("step"),
                total: number("total_steps"),
                description: text("description").unwrap_or_default(),
            }),
            TaskEventKind::LogLine => text("line")
                .map(|line| TaskUpdate::Line { stream: text("stream").unwrap_or("stdout"), line }),
            TaskEventKind::Error => text("error").map(TaskUpdate::Error),
            TaskEventKind::Other(_) => None,
        };
        update.unwrap_or(TaskUpdate::Other)
    }

    /// Returns the final status of the task, if this is its last event.
    pub fn ending(&self) -> Option<TaskStatus> {
        match self.update() {
            TaskUpdate::Status(status) if status.is_terminal() => Some(status),
            TaskUpdate::Status(_)
            | TaskUpdate::Progress { .. }
            | TaskUpdate::Line { .. }
            | TaskUpdate::Error(_)
            | TaskUpdate::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn event(kind: &str, data: &Value) -> TaskEvent {
        TaskEvent { id: 7, event: kind.into(), data: data.as_object().unwrap().clone() }
    }

    #[test]
    fn an_unknown_kind_is_kept_by_its_name() {
        let event = event("checkpoint_created", &json!({ "checkpoint": 3 }));
        let value = serde_json::to_value(&event).unwrap();
        let expected =
            json!({ "id": 7, "event": "checkpoint_created", "data": { "checkpoint": 3 } });
        assert_eq!(value, expected);
        assert_eq!(serde_json::from_value::<TaskEvent>(value).unwrap(), event);
        assert_eq!(event.update(), TaskUpdate::Other);
    }

    #[test]
    fn only_a_terminal_status_ends_a_task() {
        let ending = |kind: &str, data: Value| event(kind, &data).ending();
        assert_eq!(ending("status_changed", json!({ "status": "running" })), None);
        assert_eq!(ending("error", json!({ "error": "x" })), None);
        let completed = ending("status_changed", json!({ "status": "completed" }));
        assert_eq!(completed, Some(TaskStatus::Completed));
    }
}
