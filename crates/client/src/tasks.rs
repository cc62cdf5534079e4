//! Tasks.

use carrel_domain::{TaskId, TaskStatus};
use hyper::Method;

use crate::answers::{Accepted, CancelReply, Submission, Task, TaskList};
use crate::client::{ApiRequest, WorkspaceClient};
use crate::error::ClientError;

/// Which tasks are to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskQuery {
    /// Only those that stand there.
    pub status: Option<TaskStatus>,
    /// Only those of this kind.
    pub task_type: Option<String>,
    /// How many to return, from 1 to 100.
    pub limit: Option<u32>,
    /// How many to pass over.
    pub offset: Option<u64>,
}

impl WorkspaceClient {
    /// Queues a task. When this returns it will run, whatever happens to the server.
    pub async fn submit_task(&self, task: &Submission) -> Result<Accepted, ClientError> {
        self.post("/api/tasks/submit", task).await
    }

    /// Lists the tasks of a workspace, the latest first.
    pub async fn tasks(&self, request: &TaskQuery) -> Result<TaskList, ClientError> {
        let pairs = [
            ("status", request.status.map(|status| status.to_string())),
            ("task_type", request.task_type.clone()),
            ("limit", request.limit.map(|limit| limit.to_string())),
            ("offset", request.offset.map(|offset| offset.to_string())),
        ];
        let query: Vec<_> =
            pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        self.get("/api/tasks", &query).await
    }

    /// Returns a task with its steps and, when it is over, what came out.
    pub async fn task(&self, id: TaskId) -> Result<Task, ClientError> {
        self.get(&format!("/api/tasks/{id}"), &[]).await
    }

    /// Ends a task that waits, or tells the worker of one that runs.
    pub async fn cancel_task(&self, id: TaskId) -> Result<CancelReply, ClientError> {
        self.json(ApiRequest::new(Method::POST, &format!("/api/tasks/{id}/cancel"))).await
    }
}
