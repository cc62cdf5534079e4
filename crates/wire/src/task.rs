//! `/api/tasks`

use carrel_domain::{Code, Network, Priority, TaskId, TaskStatus, Timestamp, WorkspaceId};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::limits::{DEFAULT_PAGE, MAX_PAGE};

/// The query of the list of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskQuery {
    /// The status that tasks must have.
    pub status: Option<TaskStatus>,
    /// The type that tasks must have.
    pub task_type: Option<String>,
    /// The most tasks to return.
    #[schemars(range(min = 1, max = MAX_PAGE), extend("default" = DEFAULT_PAGE))]
    pub limit: Option<u32>,
    /// Tasks to skip.
    #[schemars(range(min = 0, max = i64::MAX))]
    pub offset: Option<u64>,
    /// The workspace, if the token covers several.
    pub workspace_id: Option<WorkspaceId>,
}

/// A task that was queued. It runs even if the server stops now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskAccepted {
    /// The id of the task.
    pub task_id: TaskId,
    /// `queued`.
    pub status: TaskStatus,
    /// The name of the queue, which contains the priority.
    pub queue: String,
    /// The number of steps.
    pub steps: usize,
    /// The path of the event stream.
    pub events_url: String,
}

/// A page of the tasks of a workspace, the latest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    /// The tasks.
    pub tasks: Vec<TaskSummary>,
    /// Tasks that the filter selects, on all pages.
    pub total: u64,
    /// The limit of the request.
    pub limit: u32,
    /// The offset of the request.
    pub offset: u64,
}

/// A task without its steps and results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSummary {
    /// The id.
    pub id: TaskId,
    /// The workspace that it runs in.
    pub workspace_id: WorkspaceId,
    /// The type that the submitter gave it.
    pub task_type: String,
    /// `null`: tasks are not run by agents.
    pub agent_id: (),
    /// The status.
    pub status: TaskStatus,
    /// The priority.
    pub priority: Priority,
    /// `queued`: tasks run from the queue.
    pub runner_backend: String,
    /// The time when the server acknowledged it.
    pub submitted_at: Timestamp,
    /// The start of the last attempt.
    pub started_at: Option<Timestamp>,
    /// The time when it ended.
    pub completed_at: Option<Timestamp>,
    /// Attempts so far.
    pub attempt: u32,
    /// The most attempts.
    pub max_attempts: u32,
    /// 0: tasks use no model.
    pub tokens_used: u64,
    /// The duration of the last attempt.
    pub execution_time_ms: Option<u64>,
    /// The reason of a failure.
    pub error_message: Option<String>,
    /// The submitter's reference.
    pub correlation_id: Option<String>,
    /// The worker of the last attempt.
    pub worker_id: Option<String>,
}

/// A task with its steps and results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// The fields that lists have as well.
    #[serde(flatten)]
    pub summary: TaskSummary,
    /// `null`: tasks have steps.
    pub prompt: (),
    /// The steps and options as they were submitted.
    pub configuration: TaskConfiguration,
    /// Seconds that an attempt may take.
    pub timeout_seconds: u64,
    /// The results of the steps; `null` before the end.
    pub result: Option<TaskResult>,
    /// `true` if a client has cancelled the task.
    pub cancel_requested: bool,
    /// The number of the last event.
    pub last_event: u64,
    /// `null`: tasks have no parent.
    pub parent_execution_id: (),
}

/// The steps and options of a task. The service stores this value with the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskConfiguration {
    /// The steps as they were submitted.
    pub steps: Vec<Map<String, Value>>,
    /// `true` if a failed step starts another attempt.
    pub retry_failed: bool,
    /// The trace context of the request that submitted the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub traceparent: Option<String>,
    /// The most network that the token of the submission allows its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub network_cap: Option<Network>,
}

/// The results of a task. The service stores this value when an attempt ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    /// The result of each step.
    pub steps: Vec<StepResult>,
    /// The workspace of the task.
    pub workspace_id: WorkspaceId,
    /// The repositories in `repos/`; absent if the directory could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repos_cached: Option<Vec<String>>,
    /// The number of the workspace's snapshot before the task, if one was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepResult {
    /// The number of the step, counted from 1.
    pub step: usize,
    /// The action of the step.
    pub action: String,
    /// `completed`, `failed`, `timed_out`, `cancelled` or `skipped`.
    #[schemars(with = "String")]
    pub status: StepStatus,
    /// The exit status of its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The time when it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Milliseconds from start to end.
    pub duration_ms: u64,
    /// The reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code of the error.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "code_name",
        deserialize_with = "named_code"
    )]
    #[schemars(with = "Option<String>")]
    pub code: Option<Code>,
    /// The reply of its tool.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
}

/// The status of a step that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// The step succeeded.
    Completed,
    /// The step was denied, or its command exited with an error.
    Failed,
    /// The step reached its deadline.
    TimedOut,
    /// The task was cancelled while the step ran.
    Cancelled,
    /// An earlier step failed.
    Skipped,
}

impl StepStatus {
    /// Returns the name of the status in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn code_name<S: Serializer>(code: &Option<Code>, serializer: S) -> Result<S::Ok, S::Error> {
    match code {
        Some(code) => serializer.serialize_str(code.name()),
        None => serializer.serialize_none(),
    }
}

/// Reads a code by its name. A code of a newer server is read as none.
fn named_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Code>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(name.and_then(|name| Code::named(&name)))
}

/// The state of a task after a request to cancel it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelReply {
    /// The id of the task.
    pub id: TaskId,
    /// The status; not terminal yet if the worker still ends it.
    pub status: TaskStatus,
    /// `true` if the task was running and its worker was notified. Absent if the task was waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<bool>,
}

/// A ticket that opens the event stream of one task without a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TicketReply {
    /// The ticket.
    pub ticket: String,
    /// Seconds until it expires.
    pub expires_in: u64,
    /// The path of the event stream with the ticket in its query.
    pub url: String,
}
