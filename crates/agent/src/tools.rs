//! Tools that an agent is offered.

use std::fmt;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Tools that an agent is offered, run outside its walls.
#[async_trait::async_trait]
pub trait Tools: fmt::Debug + Send + Sync {
    /// Returns them, each as MCP describes it: with `name`, `description` and `inputSchema`.
    fn list(&self) -> Vec<Value>;

    /// Uses one. Whatever happens is in the answer.
    async fn call(&self, call: ToolCall) -> ToolResult;

    /// Ends what calls have left running. Nothing of it is left when this returns.
    async fn close(&self) {}
}

/// One use of a tool.
#[derive(Debug)]
pub struct ToolCall {
    /// Which one.
    pub name: String,
    /// What for.
    pub arguments: Value,
    /// Ends the work, because nobody waits for it any more. It still has to be answered.
    pub cancel: CancellationToken,
    /// What the agent calls itself, where it tells.
    pub client: Option<String>,
    /// Where to say how far the work is, if the agent wants to know.
    pub progress: Option<Progress>,
}

impl ToolCall {
    /// Uses a tool for somebody who only wants the answer.
    pub fn new(name: impl Into<String>, arguments: Value, cancel: CancellationToken) -> Self {
        Self { name: name.into(), arguments, cancel, client: None, progress: None }
    }
}

/// Takes news about one use of a tool.
#[derive(Debug)]
pub struct Progress {
    pub(crate) token: Value,
    pub(crate) notices: mpsc::Sender<Value>,
}

impl Progress {
    /// Says how far the work is, and what it is doing. Whoever does not keep up misses some.
    pub fn report(&self, done: f64, total: Option<f64>, message: &str) {
        let mut params =
            json!({ "progressToken": self.token, "progress": done, "message": message });
        if let Some(total) = total {
            params["total"] = total.into();
        }
        let _ = self.notices.try_send(json!({
            "jsonrpc": "2.0", "method": "notifications/progress", "params": params,
        }));
    }
}

/// What an agent is told.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// Pieces of text and pictures, in the words of MCP.
    pub content: Vec<Value>,
    /// The same for programs, if the agent does not take it for all there is.
    pub facts: Option<Value>,
    /// Whether it was refused or failed.
    pub is_error: bool,
}

impl ToolResult {
    /// Tells what came of it.
    pub fn done(text: impl Into<String>) -> Self {
        Self::text(text, false)
    }

    /// Tells why nothing came of it.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::text(text, true)
    }

    fn text(text: impl Into<String>, is_error: bool) -> Self {
        let content = vec![json!({ "type": "text", "text": text.into() })];
        Self { content, facts: None, is_error }
    }
}
