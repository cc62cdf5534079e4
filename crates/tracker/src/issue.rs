//! Issues, as every tracker is made to tell of them.

use std::fmt;

use carrel_domain::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tracker knows an issue by: stable, and of no meaning here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IssueId(pub String);

impl fmt::Display for IssueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An issue, as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// What the tracker knows it by.
    pub id: IssueId,
    /// What else a tracker needs to find it again. Holds no secret.
    pub native_ref: Option<Value>,
    /// What people know it by, such as `ABC-123`.
    pub identifier: String,
    /// What it is about, in a line.
    pub title: String,
    /// What it is about.
    pub description: Option<String>,
    /// How urgent it is; one is most urgent.
    pub priority: Option<i64>,
    /// Where it stands, as the tracker spells it.
    pub state: String,
    /// The branch that the tracker proposes.
    pub branch_name: Option<String>,
    /// Where people look at it.
    pub url: Option<String>,
    /// Whose it is.
    pub assignee_id: Option<String>,
    /// Its labels: trimmed, lower case, each once.
    pub labels: Vec<String>,
    /// What has to be done first.
    pub blocked_by: Vec<Blocker>,
    /// Whether the tracker's own rules let somebody work on it.
    pub dispatchable: bool,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Option<Timestamp>,
}

/// An issue that has to be done first, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// What the tracker knows it by.
    pub id: Option<String>,
    /// What people know it by.
    pub identifier: Option<String>,
    /// Where it stands.
    pub state: Option<String>,
}

impl Issue {
    /// Tells whether everything is there that nothing works without.
    pub fn is_well_formed(&self) -> bool {
        [&self.id.0, &self.identifier, &self.title, &self.state]
            .iter()
            .all(|text| !text.trim().is_empty())
    }

    /// Returns where it stands, in the spelling that states are compared in.
    pub fn normal_state(&self) -> String {
        normal(&self.state)
    }
}

/// Returns the spelling that states and labels are compared in.
pub fn normal(word: &str) -> String {
    word.trim().to_lowercase()
}
