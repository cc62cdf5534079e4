//! `/api/tasks`
//!
//! A submission whose response is lost can be repeated safely with an idempotency key, in the request or with
//! [`WorkspaceClient::with_idempotency_key`]: the server then returns the first task.

use carrel_domain::TaskId;
use carrel_wire::{CancelReply, Task, TaskAccepted, TaskList, TaskQuery, TaskRequest};
use hyper::Method;
use serde_json::{Map, Value};

use crate::client::{ApiRequest, WorkspaceClient};
use crate::error::Result;

impl WorkspaceClient {
    /// Queues a task. When this returns, the task runs even if the server stops.
    pub async fn submit_task(&self, task: &TaskRequest) -> Result<TaskAccepted> {
        self.post("/api/tasks/submit", task).await
    }

    /// Queues a task from a request that was written by hand. The server judges its fields, also fields that
    /// this version does not know.
    pub async fn submit_task_json(&self, task: &Map<String, Value>) -> Result<TaskAccepted> {
        self.post("/api/tasks/submit", task).await
    }

    /// Lists the tasks of a workspace, the latest first.
    pub async fn tasks(&self, request: &TaskQuery) -> Result<TaskList> {
        self.get("/api/tasks", request).await
    }

    /// Returns a task with its steps and, after its end, their results.
    pub async fn task(&self, id: TaskId) -> Result<Task> {
        self.get(&format!("/api/tasks/{id}"), &()).await
    }

    /// Cancels a task: a waiting one at once, a running one through its worker.
    pub async fn cancel_task(&self, id: TaskId) -> Result<CancelReply> {
        self.json(ApiRequest::new(Method::POST, &format!("/api/tasks/{id}/cancel"))).await
    }
}
