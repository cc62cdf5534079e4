//! Issues in Linear's format.

use serde_json::Value;

use crate::issue::{Blocker, Issue, IssueId, normal};
use crate::issue_records::{labels, link, list, text, time};

/// The rules for `dispatchable`: the configured assignee, and the states that resolve a blocker.
#[derive(Debug)]
pub(super) struct DispatchRules<'a> {
    pub(super) assignee: Option<&'a str>,
    pub(super) terminal: &'a [String],
}

impl DispatchRules<'_> {
    /// An issue in the state `todo` is dispatchable once its blockers are resolved; in later states it
    /// stays so.
    fn allow(&self, issue: &Issue, unknown_blockers: bool) -> bool {
        let mine = self.assignee.is_none_or(|id| issue.assignee_id.as_deref() == Some(id));
        let is_open = |blocker: &Blocker| !blocker.is_resolved(self.terminal);
        let waits = unknown_blockers || issue.blocked_by.iter().any(is_open);
        mine && !(issue.normal_state() == "todo" && waits)
    }
}

pub(super) fn is_id(id: &str) -> bool {
    let dash = |index: usize| matches!(index, 8 | 13 | 18 | 23);
    let fits = |(index, byte): (usize, u8)| {
        if dash(index) { byte == b'-' } else { byte.is_ascii_hexdigit() }
    };
    id.len() == 36 && id.bytes().enumerate().all(fits)
}

/// Returns true if the page does not hold all labels or relations of the issue.
pub(super) fn is_truncated(node: &Value) -> bool {
    ["/labels/pageInfo/hasNextPage", "/inverseRelations/pageInfo/hasNextPage"]
        .iter()
        .any(|path| node.pointer(path) == Some(&Value::Bool(true)))
}

/// Reads an issue; `None` if a required member is missing.
pub(super) fn read(node: &Value, rules: &DispatchRules<'_>) -> Option<Issue> {
    let names = list(node, "/labels/nodes").iter().filter_map(|label| label["name"].as_str());
    let mut issue = Issue {
        id: IssueId(text(node, "/id")?),
        identifier: text(node, "/identifier")?,
        title: text(node, "/title")?,
        description: text(node, "/description"),
        priority: integer(&node["priority"]),
        state: text(node, "/state/name")?,
        branch_name: text(node, "/branchName"),
        url: link(node, "/url"),
        assignee_id: text(node, "/assignee/id"),
        labels: labels(names),
        blocked_by: list(node, "/inverseRelations/nodes").iter().filter_map(blocker).collect(),
        created_at: time(node, "/createdAt"),
        updated_at: time(node, "/updatedAt"),
        ..Issue::default()
    };
    issue.dispatchable = rules.allow(&issue, is_truncated(node));
    Some(issue)
}

/// Reads an integer. Linear sends it as `2` or `2.0`.
fn integer(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is small")]
    let rounded =
        |number: f64| (number.fract() == 0.0 && number.abs() < 1e6).then_some(number as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(rounded))
}

fn blocker(relation: &Value) -> Option<Blocker> {
    let blocks = normal(relation["type"].as_str()?) == "blocks";
    blocks.then(|| Blocker {
        id: text(relation, "/issue/id"),
        identifier: text(relation, "/issue/identifier"),
        state: text(relation, "/issue/state/name"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_linear_are_asked_for() {
        assert!(is_id("9cfb482a-81e3-4154-b5b9-2c805e70a02d"));
        for id in [
            "",
            "1",
            "ABC-1",
            "9cfb482a-81e3-4154-b5b9-2c805e70a02g",
            "9cfb482aa81e3-4154-b5b9-2c805e70a02d",
        ] {
            assert!(!is_id(id), "{id}");
        }
    }
}
