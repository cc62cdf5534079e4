//! Tasks: the row, a submission and its result, lists.

use std::time::Duration;

use carrel_domain::{Priority, TaskId, TaskStatus, Timestamp, VolumeId, WorkspaceId};
use serde_json::Value;

use crate::event::Event;
use crate::idempotency::IdempotencyKey;
use crate::value::from_row;
use crate::workspace::WorkerId;

/// The row of a task.
///
/// A task begins `queued`, alternates between `queued` and `running`, and ends in a terminal status that
/// never changes. `worker` and `started_at` are those of the latest attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The id, chosen by the submitter.
    pub id: TaskId,
    /// The workspace in which the task runs.
    pub workspace: WorkspaceId,
    /// A type for filtering lists; the store gives it no meaning.
    pub task_type: String,
    /// The priority among the tasks of the workspace.
    pub priority: Priority,
    /// The current status.
    pub status: TaskStatus,
    /// The steps and options, as the submitter sent them. `Null` in lists.
    pub configuration: Value,
    /// The timeout of one attempt, which the worker enforces. Stored in milliseconds.
    pub timeout: Duration,
    /// An identifier of the submitter's own.
    pub correlation_id: Option<String>,
    /// The time of the submission.
    pub submitted_at: Timestamp,
    /// The start of the latest attempt; `None` before the first.
    pub started_at: Option<Timestamp>,
    /// The time of the terminal status; present exactly if the status is terminal.
    pub completed_at: Option<Timestamp>,
    /// The number of the latest attempt, 0 before the first. Counts every claim, also one that was
    /// released without a loss.
    pub attempt: u32,
    /// The number of lost attempts that makes the task dead, at least 1.
    pub max_attempts: u32,
    /// The worker of the latest attempt.
    pub worker: Option<WorkerId>,
    /// A cancellation was requested while the task ran. It ends as `cancelled` even if its worker
    /// reports another status.
    pub cancel_requested: bool,
    /// The result that the worker wrote. `None` in lists, and for a task that never finished.
    pub result: Option<Value>,
    /// The error message of a task that did not complete.
    pub error: Option<String>,
    /// The duration of the last attempt, in whole milliseconds. Present exactly if a worker finished it.
    pub execution_time: Option<Duration>,
    /// The number of the last event, at least 1.
    pub last_event: u64,
}

from_row! { Task: id, workspace, task_type, priority, status, configuration, timeout,
correlation_id, submitted_at, started_at, completed_at, attempt, max_attempts, worker,
cancel_requested, result, error, execution_time, last_event }

/// The columns of a [`Task`].
macro_rules! task_columns {
    () => {
        "id, workspace_id, task_type, priority, status, configuration, timeout_ms, correlation_id, \
         submitted_at, started_at, completed_at, attempt, max_attempts, worker_id, \
         cancel_requested, result, error_message, execution_time_ms, last_event"
    };
}
pub(crate) use task_columns;

/// A task to submit.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// The id, chosen by the submitter: submitting it again returns the task instead of making another.
    pub id: TaskId,
    /// An existing workspace.
    pub workspace: WorkspaceId,
    /// A type for filtering lists.
    pub task_type: String,
    /// The priority among the tasks of the workspace.
    pub priority: Priority,
    /// The steps and options; any JSON.
    pub configuration: Value,
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// The number of lost attempts that makes the task dead, at least 1.
    pub max_attempts: u32,
    /// An identifier of the submitter's own.
    pub correlation_id: Option<String>,
    /// The time of the submission, and when the task is due.
    pub now: Timestamp,
    /// The most queued tasks of the workspace, with this one.
    pub max_waiting: u64,
    /// The idempotency key of the request, if it has one.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// The result of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Submission {
    /// The task is queued, with its first event. Submitting the same id again returns this too, with the
    /// task as it is by then.
    Created(Task, Vec<Event>),
    /// The idempotency key was used for the same request, which made this task.
    Repeated(Task),
    /// The idempotency key was used for a request with another digest. Nothing was queued.
    Mismatch,
    /// The workspace does not exist, or was deleted. Nothing was queued.
    NoWorkspace,
    /// The queue of the workspace is full. Running tasks do not count.
    Full {
        /// The limit, `max_waiting` of the submission.
        limit: u64,
    },
}

/// A queued task, as the sweep lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedTask {
    /// The id.
    pub task: TaskId,
    /// The workspace of the task.
    pub workspace: WorkspaceId,
    /// The priority among the tasks of the workspace.
    pub priority: Priority,
    /// The volume of the workspace, if it has one.
    pub volume: Option<VolumeId>,
}

from_row! { QueuedTask: task, workspace, priority, volume }

/// The result of a cancellation.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancellation {
    /// The task was queued and is cancelled, with these events.
    Cancelled(Vec<Event>),
    /// The task runs; its worker learns of it with the next heartbeat.
    Requested,
    /// The task was terminal before, with this status, which stays.
    Finished(TaskStatus),
    /// The task does not exist.
    Unknown,
}

/// A selection of the tasks of a workspace.
#[derive(Clone, Debug)]
pub struct TaskFilter {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Selects one status.
    pub status: Option<TaskStatus>,
    /// Selects one type.
    pub task_type: Option<String>,
    /// The most tasks to return.
    pub limit: u32,
    /// The number of newest tasks to skip.
    pub offset: u64,
}

/// One page of tasks, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The tasks, without configurations and results.
    pub tasks: Vec<Task>,
    /// The number of tasks that match the filter, on all pages.
    pub total: u64,
}

/// Totals over all workspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Queued tasks, due or not.
    pub queued: u64,
    /// Running tasks.
    pub running: u64,
    /// Workspaces.
    pub workspaces: u64,
}

from_row! { Counts: workspaces, queued, running }
