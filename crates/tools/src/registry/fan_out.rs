//! One call about every workspace.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::erased::{Entry, guarded};
use crate::failure::Failure;
use crate::named_workspace::{NamedWorkspace, Workspaces};
use crate::response::{ToolContent, ToolResponse};
use crate::tool_context::ToolContext;

/// Returns the workspaces in the order of their names.
pub(super) fn sorted(workspaces: &Workspaces) -> Vec<Arc<NamedWorkspace>> {
    let mut workspaces: Vec<_> = workspaces.iter().map(Arc::clone).collect();
    workspaces.sort_by(|one, other| one.name().cmp(other.name()));
    workspaces
}

/// Describes the facts of each workspace under its name.
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

/// Makes the calls one after the other, and puts the answers under the names of their workspaces.
pub(super) async fn run(
    entry: &Entry,
    calls: Vec<(String, Result<ToolContext, Failure>)>,
    arguments: &Map<String, Value>,
) -> ToolResponse {
    let (mut content, mut facts, mut text) = (Vec::new(), Map::new(), String::new());
    let mut failed = 0;
    for (name, context) in calls {
        let answered = match context {
            Ok(context) => guarded(entry, &context, arguments.clone()).await,
            Err(failure) => Err(failure),
        };
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        writeln!(text, "{separator}=== {name} ===").expect("writing to a string cannot fail");
        match answered {
            Ok(answer) => {
                text.push_str(&answer.text());
                content.extend(answer.content.into_iter().filter(|one| !is_text(one)));
                facts.insert(name, answer.structured);
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
