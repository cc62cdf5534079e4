//! A call about every workspace, made one after the other.

use std::fmt::Write as _;
use std::sync::Arc;

use carrel_domain::Failure;
use serde_json::{Map, Value, json};

use super::panic_guard::catch_panic;
use super::tool_entry::Entry;
use crate::named_workspace::{NamedWorkspace, Workspaces};
use crate::response::{ToolContent, ToolResponse};
use crate::tool_context::ToolContext;

pub(super) fn sorted(workspaces: &Workspaces) -> Vec<Arc<NamedWorkspace>> {
    let mut workspaces: Vec<_> = workspaces.iter().map(Arc::clone).collect();
    workspaces.sort_by(|one, other| one.name().cmp(other.name()));
    workspaces
}

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
                catch_panic(tool_context.tool, work).await
            }
            Err(failure) => Err(failure),
        };
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        writeln!(text, "{separator}=== {name} ===").expect("writing to a string cannot fail");
        match called {
            Ok(response) => {
                text.push_str(&response.text());
                content.extend(response.content.into_iter().filter(|one| !is_text(one)));
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

fn is_text(content: &ToolContent) -> bool {
    matches!(content, ToolContent::Text(_))
}
