//! The embedded tracker: issues, their blockers and comments.
//!
//! It exists so that the conductor can be used without an account at a tracker, and so that tests need none.
//! States are free texts; which of them are open or terminal is a setting of the workflow. An issue may be
//! blocked by others, whose states are read with it, so that no second query is needed to decide whether it
//! can be dispatched.

use async_trait::async_trait;
use carrel_domain::Timestamp;
use serde::{Deserialize, Serialize};

use crate::database::Database;
use crate::error::StoreError;
use crate::value::{from_row, values};

/// The issues of the embedded tracker.
///
/// Numbers begin at 1 and are never given twice, also after a deletion. Every write is durable when it
/// returns, and visible to all processes that use the store.
#[async_trait]
pub trait IssueStore: std::fmt::Debug + Send + Sync + 'static {
    /// Adds an issue, unless one of its blockers does not exist.
    async fn add_issue(&self, issue: NewIssue, now: Timestamp) -> Result<IssueOutcome, StoreError>;

    /// Returns the selected issues with the current states of their blockers, ordered by number.
    async fn issues(&self, filter: IssueFilter) -> Result<Vec<StoredIssue>, StoreError>;

    /// Changes an issue, unless it or an added blocker does not exist.
    async fn change_issue(
        &self,
        number: u64,
        change: IssueChange,
        now: Timestamp,
    ) -> Result<IssueOutcome, StoreError>;

    /// Adds a comment. Returns `None` if the issue does not exist.
    async fn comment(
        &self,
        number: u64,
        comment: NewComment,
        now: Timestamp,
    ) -> Result<Option<Comment>, StoreError>;

    /// Returns the newest `limit` comments on an issue, oldest first.
    async fn comments(&self, number: u64, limit: u32) -> Result<Vec<Comment>, StoreError>;

    /// Returns the random name of this tracker, 32 characters, which tells it from that of any other
    /// database.
    async fn tracker_name(&self) -> Result<String, StoreError>;
}

/// An issue to add.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewIssue {
    /// The title, one line.
    pub title: String,
    /// The description, any text.
    pub description: Option<String>,
    /// The state, compared without case and surrounding blanks.
    pub state: String,
    /// The priority; smaller is more urgent.
    pub priority: Option<i64>,
    /// Labels in the order in which they are shown.
    pub labels: Vec<String>,
    /// The numbers of the issues that block it.
    pub blocked_by: Vec<u64>,
}

/// An issue as the store has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredIssue {
    /// The number, from 1.
    pub number: u64,
    /// The title, one line.
    pub title: String,
    /// The description, any text.
    pub description: Option<String>,
    /// The state in the spelling in which it was set.
    pub state: String,
    /// The priority; smaller is more urgent.
    pub priority: Option<i64>,
    /// Labels without duplicates.
    pub labels: Vec<String>,
    /// The numbers and current states of the issues that block it.
    pub blocked_by: Vec<(u64, String)>,
    /// The time at which it was added.
    pub created_at: Timestamp,
    /// The time of the last change or comment.
    pub updated_at: Timestamp,
}

from_row! { StoredIssue: number, title, description, state, priority, labels, created_at,
updated_at, blocked_by }

/// A change of an issue. Absent and empty fields leave it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueChange {
    /// The new state.
    pub state: Option<String>,
    /// Labels to add, after the existing ones. A label that the issue has is not added again.
    pub add_labels: Vec<String>,
    /// Labels to remove.
    pub remove_labels: Vec<String>,
    /// Numbers of blockers to add.
    pub add_blockers: Vec<u64>,
    /// Numbers of blockers to remove.
    pub remove_blockers: Vec<u64>,
}

impl IssueChange {
    pub(crate) fn labels(&self, before: &[String]) -> Vec<String> {
        let mut labels = before.to_vec();
        labels.retain(|label| !self.remove_labels.contains(label));
        for label in &self.add_labels {
            if !labels.contains(label) {
                labels.push(label.clone());
            }
        }
        labels
    }
}

/// The result of adding or changing an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IssueOutcome {
    /// The issue after the write.
    Done(StoredIssue),
    /// The issue or blocker with this number does not exist. Nothing was written.
    Unknown(u64),
}

/// A selection of issues. Absent fields select all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueFilter {
    /// Selects issues in one of these states, without regard to case and surrounding blanks.
    pub states: Option<Vec<String>>,
    /// Selects issues with these numbers.
    pub numbers: Option<Vec<u64>>,
    /// The most issues to return.
    pub limit: Option<u32>,
}

/// A comment to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewComment {
    /// The name of the author.
    pub author: String,
    /// The text.
    pub body: String,
}

/// A comment as the store has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// The name of the author.
    pub author: String,
    /// The text.
    pub body: String,
    /// The time at which it was added.
    pub created_at: Timestamp,
}

/// Returns the form of a state that is compared: trimmed, in lower case.
pub(crate) fn normalize(state: &str) -> String {
    state.trim().to_lowercase()
}

from_row! { Comment: author, body, created_at }

pub(crate) async fn comments(
    database: &impl Database,
    number: u64,
    limit: u32,
) -> Result<Vec<Comment>, StoreError> {
    const LATEST: &str = "SELECT author, body, created_at FROM
            (SELECT * FROM issue_comments WHERE issue = $1 ORDER BY id DESC LIMIT $2) latest
        ORDER BY id";
    database.all(LATEST, values![number, limit]).await
}

/// Returns the name of a tracker that was read.
pub(crate) fn tracker_name(found: Option<String>) -> Result<String, StoreError> {
    found.ok_or_else(|| StoreError::Unreadable { what: "a tracker without a name".into() })
}
