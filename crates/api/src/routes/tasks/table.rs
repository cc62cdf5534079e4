//! The routes of tasks.

use carrel_domain::Code;
use carrel_service::TaskRequest;
use serde_json::json;

use super::answers::{Accepted, CancelReply, TaskDetail, TaskEvent, TaskList, TicketReply};
use super::{EventParams, ListParams, cancel, events, list, show, submit, ticket};
use crate::auth::Scope;
use crate::openapi::{Example, Header, Route, STORE};

/// Every route of this module.
pub(in crate::routes) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/tasks/submit", submit)
            .called("submit_task", "Submit a task")
            .says(
                "Queues a task. When this answers, the task will run whatever happens to the server. \
                 The workspace is that of the token, of `workspace_id` or of `X-Workspace-ID`. A \
                 network other than `none` also needs the scope `net`.",
            )
            .needs(Scope::Exec)
            .header(Header::Workspace)
            .header(Header::IdempotencyKey)
            .body::<TaskRequest>()
            .example(Example {
                name: "command",
                summary: "Run a command",
                value: json!({ "steps": [{ "action": "shell", "command": "echo hello; ls -la" }] }),
            })
            .example(Example {
                name: "repository",
                summary: "Bring a repository and test it",
                value: json!({
                    "steps": [
                        { "action": "git_clone", "repo": "https://github.com/org/repo.git", "branch": "main" },
                        { "action": "execute_command", "command": "pytest tests/", "cwd": "repos/repo", "timeout": 120 },
                    ],
                    "priority": "normal",
                    "timeout_seconds": 300,
                }),
            })
            .json::<Accepted>(200, "The task is queued.")
            .leads_to("show_task", "task_id")
            .leads_to("cancel_task", "task_id")
            .leads_to("follow_task", "task_id")
            .leads_to("open_task_events", "task_id")
            .fails(STORE)
            .fails(&[Code::WorkspaceNotFound, Code::Overloaded, Code::QueueUnavailable]),
        Route::get("/api/tasks", list)
            .called("list_tasks", "List tasks")
            .says("Lists the tasks of a workspace, the latest first.")
            .needs(Scope::Read)
            .query::<ListParams>()
            .header(Header::Workspace)
            .json::<TaskList>(200, "A part of the list.")
            .fails(STORE)
            .fails(&[Code::WorkspaceNotFound, Code::Overloaded]),
        Route::get("/api/tasks/{task_id}", show)
            .called("show_task", "Show a task")
            .says("Returns a task with its steps and, when it is over, what came out.")
            .needs(Scope::Read)
            .json::<TaskDetail>(200, "The task.")
            .leads_to("cancel_task", "id")
            .leads_to("follow_task", "id")
            .fails(STORE)
            .fails(&[Code::TaskNotFound]),
        Route::post("/api/tasks/{task_id}/cancel", cancel)
            .called("cancel_task", "Cancel a task")
            .says("Ends a task that waits, or tells the worker of one that runs.")
            .needs(Scope::Exec)
            .json::<CancelReply>(200, "The task is over.")
            .json::<CancelReply>(202, "The worker has been told and is not done yet.")
            .fails(STORE)
            .fails(&[Code::TaskNotFound, Code::TaskFinished]),
        Route::get("/api/tasks/{task_id}/events", events)
            .called("follow_task", "Follow a task")
            .says(
                "Streams the events of a task as server-sent events: `id` is the number of the event, \
                 `event` is `status_changed`, `progress_update`, `log_line` or `error`, `data` is JSON. \
                 The stream begins with the first event, or behind the one that was seen last, and ends \
                 behind the last. A ticket stands for a token.",
            )
            .needs(Scope::Read)
            .query::<EventParams>()
            .header(Header::LastEvent)
            .events::<TaskEvent>("The events.")
            .nothing(204, "The task is over and its last event was seen.")
            .fails(STORE)
            .fails(&[Code::TaskNotFound, Code::Overloaded]),
        Route::post("/api/tasks/{task_id}/events/ticket", ticket)
            .called("open_task_events", "Get a ticket for events")
            .says("Returns a ticket that opens the events of a task to a browser, for a short time.")
            .needs(Scope::Read)
            .json::<TicketReply>(200, "The ticket.")
            .fails(STORE)
            .fails(&[Code::TaskNotFound]),
    ]
}
