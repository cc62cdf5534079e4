//! The embedded tracker: issues in Carrel's own database, without an account.
//!
//! It implements [`Tracker`] for the conductor and, beyond that, the operations of `carrel issue`: add, list,
//! show, change, comment. Both sides use the same store, so an issue that a person adds is listed by the
//! next poll. An issue is dispatchable once all its blockers are in a terminal state. The agent's tools
//! show, comment and move its own issue only.

mod agent_tools;
mod validation;

use std::collections::BTreeMap;
use std::sync::Arc;

use carrel_domain::{Clock, Code, Coded, message_of};
use carrel_store::{
    Comment, IssueChange, IssueFilter, IssueOutcome, IssueStore, NewComment, NewIssue, StoreError,
    StoredIssue,
};
use serde_json::{Value, json};

pub use validation::MAX_TEXT_BYTES;

use crate::{
    Blocker, Issue, IssueId, Tool, ToolReply, Tracker, TrackerError, TrackerErrorKind, normal,
};

/// The prefix of issue identifiers.
const PREFIX: &str = "CAR-";

/// Comments that are returned with an issue.
const MAX_COMMENTS: u32 = 100;

/// The failure of an operation on the embedded tracker.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum LocalError {
    #[error("there is no issue CAR-{number}")]
    Unknown { number: u64 },
    #[error("{text:?} names no issue; write an identifier such as CAR-1")]
    NotAnIdentifier { text: String },
    #[error("{what} {rule}")]
    Refused {
        what: &'static str,
        /// The violated rule, with a valid alternative.
        rule: String,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Coded for LocalError {
    fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } => Code::IssueNotFound,
            Self::NotAnIdentifier { .. } | Self::Refused { .. } => Code::InvalidArguments,
            Self::Store(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Unknown { number } => json!({ "issue": format!("CAR-{number}") }),
            Self::NotAnIdentifier { text } => json!({ "issue": text }),
            Self::Refused { what, .. } => json!({ "what": what }),
            Self::Store(error) => error.detail(),
        }
    }
}

/// The embedded tracker. Its issues are numbered `CAR-1`, `CAR-2` … per database.
#[derive(Clone, Debug)]
pub struct LocalTracker {
    issues: Arc<dyn IssueStore>,
    clock: Arc<dyn Clock>,
    /// Terminal states, in which an issue blocks no other.
    terminal: Vec<String>,
}

impl LocalTracker {
    /// Creates a tracker over a store. A blocker is resolved in one of the `terminal` states.
    pub fn new(issues: Arc<dyn IssueStore>, clock: Arc<dyn Clock>, terminal: &[String]) -> Self {
        let terminal = terminal.iter().map(|state| normal(state)).collect();
        Self { issues, clock, terminal }
    }

    /// Adds an issue and returns it with its number. Fails for invalid values or unknown blockers.
    pub async fn add(&self, new: NewIssue) -> Result<Issue, LocalError> {
        let new = validation::checked(new)?;
        self.issue_of_outcome(self.issues.add_issue(new, self.clock.now()).await?)
    }

    /// Returns the issues in some states, compared without regard to case; all if none is named.
    pub async fn list(&self, states: &[String]) -> Result<Vec<Issue>, LocalError> {
        let states = (!states.is_empty()).then(|| states.to_vec());
        let found = self.issues.issues(IssueFilter { states, ..IssueFilter::default() }).await?;
        Ok(found.into_iter().map(|issue| self.issue(issue)).collect())
    }

    /// Returns an issue with its comments, at most 100.
    pub async fn find(&self, identifier: &str) -> Result<(Issue, Vec<Comment>), LocalError> {
        let number = number_of(identifier)?;
        let found = self.numbered(vec![number]).await?.remove(&number);
        let issue = found.ok_or(LocalError::Unknown { number })?;
        Ok((issue, self.issues.comments(number, MAX_COMMENTS).await?))
    }

    /// Changes the state, labels or blockers of an issue in one transaction, and returns the result.
    pub async fn change(&self, identifier: &str, change: IssueChange) -> Result<Issue, LocalError> {
        let number = number_of(identifier)?;
        let change = validation::checked_change(number, change)?;
        self.issue_of_outcome(self.issues.change_issue(number, change, self.clock.now()).await?)
    }

