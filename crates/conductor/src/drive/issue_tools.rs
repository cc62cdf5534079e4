//! The tools of one run: the tracker's, and Carrel's own for the workspace.
//!
//! The list is fixed when the run starts. If both have a tool of the same name, the tracker's is offered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use carrel_agent::{ToolCall, ToolResult, Tools};
use carrel_tracker::{Issue, Tool, Tracker};
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::warn;

/// The time for one call of a tracker's tool.
const TRACKER_TOOL_TIMEOUT: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub(super) struct IssueTools {
    pub(super) tracker: Arc<dyn Tracker>,
    pub(super) issue: Issue,
    pub(super) own: Option<Arc<dyn Tools>>,
    /// The number of calls that changed the tracker.
    pub(super) changes: Arc<AtomicU64>,
}

impl IssueTools {
    fn is_tracker_tool(&self, name: &str) -> bool {
        self.tracker.tools().iter().any(|tool| tool.name == name)
    }

    async fn call_tracker(&self, call: ToolCall) -> ToolResult {
        let ToolCall { name, arguments, cancel, .. } = call;
        let work = timeout(TRACKER_TOOL_TIMEOUT, self.tracker.call(&self.issue, &name, arguments));
        let failed = |message: String| {
            ToolResult::failed(json!({ "error": { "message": message } }).to_string())
        };
        tokio::select! {
            reply = work => match reply {
                Ok(reply) => {
                    self.changes.fetch_add(u64::from(reply.changed), Ordering::AcqRel);
                    let result =
                        if reply.success { ToolResult::done } else { ToolResult::failed };
                    result(reply.output)
                }
                Err(_) => failed(format!("{name} took longer than {} seconds", TRACKER_TOOL_TIMEOUT.as_secs())),
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
            if self.is_tracker_tool(tool["name"].as_str().unwrap_or_default()) {
                warn!(tool = %tool["name"], "Carrel's tool is hidden by a tool of the tracker with the same name");
            } else {
                tools.push(tool);
            }
        }
        tools
    }

    async fn call(&self, call: ToolCall) -> ToolResult {
        match &self.own {
            Some(own) if !self.is_tracker_tool(&call.name) => own.call(call).await,
            _ => self.call_tracker(call).await,
        }
    }

    async fn close(&self) {
        if let Some(own) = &self.own {
            own.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_tracker::{IssueId, ToolReply, TrackerError};
    use pretty_assertions::assert_eq;
    use tokio_util::sync::CancellationToken;

    /// A tracker with the tools `shared` and `slow`, the second of which never answers.
    #[derive(Debug)]
    struct Board;

    #[async_trait::async_trait]
    impl Tracker for Board {
        async fn by_states(&self, _: &[String]) -> Result<Vec<Issue>, TrackerError> {
            Ok(Vec::new())
        }

        async fn by_ids(&self, _: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
            Ok(Vec::new())
        }

        fn tools(&self) -> Vec<Tool> {
            let tool = |name: &str| {
                let described = json!({"name": name, "description": "", "inputSchema": {}});
                serde_json::from_value(described).unwrap()
            };
            vec![tool("shared"), tool("slow")]
        }

        async fn call(&self, _: &Issue, tool: &str, _: Value) -> ToolReply {
            if tool == "slow" {
                std::future::pending::<()>().await;
            }
            ToolReply { success: true, changed: true, output: "of the tracker".to_owned() }
        }
    }

    /// Carrel's own tools, one of which has a name that is taken.
    #[derive(Debug)]
    struct Own;

    #[async_trait::async_trait]
    impl Tools for Own {
        fn list(&self) -> Vec<Value> {
            vec![json!({"name": "shared"}), json!({"name": "Read"})]
        }

        async fn call(&self, call: ToolCall) -> ToolResult {
            ToolResult::done(format!("own {}", call.name))
        }
    }

    fn tools() -> IssueTools {
        let issue = json!({
            "id": "1", "identifier": "ABC-1", "title": "t", "state": "Todo", "labels": [],
            "blocked_by": [], "dispatchable": true
        });
        let issue = serde_json::from_value(issue).unwrap();
        IssueTools {
            tracker: Arc::new(Board),
            issue,
            own: Some(Arc::new(Own)),
            changes: Arc::default(),
        }
    }

    fn call(name: &str, cancel: &CancellationToken) -> ToolCall {
        ToolCall::new(name, json!({}), cancel.clone())
    }

    #[tokio::test]
    async fn a_name_that_the_tracker_has_is_the_trackers() {
        let (tools, cancel) = (tools(), CancellationToken::new());
        let list = tools.list();
        let names: Vec<_> = list.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["shared", "slow", "Read"]);
        let shared = tools.call(call("shared", &cancel)).await;
        assert_eq!(shared, ToolResult::done("of the tracker"));
        assert_eq!(tools.call(call("Read", &cancel)).await, ToolResult::done("own Read"));
        assert_eq!(tools.changes.load(Ordering::Acquire), 1, "of the tracker's tools alone");
    }

    #[tokio::test]
    async fn a_cancelled_call_of_a_tracker_tool_ends() {
        let (tools, cancel) = (tools(), CancellationToken::new());
        cancel.cancel();
        assert!(tools.call(call("slow", &cancel)).await.is_error);
    }
}
