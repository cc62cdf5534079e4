//! Tools for agents.

use std::fmt;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Tools that an agent may call. They run outside its sandbox, in the conductor's process.
#[async_trait::async_trait]
pub trait Tools: fmt::Debug + Send + Sync {
    /// Returns the MCP definitions, each with `name`, `description` and `inputSchema`.
    fn list(&self) -> Vec<Value>;

    /// Calls a tool. The result holds failures too, so that the agent can read and correct them.
    async fn call(&self, call: ToolCall) -> ToolResult;

    /// Ends background work of earlier calls, and returns when it has ended.
    async fn close(&self) {}
}

/// A call of a tool.
#[derive(Debug)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments, as the tool's schema describes them.
    pub arguments: Value,
    /// Cancels the call. It still has to return a result.
    pub cancel: CancellationToken,
    /// The agent's client name, if it sent one.
    pub client: Option<String>,
    /// Receives progress, if the agent requested it.
    pub progress: Option<Progress>,
}

impl ToolCall {
    /// Creates a call without client name and progress.
    pub fn new(name: impl Into<String>, arguments: Value, cancel: CancellationToken) -> Self {
        Self { name: name.into(), arguments, cancel, client: None, progress: None }
    }
}

/// The progress channel of one call.
#[derive(Debug)]
pub struct Progress {
    pub(crate) token: Value,
    pub(crate) notifications: mpsc::Sender<Value>,
}

impl Progress {
    /// Sends an MCP progress notification. It is dropped if the channel is full.
    pub fn report(&self, done: f64, total: Option<f64>, message: &str) {
        let mut params =
            json!({ "progressToken": self.token, "progress": done, "message": message });
        if let Some(total) = total {
            params["total"] = total.into();
        }
        let _ = self.notifications.try_send(json!({
            "jsonrpc": "2.0", "method": "notifications/progress", "params": params,
        }));
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// Text and images as MCP content.
    pub content: Vec<Value>,
    /// The structured result; `None` for agents that would ignore the content next to it.
    pub facts: Option<Value>,
    /// True if the call was refused or failed.
    pub is_error: bool,
}

impl ToolResult {
    /// Creates a successful result of one text.
    pub fn done(text: impl Into<String>) -> Self {
        Self::text(text, false)
    }

    /// Creates a failed result of one text.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::text(text, true)
    }

    fn text(text: impl Into<String>, is_error: bool) -> Self {
        let content = vec![json!({ "type": "text", "text": text.into() })];
        Self { content, facts: None, is_error }
    }
}
