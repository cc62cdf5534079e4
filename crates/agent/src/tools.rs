//! Tools that an agent is offered.

use std::fmt;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Tools that an agent is offered, run outside its walls.
#[async_trait::async_trait]
pub trait Tools: fmt::Debug + Send + Sync {
    /// Returns them, each as MCP describes it: with `name`, `description` and `inputSchema`.
    fn list(&self) -> Vec<Value>;

    /// Uses one. Whatever happens is in the answer.
    async fn call(&self, call: ToolCall) -> ToolAnswer;

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
}

/// What an agent is told.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// Pieces of text and pictures, in the words of MCP.
    pub content: Vec<Value>,
    /// Whether it was refused or failed.
    pub is_error: bool,
}

impl ToolAnswer {
    /// Tells what came of it.
    pub fn done(text: impl Into<String>) -> Self {
        Self::text(text, false)
    }

    /// Tells why nothing came of it.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::text(text, true)
    }

    fn text(text: impl Into<String>, is_error: bool) -> Self {
        Self { content: vec![json!({ "type": "text", "text": text.into() })], is_error }
    }
}
