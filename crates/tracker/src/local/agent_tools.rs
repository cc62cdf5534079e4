//! Tools of the embedded tracker, confined to the agent's own issue.

use carrel_store::IssueChange;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{LocalError, LocalTracker};
use crate::{Issue, Tool, ToolReply};

/// The author of agents' comments.
const AUTHOR: &str = "agent";

const SHOW: &str = "issue_show";
const COMMENT: &str = "issue_comment";
const MOVE: &str = "issue_move";

/// Returns the tools. None takes an identifier: the issue is always the agent's own.
pub(super) fn all() -> Vec<Tool> {
    let tool = |name: &str, description: &str, properties: Value, required: &[&str]| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    };
    vec![
        tool(SHOW, "Shows your issue as it is now, with its comments.", json!({}), &[]),
        tool(
            COMMENT,
            "Adds a comment to your issue, for the people who read it.",
            json!({ "body": { "type": "string", "description": "What it says, in Markdown." } }),
            &["body"],
        ),
        tool(
            MOVE,
            "Moves your issue to another state, such as Done when the work is finished.",
            json!({ "state": { "type": "string", "description": "The name of the state." } }),
            &["state"],
        ),
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
            SHOW => match parse::<Nothing>(arguments) {
                Ok(Nothing {}) => self
                    .find(identifier)
                    .await
                    .map(|(issue, comments)| json!({ "issue": issue, "comments": comments })),
                Err(refusal) => return refusal,
            },
            COMMENT => match parse::<Body>(arguments) {
                Ok(Body { body }) => {
                    let made = self.comment(identifier, AUTHOR, &body).await;
                    made.map(|comment| json!({ "comment": comment }))
                }
                Err(refusal) => return refusal,
            },
            MOVE => match parse::<State>(arguments) {
                Ok(State { state }) => {
                    let change = IssueChange { state: Some(state), ..IssueChange::default() };
                    self.change(identifier, change).await.map(|issue| json!({ "issue": issue }))
                }
                Err(refusal) => return refusal,
            },
            _ => return ToolReply::unknown(tool, &all()),
        };
        match done {
            Ok(output) => ToolReply { success: true, output: output.to_string() },
            Err(error) => refused(&error),
        }
    }
}

fn parse<T: for<'de> Deserialize<'de>>(arguments: Value) -> Result<T, ToolReply> {
    let arguments = if arguments.is_null() { json!({}) } else { arguments };
    serde_json::from_value(arguments).map_err(|error| {
        let message = format!("invalid arguments: {error}");
        ToolReply::refusal(&json!({ "error": { "message": message } }))
    })
}

fn refused(error: &LocalError) -> ToolReply {
    let message = carrel_domain::message_of(error);
    ToolReply::refusal(&json!({ "error": { "message": message } }))
}
