//! Conversion of task rows into replies.

use std::time::Duration;

use carrel_domain::{Code, TaskStatus};
use carrel_store::Task as TaskRow;
use carrel_wire::{Task, TaskAccepted, TaskSummary};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::error;

use crate::response::{ErrorResponse, Result};

/// The value of `runner_backend`, which clients of the service know.
const BACKEND: &str = "queued";

pub(in crate::routes) fn accepted(task: &TaskRow, steps: usize) -> TaskAccepted {
    TaskAccepted {
        task_id: task.id,
        status: TaskStatus::Queued,
        queue: format!("workspace:tasks:{}", task.priority),
        steps,
        events_url: format!("/api/tasks/{}/events", task.id),
    }
}

pub(super) fn summary(task: &TaskRow) -> TaskSummary {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    TaskSummary {
        id: task.id,
        workspace_id: task.workspace,
        task_type: task.task_type.clone(),
        agent_id: (),
        status: task.status,
        priority: task.priority,
        runner_backend: BACKEND.to_owned(),
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

/// Reads configuration and result, which the store keeps as JSON, into the types that the service wrote.
pub(super) fn detail(task: TaskRow) -> Result<Task> {
    Ok(Task {
        summary: summary(&task),
        prompt: (),
        configuration: stored(task.configuration)?,
        timeout_seconds: task.timeout.as_secs(),
        result: task.result.map(stored).transpose()?,
        cancel_requested: task.cancel_requested,
        last_event: task.last_event,
        parent_execution_id: (),
    })
}

fn stored<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| {
        error!(%error, "a task's row is not as the service writes it");
        let message = "the record of the task cannot be read";
        ErrorResponse::plain(Code::RecordUnreadable, message)
    })
}
