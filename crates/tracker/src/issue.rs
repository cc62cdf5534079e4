//! Issues in the form that all trackers share.

use std::fmt;

use carrel_domain::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tracker's id of an issue: stable, unique per tracker, and opaque to the conductor.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IssueId(pub String);

impl fmt::Display for IssueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An issue as it was when it was read. It is part of the journal, and of the prompt template as `issue`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// The tracker's id, by which the conductor claims and reads the issue.
    pub id: IssueId,
    /// Further ids that the tracker's tools need, without secrets.
    pub native_ref: Option<Value>,
    /// The identifier that people use, such as `ABC-123`; the name of the workspace derives from it.
    pub identifier: String,
    /// The title, which is never blank.
    pub title: String,
    /// The description as plain text or Markdown; `None` if it is empty.
    pub description: Option<String>,
    /// The priority from 1, the most urgent, to 4; other numbers count as none.
    pub priority: Option<i64>,
    /// The state in the tracker's spelling; compare with [`Self::normal_state`].
    pub state: String,
    /// The branch name that the tracker proposes; only Linear and the embedded tracker have one.
    pub branch_name: Option<String>,
    /// The page of the issue, always `http` or `https`.
    pub url: Option<String>,
    /// The tracker's id of the assignee; `None` if it is unassigned.
    pub assignee_id: Option<String>,
    /// Labels in the form of [`normal`], each once.
    pub labels: Vec<String>,
    /// Issues that block this one, where the tracker has such relations (Linear, Jira, the embedded one).
    pub blocked_by: Vec<Blocker>,
    /// False if the tracker's own rules forbid a dispatch: another assignee, or unresolved blockers.
    pub dispatchable: bool,
    /// The time of creation, by which issues of the same priority are ordered.
    pub created_at: Option<Timestamp>,
    /// The time of the last change, as the tracker counts changes.
    pub updated_at: Option<Timestamp>,
}

/// A blocking issue, as far as the tracker shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members of an issue")]
pub struct Blocker {
    pub id: Option<String>,
    pub identifier: Option<String>,
    pub state: Option<String>,
}

impl Blocker {
    /// Returns true if the issue is known to be in one of the terminal states, given in the form of [`normal`].
    pub(crate) fn is_resolved(&self, terminal: &[String]) -> bool {
        self.state.as_ref().is_some_and(|state| terminal.contains(&normal(state)))
    }
}

impl Issue {
    /// Returns true if id, identifier, title and state are not blank.
    pub fn is_well_formed(&self) -> bool {
        [&self.id.0, &self.identifier, &self.title, &self.state]
            .iter()
            .all(|text| !text.trim().is_empty())
    }

    /// Returns the state in the form of [`normal`].
    pub fn normal_state(&self) -> String {
        normal(&self.state)
    }
}

/// Returns the form in which states and labels are compared: trimmed and lower case.
pub fn normal(word: &str) -> String {
    word.trim().to_lowercase()
}
