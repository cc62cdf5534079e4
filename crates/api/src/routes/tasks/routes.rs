//! The table of task routes.

use carrel_domain::{Code, TokenScope};
use carrel_wire::{
    CancelReply, Task, TaskAccepted, TaskEvent, TaskEventsQuery, TaskList, TaskQuery, TaskRequest,
    TicketReply,
};
use serde_json::json;

use super::{cancel, events, list, show, submit, ticket};
use crate::openapi::{Header, Route};

pub(in crate::routes) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/tasks/submit", submit)
            .name("submit_task", "Submit a task", TokenScope::Exec)
            .description(
                "Queues a task. After the reply, the task runs even if the server stops. The workspace is \
                 that of the token, of `workspace_id` or of `X-Workspace-ID`. A network other than `none` \
                 also needs the scope `net`.",
            )
            .header(Header::Workspace)
            .header(Header::IdempotencyKey)
            .body::<TaskRequest>()
            .example("command", "Run a command", json!({ "steps": [{ "action": "shell", "command": "echo hello; ls -la" }] }))
            .example("repository", "Clone a repository and run its tests", json!({
                    "steps": [
                        { "action": "git_clone", "repo": "https://github.com/org/repo.git", "branch": "main" },
                        { "action": "execute_command", "command": "pytest tests/", "cwd": "repos/repo", "timeout": 120 },
                    ],
                    "priority": "normal",
                    "timeout_seconds": 300,
                }))
            .json::<TaskAccepted>(200, "The task is queued.")
            .link("show_task", "task_id")
            .link("cancel_task", "task_id")
            .link("follow_task", "task_id")
            .link("open_task_events", "task_id")
            .errors(&[Code::WorkspaceNotFound, Code::Overloaded, Code::QueueUnavailable]),
        Route::get("/api/tasks", list)
            .name("list_tasks", "List tasks", TokenScope::Read)
            .description("Lists the tasks of a workspace, the latest first.")
            .query::<TaskQuery>()
            .header(Header::Workspace)
            .json::<TaskList>(200, "A page of the tasks.")
            .errors(&[Code::WorkspaceNotFound, Code::Overloaded]),
        Route::get("/api/tasks/{task_id}", show)
            .name("show_task", "Show a task", TokenScope::Read)
            .description("Returns a task with its steps and, after its end, their results.")
            .json::<Task>(200, "The task.")
            .link("cancel_task", "id")
            .link("follow_task", "id")
            .errors(&[Code::TaskNotFound]),
        Route::post("/api/tasks/{task_id}/cancel", cancel)
            .name("cancel_task", "Cancel a task", TokenScope::Exec)
            .description("Cancels a task: a waiting one at once, a running one through its worker.")
            .json::<CancelReply>(200, "The task has ended.")
            .json::<CancelReply>(202, "The worker was notified, and has not ended the task yet.")
            .errors(&[Code::TaskNotFound, Code::TaskFinished]),
        Route::get("/api/tasks/{task_id}/events", events)
            .name("follow_task", "Follow a task", TokenScope::Read)
            .description(
                "Streams the events of a task as server-sent events: `id` is the number of the event, `event` \
                 is `status_changed`, `progress_update`, `log_line` or `error`, `data` is JSON. The stream \
                 starts with the first event, or after the one that the client names, and ends after the \
                 last. A ticket can replace the token.",
            )
            .query::<TaskEventsQuery>()
            .header(Header::LastEvent)
            .events::<TaskEvent>("The events.")
            .no_content(204, "The task has ended, and the client has its last event.")
            .errors(&[Code::TaskNotFound, Code::Overloaded]),
        Route::post("/api/tasks/{task_id}/events/ticket", ticket)
            .name("open_task_events", "Get a ticket for events", TokenScope::Read)
            .description("Returns a ticket that opens the event stream of a task for a minute, for browsers, which \
                 cannot send a token there.")
            .json::<TicketReply>(200, "The ticket.")
            .errors(&[Code::TaskNotFound]),
    ]
}