    /// Adds a comment to an issue. The author is `agent` for agents, and a name for people.
    pub async fn comment(
        &self,
        identifier: &str,
        author: &str,
        body: &str,
    ) -> Result<Comment, LocalError> {
        let number = number_of(identifier)?;
        let body = validation::text("the comment", body)?;
        let comment = NewComment { author: author.to_owned(), body };
        let made = self.issues.comment(number, comment, self.clock.now()).await?;
        made.ok_or(LocalError::Unknown { number })
    }

    async fn numbered(&self, numbers: Vec<u64>) -> Result<BTreeMap<u64, Issue>, StoreError> {
        let filter = IssueFilter { numbers: Some(numbers), ..IssueFilter::default() };
        let found = self.issues.issues(filter).await?;
        Ok(found.into_iter().map(|issue| (issue.number, self.issue(issue))).collect())
    }

    fn issue_of_outcome(&self, response: IssueOutcome) -> Result<Issue, LocalError> {
        match response {
            IssueOutcome::Done(issue) => Ok(self.issue(issue)),
            IssueOutcome::Unknown(number) => Err(LocalError::Unknown { number }),
        }
    }

    fn issue(&self, stored: StoredIssue) -> Issue {
        let identifier = identifier_of(stored.number);
        let blocked_by: Vec<Blocker> = stored
            .blocked_by
            .into_iter()
            .map(|(number, state)| Blocker {
                id: Some(identifier_of(number)),
                identifier: Some(identifier_of(number)),
                state: Some(state),
            })
            .collect();
        Issue {
            id: IssueId(identifier.clone()),
            title: stored.title,
            description: stored.description,
            priority: stored.priority,
            state: stored.state,
            branch_name: Some(identifier.to_lowercase()),
            identifier,
            labels: stored.labels,
            dispatchable: blocked_by.iter().all(|blocker| blocker.is_resolved(&self.terminal)),
            blocked_by,
            created_at: Some(stored.created_at),
            updated_at: Some(stored.updated_at),
            ..Issue::default()
        }
    }
}

#[async_trait::async_trait]
impl Tracker for LocalTracker {
    async fn by_states(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        if states.is_empty() {
            return Ok(Vec::new());
        }
        self.list(states).await.map_err(|error| store_error(&error))
    }

    async fn by_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: Vec<u64> = ids.iter().filter_map(|id| number_of(&id.0).ok()).collect();
        let found = self.numbered(numbers.clone()).await;
        let mut found = found.map_err(|error| store_error(&error))?;
        Ok(numbers.iter().filter_map(|number| found.remove(number)).collect())
    }

    fn tools(&self) -> Vec<Tool> {
        agent_tools::all()
    }

    async fn call(&self, issue: &Issue, tool: &str, arguments: Value) -> ToolReply {
        self.use_tool(issue, tool, arguments).await
    }
}

fn store_error(error: &(impl std::error::Error + ?Sized)) -> TrackerError {
    TrackerError::new(TrackerErrorKind::Request, message_of(error))
}

fn identifier_of(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// Parses an identifier such as `CAR-12`, in either case. A number alone or 0 is invalid.
pub(crate) fn number_of(identifier: &str) -> Result<u64, LocalError> {
    let digits = identifier
        .trim()
        .split_at_checked(PREFIX.len())
        .filter(|(prefix, _)| prefix.eq_ignore_ascii_case(PREFIX))
        .map(|(_, digits)| digits)
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok()).filter(|number| *number > 0);
    number.ok_or_else(|| LocalError::NotAnIdentifier { text: identifier.to_owned() })
}

/// Parses several identifiers; the first invalid one is the error.
pub fn numbers_of(identifiers: &[String]) -> Result<Vec<u64>, LocalError> {
    identifiers.iter().map(|identifier| number_of(identifier)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_read_in_either_case() {
        for (text, number) in [("CAR-1", 1), ("car-12", 12), (" Car-3 ", 3)] {
            assert_eq!(number_of(text).ok(), Some(number), "{text}");
        }
        for text in ["", "1", "CAR-", "CAR-0", "CAR--1", "CAR-1x", "CAX-1", "CAR-+1", "ÄÄR-1"] {
            let error = number_of(text).unwrap_err().to_string();
            assert!(error.contains("CAR-1"), "{error}");
        }
    }
}
