//! A call about every workspace, made one after the other.

use carrel_audit::Violation;
use carrel_domain::Failure;
use serde_json::{Map, Value, json};

use super::panic_guard::catch_panic;
use super::tool_entry::Entry;
use crate::response::{ToolContent, ToolResponse};
use crate::text::line;
use crate::tool_context::ToolContext;

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["workspaces"],
        "properties": {
            "workspaces": {
                "type": "object",
                "description": "With `workspace: all`: the facts, or the error, of each.",
                "additionalProperties": { "type": "object" },
            },
        },
    })
}

fn audit_violation(context: &ToolContext, failure: &Failure) {
    if let Some(violation) = Violation::of_code(failure.code, failure.detail.clone()) {
        context.toolbox.events.add_violation(&context.audited_call(), violation);
    }
}

/// Makes the calls, and puts each reply under the name of its workspace. The response is an error if every
/// call failed.
pub(super) async fn run(
    entry: &Entry,
    calls: Vec<(String, Result<ToolContext, Failure>)>,
    arguments: &Map<String, Value>,
) -> ToolResponse {
    let mut content = Vec::new();
    let mut facts = Map::new();
    let mut text = String::new();
    let mut failed = 0;
    for (name, made) in calls {
        let called = match made {
            Ok(tool_context) => {
                let work = entry.call(&tool_context, arguments.clone());
                let called = catch_panic(tool_context.tool, work).await;
                called.inspect_err(|failure| audit_violation(&tool_context, failure))
            }
            Err(failure) => Err(failure),
        };
        line(&mut text, &format!("=== {name} ==="));
        match called {
            Ok(response) => {
                text.push_str(&response.text());
                let others = response.content.into_iter();
                content.extend(others.filter(|one| !matches!(one, ToolContent::Text(_))));
                facts.insert(name, response.structured);
            }
            Err(failure) => {
                failed += 1;
                text.push_str(&failure.message);
                facts.insert(name, json!(failure.envelope()));
            }
        }
    }
    let is_error = failed == facts.len();
    content.insert(0, ToolContent::Text(text));
    let structured = json!({ "workspaces": facts });
    ToolResponse { content, structured, data: None, is_error }
}
