//! The tools of the agent of one issue: the tracker's, and Carrel's own.

use std::sync::Arc;
use std::time::Duration;

use carrel_agent::{ToolAnswer, ToolCall, Tools};
use carrel_tracker::{Issue, Tool, Tracker};
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::warn;

/// How long one use of a tool of the tracker may take.
const LIMIT: Duration = Duration::from_mins(10);

/// The tools of the agent of one issue. They stay what they were when its run began.
#[derive(Debug)]
pub(super) struct IssueTools {
    pub(super) tracker: Arc<dyn Tracker>,
    pub(super) issue: Issue,
    /// Carrel's own, for the issue's workspace.
    pub(super) own: Option<Arc<dyn Tools>>,
}

impl IssueTools {
    fn is_of_tracker(&self, name: &str) -> bool {
        self.tracker.tools().iter().any(|tool| tool.name == name)
    }

    async fn ask_tracker(&self, call: ToolCall) -> ToolAnswer {
        let ToolCall { name, arguments, cancel } = call;
        let work = timeout(LIMIT, self.tracker.call(&self.issue, &name, arguments));
        let failed = |message: String| {
            ToolAnswer::failed(json!({ "error": { "message": message } }).to_string())
        };
        tokio::select! {
            reply = work => match reply {
                Ok(reply) if reply.success => ToolAnswer::done(reply.output),
                Ok(reply) => ToolAnswer::failed(reply.output),
                Err(_) => failed(format!("{name} took longer than {} seconds", LIMIT.as_secs())),
            },
            () = cancel.cancelled() => failed(format!("{name} was cancelled")),
        }
    }
}

#[async_trait::async_trait]
impl Tools for IssueTools {
    fn list(&self) -> Vec<Value> {
        let mut tools: Vec<Value> =
            self.tracker.tools().iter().map(|tool: &Tool| json!(tool)).collect();
        for tool in self.own.iter().flat_map(|own| own.list()) {
            if self.is_of_tracker(tool["name"].as_str().unwrap_or_default()) {
                warn!(tool = %tool["name"], "The tracker has a tool of this name, which is offered");
            } else {
                tools.push(tool);
            }
        }
        tools
    }

    async fn call(&self, call: ToolCall) -> ToolAnswer {
        match &self.own {
            Some(own) if !self.is_of_tracker(&call.name) => own.call(call).await,
            _ => self.ask_tracker(call).await,
        }
    }

    async fn close(&self) {
        if let Some(own) = &self.own {
            own.close().await;
        }
    }
}
