//! What is said about tasks.

use std::time::Duration;

use carrel_domain::{Priority, TaskId, TaskStatus, Timestamp, WorkspaceId};
use carrel_store::Task;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// How tasks are run here, in the words of the service's clients.
const BACKEND: &str = "queued";

/// A task that will run.
#[derive(Serialize, JsonSchema)]
pub(in crate::routes) struct Accepted {
    /// Its id.
    task_id: TaskId,
    /// `queued`.
    status: TaskStatus,
    /// Where it waits.
    queue: String,
    /// How many steps it has.
    steps: usize,
    /// Where its events are.
    events_url: String,
}

impl Accepted {
    pub(in crate::routes) fn new(task: &Task, steps: usize) -> Self {
        Self {
            task_id: task.id,
            status: TaskStatus::Queued,
            queue: format!("workspace:tasks:{}", task.priority),
            steps,
            events_url: format!("/api/tasks/{}/events", task.id),
        }
    }
}

/// A part of the tasks of a workspace, the latest first.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskList {
    pub(super) tasks: Vec<TaskItem>,
    /// How many there are.
    pub(super) total: u64,
    /// How many were asked for.
    pub(super) limit: u32,
    /// How many were passed over.
    pub(super) offset: u64,
}

/// What a list says about a task.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskItem {
    id: TaskId,
    workspace_id: WorkspaceId,
    /// What kind of work it is.
    task_type: String,
    /// Nothing here: tasks are not run by agents.
    agent_id: (),
    status: TaskStatus,
    priority: Priority,
    /// How it is run: `queued`.
    runner_backend: &'static str,
    /// When it was acknowledged.
    submitted_at: Timestamp,
    /// When the last attempt began.
    started_at: Option<Timestamp>,
    /// When it was over.
    completed_at: Option<Timestamp>,
    /// How often it was begun.
    attempt: u32,
    /// How often it may be begun.
    max_attempts: u32,
    /// 0: tasks use no model.
    tokens_used: u64,
    /// How long the last attempt took.
    execution_time_ms: Option<u64>,
    /// Why it ended as it did.
    error_message: Option<String>,
    /// What ties it to something of the caller's.
    correlation_id: Option<String>,
    /// Authenticated had it last.
    worker_id: Option<String>,
}

impl TaskItem {
    pub(super) fn new(task: &Task) -> Self {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            id: task.id,
            workspace_id: task.workspace,
            task_type: task.task_type.clone(),
            agent_id: (),
            status: task.status,
            priority: task.priority,
            runner_backend: BACKEND,
            submitted_at: task.submitted_at,
            started_at: task.started_at,
            completed_at: task.completed_at,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            tokens_used: 0,
            execution_time_ms: task.execution_time.map(milliseconds),
            error_message: task.error.clone(),
            correlation_id: task.correlation_id.clone(),
            worker_id: task.worker.as_ref().map(ToString::to_string),
        }
    }
}

/// All there is to say about a task.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskDetail {
    #[serde(flatten)]
    item: TaskItem,
    /// Nothing here: tasks have steps.
    prompt: (),
    /// What was asked for.
    #[schemars(with = "Configuration")]
    configuration: Value,
    /// How long it may run.
    timeout_seconds: u64,
    /// What came out; nothing before the end.
    #[schemars(with = "Option<TaskResult>")]
    result: Option<Value>,
    /// Somebody asked for its end.
    cancel_requested: bool,
    /// The number of its last event.
    last_event: u64,
    /// Nothing here: no task has another one above it.
    parent_execution_id: (),
}

impl TaskDetail {
    pub(super) fn new(task: &Task) -> Self {
        Self {
            item: TaskItem::new(task),
            prompt: (),
            configuration: task.configuration.clone(),
            timeout_seconds: task.timeout.as_secs(),
            result: task.result.clone(),
            cancel_requested: task.cancel_requested,
            last_event: task.last_event,
            parent_execution_id: (),
        }
    }
}

/// What was asked for.
#[derive(Serialize, JsonSchema)]
struct Configuration {
    /// The steps as they were submitted.
    steps: Vec<Map<String, Value>>,
    /// Whether a failed step is a reason to begin again.
    retry_failed: bool,
}

/// What came out of a task.
#[derive(Serialize, JsonSchema)]
struct TaskResult {
    /// What became of each step.
    steps: Vec<StepResult>,
    workspace_id: WorkspaceId,
    /// The repositories in `repos/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    repos_cached: Option<Vec<String>>,
}

/// What became of a step.
#[derive(Serialize, JsonSchema)]
struct StepResult {
    /// Its place in the task.
    step: usize,
    /// What it was to do.
    action: String,
    /// `completed`, `failed`, `timed_out`, `cancelled` or `skipped`.
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    duration_ms: u64,
    /// Why it did not do its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The code of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// What came out.
    #[serde(skip_serializing_if = "Value::is_null")]
    result: Value,
}

/// What became of a wish for a task's end.
#[derive(Serialize, JsonSchema)]
pub(super) struct CancelReply {
    pub(super) id: TaskId,
    pub(super) status: TaskStatus,
    /// The task ran and its worker was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cancel_requested: Option<bool>,
}

/// What opens the events of a task to whoever holds it.
#[derive(Serialize, JsonSchema)]
pub(super) struct TicketReply {
    /// The ticket.
    pub(super) ticket: String,
    /// How many seconds it is good for.
    pub(super) expires_in: u64,
    /// Where to go with it.
    pub(super) url: String,
}

/// One event of a stream.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskEvent {
    /// Its place with_errors the events of the task.
    id: String,
    event: TaskEventKind,
    /// The fact, as JSON. A `status_changed` has `status`, a `progress_update` `step`, `total_steps`
    /// and `description`, a `log_line` `step`, `stream` and `line`, an `error` `error`.
    #[schemars(extend("contentMediaType" = "application/json"))]
    data: String,
}

/// The kinds of events.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "the store makes them")]
enum TaskEventKind {
    StatusChanged,
    ProgressUpdate,
    LogLine,
    Error,
}
