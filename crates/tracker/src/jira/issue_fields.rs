//! What Jira says of an issue.

use serde_json::Value;

use super::rich_text;
use crate::issue::{Blocker, Issue, IssueId, normal};
use crate::issue_records::{labels, list, text, time, word};

/// Reads an issue; nothing if it is none.
pub(super) fn read(told: &Value, address: &str, terminal: &[String]) -> Option<Issue> {
    let key = text(told, "/key")?;
    let names = list(told, "/fields/labels").iter().filter_map(Value::as_str);
    let description = rich_text::plain(&told["fields"]["description"]);
    let mut issue = Issue {
        id: IssueId(word(told, "/id")?),
        native_ref: None,
        url: Some(format!("{address}/browse/{key}")),
        identifier: key,
        title: text(told, "/fields/summary")?,
        description: (!description.is_empty()).then_some(description),
        priority: None,
        state: text(told, "/fields/status/name")?,
        branch_name: None,
        assignee_id: text(told, "/fields/assignee/accountId"),
        labels: labels(names),
        blocked_by: list(told, "/fields/issuelinks").iter().filter_map(blocker).collect(),
        dispatchable: true,
        created_at: time(told, "/fields/created"),
        updated_at: time(told, "/fields/updated"),
    };
    let done = |blocker: &Blocker| {
        blocker.state.as_deref().is_some_and(|state| terminal.contains(&normal(state)))
    };
    issue.dispatchable = !is_new(told, &issue) || issue.blocked_by.iter().all(done);
    Some(issue)
}

/// Tells whether nobody has begun with an issue.
fn is_new(told: &Value, issue: &Issue) -> bool {
    match text(told, "/fields/status/statusCategory/key") {
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
