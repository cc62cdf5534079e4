//! The tracker's tools, for the agent of one issue.

use std::sync::Arc;

use carrel_agent::Tools;
use carrel_tracker::{Issue, Tool, Tracker};
use serde_json::{Value, json};

/// The tracker's tools, for the agent of one issue. They stay what they were when its run began.
#[derive(Debug)]
pub(super) struct IssueTools {
    pub(super) tracker: Arc<dyn Tracker>,
    pub(super) issue: Issue,
}

#[async_trait::async_trait]
impl Tools for IssueTools {
    fn list(&self) -> Vec<Value> {
        self.tracker.tools().iter().map(|tool: &Tool| json!(tool)).collect()
    }

    async fn call(&self, name: &str, arguments: Value) -> (bool, String) {
        let reply = self.tracker.call(&self.issue, name, arguments).await;
        (reply.success, reply.output)
    }
}
