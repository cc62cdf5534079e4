//! Long calls as tasks of the extension `io.modelcontextprotocol/tasks`.
//!
//! A call of `Bash` in the background, or of `run_tests`, by a client that declares the extension in the
//! request is answered with a task as soon as its first command runs. The id of the task is that of the
//! command's job: random, valid for its owner and workspace alone, and good for `BashOutput` too. So a task
//! needs no log of its own, and a client that lost its connection reads the output by the id.
//!
//! The state of a background command is that of its job. The reply of another call is kept here, in memory;
//! after a restart the log of its first command is left, and the task says that it ended with the server.
//! Tasks never ask for input.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::Extensions;
use carrel_domain::sync;
use carrel_tools::{CallOptions, JobPhase, JobView, Registry, Session, ToolResponse};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, DetailedTask,
    ErrorCode, GetTaskResult, JsonObject, ProtocolVersion, Task, TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::encode;
use super::reply_view::ReplyView;
use super::{ToolHandler, answer};

/// The lifetime of a task, that of a background job.
const TASK_LIFETIME: Duration = Duration::from_hours(24);

/// The interval at which clients should ask for the state.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Calls whose replies are kept; the oldest ended ones are dropped first.
const MAX_CALLS: usize = 256;

/// A call that may become a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongCall {
    /// It returns at once; its command goes on.
    Background,
    /// It returns with its reply.
    Awaited,
}

impl LongCall {
    /// Returns the kind of a call, if the client of the request declares tasks and the call may take long.
    pub(super) fn of(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Self> {
        let long = match request.name.as_ref() {
            "Bash" => {
                let background = request.arguments.as_ref()?.get("run_in_background")?;
                (background == true || background == "true").then_some(Self::Background)
            }
            "run_tests" => Some(Self::Awaited),
            _ => None,
        };
        long.filter(|_| declares_tasks(context))
    }
}

fn declares_tasks(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
        && context.client_capabilities().is_some_and(|declared| declared.supports_tasks())
}

/// The calls that became tasks, by the ids of their first jobs.
#[derive(Debug, Default)]
pub(super) struct TaskTable {
    calls: Mutex<HashMap<String, Arc<TaskCall>>>,
    running: TaskTracker,
}

#[derive(Debug)]
struct TaskCall {
    number: usize,
    cancel: CancellationToken,
    end: Mutex<Option<CallEnd>>,
}

#[derive(Clone, Debug)]
enum CallEnd {
    Replied(ToolResponse),
    Cancelled,
}

impl TaskTable {
    fn insert(&self, id: String, cancel: CancellationToken) -> Arc<TaskCall> {
        let mut calls = sync::lock(&self.calls);
        let number = calls.values().map(|call| call.number).max().map_or(0, |last| last + 1);
        while calls.len() >= MAX_CALLS {
            let ended = calls.iter().filter(|(_, call)| sync::lock(&call.end).is_some());
            let oldest = ended.min_by_key(|(_, call)| call.number).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { break };
            calls.remove(&oldest);
        }
        let call = Arc::new(TaskCall { number, cancel, end: Mutex::default() });
        calls.insert(id, Arc::clone(&call));
        call
    }

    fn get(&self, id: &str) -> Option<Arc<TaskCall>> {
        sync::lock(&self.calls).get(id).map(Arc::clone)
    }
}

impl Drop for TaskTable {
    fn drop(&mut self) {
        sync::lock(&self.calls).values().for_each(|call| call.cancel.cancel());
    }
}

impl ToolHandler {
    /// Makes a call as a task. One that fails before a command runs is answered as any other.
    pub(super) async fn call_as_task(
        &self,
        kind: LongCall,
        request: CallToolRequestParams,
        (registry, session): (&Arc<Registry>, &Arc<Session>),
        context: &RequestContext<RoleServer>,
        extensions: Extensions,
    ) -> Result<CallToolResponse, ErrorData> {
        let view = ReplyView::for_request(self.server.facts, context);
        let (sender, mut started) = mpsc::channel(1);
        // The call outlives the request; it ends with its session, or by `tasks/cancel`.
        let cancel = self
            .session
            .as_ref()
            .map_or_else(CancellationToken::new, |owned| owned.tasks.child_token());
        let mut options =
            CallOptions { cancel: cancel.clone(), ..CallOptions::new(self.interface) };
        options.command_settings.keep_log = true;
        options.command_settings.started = Some(sender);
        let (provider, session) = (Arc::clone(&self.server.provider), Arc::clone(session));
        let calling = {
            let (session, arguments) =
                (Arc::clone(&session), request.arguments.unwrap_or_default());
            async move { provider.call(&extensions, &session, &request.name, arguments, options).await }
        };
        let mut calling = self.server.tasks.running.spawn(calling);
        let first = tokio::select! {
            biased;
            Some(first) = started.recv() => first.to_string(),
            reply = &mut calling => {
                return answer(view, reply.map_err(|_| unfinished())?);
            }
            () = context.ct.cancelled() => {
                cancel.cancel();
                return Err(unfinished());
            }
        };
        if kind == LongCall::Awaited {
            let call = self.server.tasks.insert(first.clone(), cancel);
            self.server.tasks.running.spawn(async move {
                // A call that ended without a reply was aborted with the runtime.
                let Ok(reply) = calling.await else { return };
                let is_cancelled = call.cancel.is_cancelled();
                let end = if is_cancelled { CallEnd::Cancelled } else { CallEnd::Replied(reply) };
                *sync::lock(&call.end) = Some(end);
            });
        }
        let job = registry.job(&session, &first).await.map_err(|_| unknown(&first))?;
        Ok(CreateTaskResult::new(task(&job)).into())
    }

