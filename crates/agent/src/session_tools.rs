//! Tools that a session was offered when it was opened.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

use crate::tools::{ToolCall, ToolResult, Tools};

/// How long one use of a tool may take. Tools have limits of their own; this is the last wall.
const LIMIT: Duration = Duration::from_mins(40);

/// How long a tool has to end when it is told to.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// How many tools of one session run at once. Further ones wait for their turn, so that an agent that
/// asks for everything at the same time does not take the machine from others.
const MAX_AT_ONCE: usize = 8;

/// The tools of one session. Whatever is configured later, they stay the same.
#[derive(Debug)]
pub(crate) struct SessionTools {
    tools: Arc<dyn Tools>,
    list: Vec<Value>,
    places: Semaphore,
    running: TaskTracker,
    /// Ends all that run.
    stop: CancellationToken,
}

/// What came of the use of a tool.
#[derive(Debug)]
pub(crate) struct ToolOutcome {
    pub(crate) tool: String,
    pub(crate) answer: ToolResult,
    /// How that is called in events.
    pub(crate) event: &'static str,
}

impl ToolOutcome {
    /// Returns all text of the answer.
    pub(crate) fn text(&self) -> String {
        let texts = self.answer.content.iter().filter_map(|piece| piece.get("text")?.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl SessionTools {
    /// Takes the tools of a session. `stop` ends it in the middle.
    pub(crate) fn new(tools: Arc<dyn Tools>, stop: &CancellationToken) -> Arc<Self> {
        let list = tools.list();
        let (places, running) = (Semaphore::new(MAX_AT_ONCE), TaskTracker::new());
        Arc::new(Self { tools, list, places, running, stop: stop.child_token() })
    }

    pub(crate) fn list(&self) -> &[Value] {
        &self.list
    }

    /// Returns what ends one use of a tool, and ends with the session.
    pub(crate) fn cancellation(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Begins to use a tool, beside whatever else is done. It goes on if nobody waits.
    pub(crate) fn begin(
        self: &Arc<Self>,
        call: ToolCall,
    ) -> impl Future<Output = ToolOutcome> + Send + use<> {
        let (own, name) = (Arc::clone(self), call.name.clone());
        let call = self.running.spawn(async move { own.call(call).await });
        async move {
            call.await.unwrap_or_else(|error| {
                error!(%error, tool = name, "a tool broke off");
                let answer = problem("it broke off because of a defect in Carrel");
                ToolOutcome { tool: name, answer, event: "tool_call_failed" }
            })
        }
    }

    /// Uses a tool. One that is not there fails, and says which are.
    async fn call(&self, call: ToolCall) -> ToolOutcome {
        let (tool, cancel) = (call.name.trim().to_owned(), call.cancel.clone());
        let known: Vec<&str> =
            self.list.iter().filter_map(|tool| tool.get("name")?.as_str()).collect();
        if !known.contains(&tool.as_str()) {
            let message = format!("there is no tool {tool:?}");
            let error = json!({ "error": { "message": message, "supportedTools": known } });
            let answer = ToolResult::failed(error.to_string());
            return ToolOutcome { tool, answer, event: "unsupported_tool_call" };
        }
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => problem("it was cancelled before it began"),
            place = self.places.acquire() => {
                let answer = self.bounded(ToolCall { name: tool.clone(), ..call }).await;
                drop(place);
                answer
            }
        };
        let event = if answer.is_error { "tool_call_failed" } else { "tool_call_completed" };
        ToolOutcome { tool, answer, event }
    }

    async fn bounded(&self, call: ToolCall) -> ToolResult {
        let (tool, cancel) = (call.name.clone(), call.cancel.clone());
        let mut work = std::pin::pin!(self.tools.call(call));
        let is_late = tokio::select! {
            answer = &mut work => return answer,
            () = cancel.cancelled() => false,
            () = tokio::time::sleep(LIMIT) => true,
        };
        cancel.cancel();
        let ended = timeout(CANCEL_PATIENCE, work).await;
        if ended.is_err() {
            warn!(tool, "a tool did not end when it was told to");
        }
        match (is_late, ended) {
            (false, Ok(answer)) => answer,
            (false, Err(_)) => problem(&format!("{tool} was cancelled")),
            (true, _) => problem(&format!("{tool} took longer than {} seconds", LIMIT.as_secs())),
        }
    }

    /// Ends the tools that run. None of them does when this returns.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.running.close();
        self.running.wait().await;
    }
}

fn problem(message: &str) -> ToolResult {
    ToolResult::failed(json!({ "error": { "message": message } }).to_string())
}
