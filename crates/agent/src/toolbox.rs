//! Tools that a session was offered when it was opened.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::Tools;

/// How long one use of a tool may take.
const LIMIT: Duration = Duration::from_mins(10);

/// The tools of one session. Whatever is configured later, they stay the same.
#[derive(Debug)]
pub(crate) struct Toolbox {
    tools: Arc<dyn Tools>,
    list: Vec<Value>,
}

/// What came of the use of a tool.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) success: bool,
    pub(crate) output: String,
    /// How that is called in events.
    pub(crate) event: &'static str,
}

impl Toolbox {
    pub(crate) fn new(tools: Arc<dyn Tools>) -> Self {
        let list = tools.list();
        Self { tools, list }
    }

    pub(crate) fn list(&self) -> &[Value] {
        &self.list
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().filter_map(|tool| tool.get("name")?.as_str())
    }

    /// Uses a tool. One that is not there fails, and says which are.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Used {
        let name = name.trim();
        if !self.names().any(|known| known == name) {
            let known: Vec<&str> = self.names().collect();
            let message = format!("there is no tool {name:?}");
            return Used {
                success: false,
                output: json!({ "error": { "message": message, "supportedTools": known } })
                    .to_string(),
                event: "unsupported_tool_call",
            };
        }
        let used = timeout(LIMIT, self.tools.call(name, arguments)).await;
        let (success, output) = used.unwrap_or_else(|_| {
            let message = format!("{name} took longer than {} seconds", LIMIT.as_secs());
            (false, json!({ "error": { "message": message } }).to_string())
        });
        let event = if success { "tool_call_completed" } else { "tool_call_failed" };
        Used { success, output, event }
    }
}
