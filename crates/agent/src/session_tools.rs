//! The tools of one session: their list, concurrency, timeouts and cancellation.
//!
//! The list is read once, so it does not change during a session. Every call runs in a task of its own and ends: by
//! itself, by cancellation (of the call or of the session), or after [`CALL_TIMEOUT`].

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

use crate::tools::{ToolCall, ToolResult, Tools};

/// The time for one call. Tools have timeouts of their own; this one is the backstop.
const CALL_TIMEOUT: Duration = Duration::from_mins(40);

/// The time for a cancelled tool to return.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Concurrent calls of one session; further ones wait. An agent that starts everything at once must not
/// take the machine from other agents.
const MAX_CONCURRENT_CALLS: usize = 8;

#[derive(Debug)]
pub(crate) struct SessionTools {
    tools: Arc<dyn Tools>,
    pub(crate) list: Vec<Value>,
    permits: Semaphore,
    running: TaskTracker,
    stop: CancellationToken,
}

/// The result of a call, with the event to report.
#[derive(Debug)]
pub(crate) struct ToolOutcome {
    pub(crate) tool: String,
    pub(crate) result: ToolResult,
    pub(crate) event: &'static str,
}

impl ToolOutcome {
    /// Returns the texts of the result, joined by line breaks.
    pub(crate) fn text(&self) -> String {
        let texts = self.result.content.iter().filter_map(|piece| piece.get("text")?.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl SessionTools {
    /// Reads the tools of a session. `stop` cancels all calls.
    pub(crate) fn new(tools: Arc<dyn Tools>, stop: &CancellationToken) -> Arc<Self> {
        let list = tools.list();
        let (permits, running) = (Semaphore::new(MAX_CONCURRENT_CALLS), TaskTracker::new());
        Arc::new(Self { tools, list, permits, running, stop: stop.child_token() })
    }

    /// Returns a cancellation token for one call, which the session cancels too.
    pub(crate) fn cancellation(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Starts a call, which continues if the returned future is dropped.
    pub(crate) fn begin(
        self: &Arc<Self>,
        call: ToolCall,
    ) -> impl Future<Output = ToolOutcome> + Send + use<> {
        let (own, name) = (Arc::clone(self), call.name.clone());
        let call = self.running.spawn(async move { own.call(call).await });
        async move {
            call.await.unwrap_or_else(|error| {
                error!(%error, tool = name, "a tool panicked");
                let result = error_result("it panicked, which is a defect in Carrel");
                ToolOutcome { tool: name, result, event: "tool_call_failed" }
            })
        }
    }

    /// Calls a tool. The error of an unknown one lists the known ones.
    async fn call(&self, call: ToolCall) -> ToolOutcome {
        let (tool, cancel) = (call.name.trim().to_owned(), call.cancel.clone());
        let known: Vec<&str> =
            self.list.iter().filter_map(|tool| tool.get("name")?.as_str()).collect();
        if !known.contains(&tool.as_str()) {
            let message = format!("there is no tool {tool:?}");
            let error = json!({ "error": { "message": message, "supportedTools": known } });
            let result = ToolResult::failed(error.to_string());
            return ToolOutcome { tool, result, event: "unsupported_tool_call" };
        }
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => error_result("it was cancelled before it began"),
            permit = self.permits.acquire() => {
                let result = self.bounded(ToolCall { name: tool.clone(), ..call }).await;
                drop(permit);
                result
            }
        };
        let event = if result.is_error { "tool_call_failed" } else { "tool_call_completed" };
        ToolOutcome { tool, result, event }
    }

    async fn bounded(&self, call: ToolCall) -> ToolResult {
        let (tool, cancel) = (call.name.clone(), call.cancel.clone());
        let mut work = std::pin::pin!(self.tools.call(call));
        let is_late = tokio::select! {
            result = &mut work => return result,
            () = cancel.cancelled() => false,
            () = tokio::time::sleep(CALL_TIMEOUT) => true,
        };
        cancel.cancel();
        let ended = timeout(CANCEL_TIMEOUT, work).await;
        if ended.is_err() {
            warn!(tool, "a tool did not end when it was cancelled");
        }
        match (is_late, ended) {
            (false, Ok(result)) => result,
            (false, Err(_)) => error_result(&format!("{tool} was cancelled")),
            (true, _) => {
                error_result(&format!("{tool} took longer than {} seconds", CALL_TIMEOUT.as_secs()))
            }
        }
    }

    /// Cancels all calls, and returns when they have ended.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.running.close();
        self.running.wait().await;
    }
}

fn error_result(message: &str) -> ToolResult {
    ToolResult::failed(json!({ "error": { "message": message } }).to_string())
}
