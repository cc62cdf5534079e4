//! Tools of the embedded tracker, confined to the agent's own issue.

use carrel_domain::message_of;
use carrel_store::IssueChange;
use serde::Deserialize;
use serde_json::{Value, json};

use super::LocalTracker;
use crate::{Issue, Tool, ToolReply, normal};

/// The author of agents' comments.
const AUTHOR: &str = "agent";

const SHOW: &str = "issue_show";
const COMMENT: &str = "issue_comment";
const MOVE: &str = "issue_move";

/// Returns the tools. None takes an identifier: the issue is always the agent's own.
pub(super) fn all() -> Vec<Tool> {
    let body = json!({ "type": "string", "description": "What it says, in Markdown." });
    let state = json!({ "type": "string", "description": "The name of the state." });
    let show = "Shows your issue as it is now, with its comments.";
    let comment = "Adds a comment to your issue, for the people who read it.";
    let move_to = "Moves your issue to another state, such as Done when the work is finished.";
    vec![
        Tool::new(SHOW, show, &json!({}), &[]),
        Tool::new(COMMENT, comment, &json!({ "body": body }), &["body"]),
        Tool::new(MOVE, move_to, &json!({ "state": state }), &["state"]),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    body: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    state: String,
}

impl LocalTracker {
    pub(super) async fn use_tool(&self, issue: &Issue, tool: &str, arguments: Value) -> ToolReply {
        let identifier = &issue.identifier;
        let done = match tool {
            SHOW => self.show(identifier, arguments).await.map(|shown| (shown, false)),
            COMMENT => self.add_comment(identifier, arguments).await.map(|added| (added, true)),
            MOVE => self.move_to(identifier, arguments).await,
            _ => return ToolReply::unknown(tool, &all()),
        };
        match done {
            Ok((output, changed)) => {
                ToolReply { success: true, changed, output: output.to_string() }
            }
            Err(message) => ToolReply::refusal(&json!({ "error": { "message": message } })),
        }
    }

    async fn show(&self, identifier: &str, arguments: Value) -> Result<Value, String> {
        let Nothing {} = parse(arguments)?;
        let (issue, comments) = self.find(identifier).await.map_err(|error| message_of(&error))?;
        Ok(json!({ "issue": issue, "comments": comments }))
    }

    async fn add_comment(&self, identifier: &str, arguments: Value) -> Result<Value, String> {
        let Body { body } = parse(arguments)?;
        let comment = self.comment(identifier, AUTHOR, &body).await;
        Ok(json!({ "comment": comment.map_err(|error| message_of(&error))? }))
    }

    /// Moves the issue. Returns it, and false if it was in that state already.
    async fn move_to(&self, identifier: &str, arguments: Value) -> Result<(Value, bool), String> {
        let State { state } = parse(arguments)?;
        let (issue, _) = self.find(identifier).await.map_err(|error| message_of(&error))?;
        if issue.normal_state() == normal(&state) {
            return Ok((json!({ "issue": issue }), false));
        }
        let change = IssueChange { state: Some(state), ..IssueChange::default() };
        let issue = self.change(identifier, change).await;
        Ok((json!({ "issue": issue.map_err(|error| message_of(&error))? }), true))
    }
}

fn parse<T: for<'de> Deserialize<'de>>(arguments: Value) -> Result<T, String> {
    let arguments = if arguments.is_null() { json!({}) } else { arguments };
    serde_json::from_value(arguments).map_err(|error| format!("invalid arguments: {error}"))
}
