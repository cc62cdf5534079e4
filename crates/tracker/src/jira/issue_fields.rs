//! Issues in Jira's format.

use serde_json::Value;

use super::rich_text;
use crate::issue::{Blocker, Issue, IssueId, normal};
use crate::issue_records::{labels, list, text, time, word};

/// Reads an issue; `None` if a required member is missing. A new issue is dispatchable once its blockers
/// are resolved.
pub(super) fn read(json: &Value, address: &str, terminal: &[String]) -> Option<Issue> {
    let key = text(json, "/key")?;
    let names = list(json, "/fields/labels").iter().filter_map(Value::as_str);
    let description = rich_text::plain(&json["fields"]["description"]);
    let mut issue = Issue {
        id: IssueId(word(json, "/id")?),
        native_ref: None,
        url: Some(format!("{address}/browse/{key}")),
        identifier: key,
        title: text(json, "/fields/summary")?,
        description: (!description.is_empty()).then_some(description),
        priority: None,
        state: text(json, "/fields/status/name")?,
        branch_name: None,
        assignee_id: text(json, "/fields/assignee/accountId"),
        labels: labels(names),
        blocked_by: list(json, "/fields/issuelinks").iter().filter_map(blocker).collect(),
        dispatchable: true,
        created_at: time(json, "/fields/created"),
        updated_at: time(json, "/fields/updated"),
    };
    let done = |blocker: &Blocker| {
        blocker.state.as_deref().is_some_and(|state| terminal.contains(&normal(state)))
    };
    issue.dispatchable = !is_new(json, &issue) || issue.blocked_by.iter().all(done);
    Some(issue)
}

/// Returns true for an issue in the status category `new`.
fn is_new(json: &Value, issue: &Issue) -> bool {
    match text(json, "/fields/status/statusCategory/key") {
        Some(category) => normal(&category) == "new",
        None => matches!(issue.normal_state().as_str(), "todo" | "to do"),
    }
}

fn blocker(link: &Value) -> Option<Blocker> {
    let blocks = normal(link.pointer("/type/name")?.as_str()?) == "blocks";
    let inward = link.get("inwardIssue").filter(|issue| issue.is_object())?;
    blocks.then(|| Blocker {
        id: word(inward, "/id"),
        identifier: text(inward, "/key"),
        state: text(inward, "/fields/status/name"),
    })
}