    pub(super) async fn task_state(
        &self,
        id: &str,
        (registry, session): (&Arc<Registry>, &Arc<Session>),
        view: ReplyView,
    ) -> Result<GetTaskResult, ErrorData> {
        // This also holds owner and workspace against those of the session.
        let job = registry.job(session, id).await.map_err(|_| unknown(id))?;
        let call = self.server.tasks.get(id);
        let payload = match (call.map(|call| sync::lock(&call.end).clone()), &job.phase) {
            (Some(Some(CallEnd::Replied(reply))), _) => completed(view, reply),
            (Some(Some(CallEnd::Cancelled)) | None, JobPhase::EndedWith(state)) => ended(id, state),
            (Some(Some(CallEnd::Cancelled)), _) | (None, JobPhase::Killed) => {
                TaskPayload::Cancelled
            }
            (Some(None), _) | (None, JobPhase::Running) => TaskPayload::Working,
            (None, JobPhase::Ended(reply)) => completed(view, reply.clone()),
        };
        Ok(GetTaskResult::new(DetailedTask::new(task(&job), payload)))
    }

    pub(super) async fn end_task(
        &self,
        id: &str,
        (registry, session): (&Arc<Registry>, &Arc<Session>),
    ) -> Result<(), ErrorData> {
        registry.job(session, id).await.map_err(|_| unknown(id))?;
        if let Some(call) = self.server.tasks.get(id).filter(|call| sync::lock(&call.end).is_none())
        {
            call.cancel.cancel();
        }
        registry.end_job(session, id).await.map_err(|_| unknown(id))
    }
}

/// Refuses an id. The answer is the same for a task of another owner and for one that never was.
pub(super) fn unknown(id: &str) -> ErrorData {
    ErrorData::invalid_params(format!("unknown task: {id}"), Some(json!({ "taskId": id })))
}

fn unfinished() -> ErrorData {
    ErrorData::internal_error("the call ended without a reply", None)
}

fn completed(view: ReplyView, reply: ToolResponse) -> TaskPayload {
    let result: CallToolResult = view.result(encode::result(reply));
    TaskPayload::Completed { result: object(json!(result)) }
}

fn ended(id: &str, state: &str) -> TaskPayload {
    let message = format!("{state}: BashOutput with shell_id {id} reads its log");
    let data = json!({ "status": state, "shell_id": id });
    TaskPayload::Failed {
        error: object(
            json!({ "code": ErrorCode::INTERNAL_ERROR, "message": message, "data": data }),
        ),
    }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => JsonObject::from_iter([("value".to_owned(), other)]),
    }
}

fn task(job: &JobView) -> Task {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let message = match job.phase {
        JobPhase::Running => {
            let seconds = job.started.age(job.updated).as_secs();
            format!("running for {seconds} s, {} bytes of output", job.log_bytes)
        }
        JobPhase::Ended(_) => format!("ended, {} bytes of output", job.log_bytes),
        JobPhase::Killed => "killed".to_owned(),
        JobPhase::EndedWith(state) => state.to_owned(),
    };
    Task::new(&job.id, TaskStatus::Working, job.started.to_string(), job.updated.to_string())
        .with_status_message(message)
        .with_ttl_ms(millis(TASK_LIFETIME))
        .with_poll_interval_ms(millis(POLL_INTERVAL))
}
