//! The tracker that is built in.

use async_trait::async_trait;
use carrel_domain::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// The tracker that is built in.
///
/// An issue has a number that no other ever had. What has been answered is on the disk, and seen by
/// every process that uses the same store.
#[async_trait]
pub trait IssueStore: std::fmt::Debug + Send + Sync + 'static {
    /// Adds an issue.
    async fn add_issue(&self, issue: NewIssue, now: Timestamp) -> Result<IssueOutcome, StoreError>;

    /// Returns issues in the order of their numbers.
    async fn issues(&self, filter: IssueFilter) -> Result<Vec<StoredIssue>, StoreError>;

    /// Changes an issue.
    async fn change_issue(
        &self,
        number: u64,
        change: IssueChange,
        now: Timestamp,
    ) -> Result<IssueOutcome, StoreError>;

    /// Adds a comment. Returns nothing if there is no such issue.
    async fn comment(
        &self,
        number: u64,
        comment: NewComment,
        now: Timestamp,
    ) -> Result<Option<Comment>, StoreError>;

    /// Returns the last comments on an issue, the oldest first.
    async fn comments(&self, number: u64, limit: u32) -> Result<Vec<Comment>, StoreError>;

    /// Returns a name of this tracker that no other has.
    async fn tracker_name(&self) -> Result<String, StoreError>;
}

/// An issue that is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewIssue {
    /// What it is about, in a line.
    pub title: String,
    /// What it is about.
    pub description: Option<String>,
    /// Where it stands.
    pub state: String,
    /// How urgent it is.
    pub priority: Option<i64>,
    /// Its labels.
    pub labels: Vec<String>,
    /// The numbers of what has to be done first.
    pub blocked_by: Vec<u64>,
}

/// An issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredIssue {
    /// Its number.
    pub number: u64,
    /// What it is about, in a line.
    pub title: String,
    /// What it is about.
    pub description: Option<String>,
    /// Where it stands.
    pub state: String,
    /// How urgent it is.
    pub priority: Option<i64>,
    /// Its labels.
    pub labels: Vec<String>,
    /// What has to be done first: numbers, and where those issues stand.
    pub blocked_by: Vec<(u64, String)>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What is to be different about an issue. What is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueChange {
    /// Where it stands.
    pub state: Option<String>,
    /// Labels that it gets.
    pub add_labels: Vec<String>,
    /// Labels that it loses.
    pub remove_labels: Vec<String>,
    /// What has to be done first.
    pub add_blockers: Vec<u64>,
    /// What has not to be done first any more.
    pub remove_blockers: Vec<u64>,
}

impl IssueChange {
    /// Returns the labels of an issue after the change.
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

/// What came of writing an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IssueOutcome {
    /// The issue as it is now.
    Done(StoredIssue),
    /// There is no issue with this number.
    Unknown(u64),
}

/// Which issues. What is absent is no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueFilter {
    /// Those in one of these states, in whatever spelling.
    pub states: Option<Vec<String>>,
    /// Those with these numbers.
    pub numbers: Option<Vec<u64>>,
    /// How many at most.
    pub limit: Option<u32>,
}

/// A comment that is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewComment {
    /// Whose it is.
    pub author: String,
    /// What it says.
    pub body: String,
}

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// Whose it is.
    pub author: String,
    /// What it says.
    pub body: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Returns the spelling that states are compared in.
pub(crate) fn normal(state: &str) -> String {
    state.trim().to_lowercase()
}
