//! Notices as log lines.

use serde_json::{Map, Value, json};
use tracing::{info, warn};

use super::transcript::TranscriptWriter;
use crate::notice::{IssueRef, Notice};

/// Members of a notice that are log fields of their own.
const FIELDS: [&str; 4] = ["what", "issue_id", "issue_identifier", "session_id"];

/// Logs a notice with its issue and session, and for a failed run the path of its transcript.
pub(super) fn write(notice: &Notice, transcripts: &TranscriptWriter) {
    let Value::Object(fields) = json!(notice) else { return };
    let sentence = sentence(fields.get("what").and_then(Value::as_str).unwrap_or_default());
    let subject = notice.issue();
    let issue_id = subject.map(|issue| issue.id.0.as_str());
    let issue_identifier = subject.map(|issue| issue.identifier.as_str());
    let session_id = subject.and_then(|IssueRef { session, .. }| session.as_deref());
    let transcript = match notice {
        Notice::RunEnded { issue, run, error: Some(_), .. } => {
            Some(transcripts.path(&issue.identifier, *run).display().to_string())
        }
        _ => None,
    };
    let detail = words(&fields);
    if notice.is_warning() {
        warn!(issue_id, issue_identifier, session_id, detail, transcript, "{sentence}");
    } else {
        info!(issue_id, issue_identifier, session_id, detail, "{sentence}");
    }
}

fn sentence(what: &str) -> String {
    let mut words = what.replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

/// Returns the remaining members as text; `None` if there are none.
fn words(fields: &Map<String, Value>) -> Option<String> {
    let told =
        fields.iter().filter(|(name, value)| !FIELDS.contains(&name.as_str()) && !value.is_null());
    let told: Vec<String> = told
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            other => format!("{name}: {other}"),
        })
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}
