//! What people are told, as log lines.

use serde_json::{Map, Value, json};
use tracing::{info, warn};

use crate::event::Notice;
use crate::state::State;
use carrel_tracker::IssueId;

/// Writes a notice to the log, with the issue and the session that it is about.
pub(super) fn write(state: &State, notice: &Notice) {
    let Value::Object(mut fields) = json!(notice) else { return };
    let what = fields.remove("what").and_then(|what| what.as_str().map(str::to_owned));
    let sentence = sentence(what.as_deref().unwrap_or_default());
    let issue_id = fields.remove("issue").and_then(|id| id.as_str().map(str::to_owned));
    let entry = issue_id.as_ref().and_then(|id| state.entries.get(&IssueId(id.clone())));
    let issue_identifier = entry.map(|entry| entry.issue.identifier.as_str());
    let session_id = entry.and_then(|entry| entry.stage.run()?.session.as_deref());
    let bad = fields.get("error").is_some_and(|error| !error.is_null());
    let detail = words(&fields);
    if bad {
        warn!(issue_id, issue_identifier, session_id, "{sentence}{detail}");
    } else {
        info!(issue_id, issue_identifier, session_id, "{sentence}{detail}");
    }
}

fn sentence(what: &str) -> String {
    let mut words = what.replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

fn words(fields: &Map<String, Value>) -> String {
    let named = fields.iter().filter(|(_, value)| !value.is_null());
    named.fold(String::new(), |text, (name, value)| format!("{text} {name}={value}"))
}
