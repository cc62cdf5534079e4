//! What the conductor remembers over restarts.

use async_trait::async_trait;
use carrel_domain::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::error::StoreError;
use crate::tenure::{Tenure, TenureOutcome};

/// What the conductor remembers of the issues of one tracker, which is its scope.
///
/// Everything that follows from one decision is noted at once, and is on the disk when that has been
/// answered. Whoever writes has a tenure, and a write by an earlier one is refused. What entries and
/// ledgers look like is the conductor's own business.
#[async_trait]
pub trait Journal: std::fmt::Debug + Send + Sync + 'static {
    /// Takes a scope for one conductor, which is known to others by `holder`.
    async fn acquire(
        &self,
        scope: &str,
        holder: &str,
        now: Timestamp,
    ) -> Result<TenureOutcome, StoreError>;

    /// Writes notes down, in their order: all of them or none.
    async fn append(
        &self,
        tenure: &Tenure,
        notes: Vec<JournalRecord>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns every entry with the id of its issue.
    async fn entries(&self, scope: &str) -> Result<Vec<(String, Value)>, StoreError>;

    /// Returns what is remembered beside the entries.
    async fn ledger(&self, scope: &str) -> Result<Option<Value>, StoreError>;

    /// Returns the greatest number that a run ever had.
    async fn last_run(&self, scope: &str) -> Result<Option<u64>, StoreError>;

    /// Returns runs, the latest first.
    async fn runs(&self, scope: &str, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError>;

    /// Forgets runs that ended before a time, but never the latest. Returns how many.
    async fn delete_runs(&self, tenure: &Tenure, before: Timestamp) -> Result<u64, StoreError>;
}

/// Something to be remembered.
#[derive(Clone, Debug, PartialEq)]
pub enum JournalRecord {
    /// An entry as it stands.
    Save {
        /// The issue.
        issue: String,
        /// The entry.
        entry: Value,
    },
    /// There is no entry any more.
    Delete {
        /// The issue.
        issue: String,
    },
    /// What is remembered beside the entries.
    Ledger(Value),
    /// A run begins. Its number was never given before.
    RunStarted(NewRun),
    /// A run has its workspace.
    RunWorkspace {
        /// The run.
        run: u64,
        /// Where it is.
        workspace: String,
    },
    /// A run has a session.
    RunSession {
        /// The run.
        run: u64,
        /// The session.
        session: String,
        /// The conversation.
        thread: String,
    },
    /// A run is over, and nothing of it is left.
    RunEnded {
        /// The run.
        run: u64,
        /// How it ended, in a word.
        outcome: String,
        /// What went wrong.
        error: Option<String>,
    },
}

/// A run that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// Its number.
    pub run: u64,
    /// The issue.
    pub issue: String,
    /// What people know the issue by.
    pub identifier: String,
    /// Which attempt it is.
    pub attempt: u32,
    /// The file that tells what happened in it.
    pub transcript: Option<String>,
}

/// A run, as it was noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// Its number.
    pub run: u64,
    /// The issue.
    pub issue: String,
    /// What people know the issue by.
    pub identifier: String,
    /// Which attempt it was.
    pub attempt: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; nothing if that was not noted.
    pub ended_at: Option<Timestamp>,
    /// How it ended, in a word.
    pub outcome: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// Where it was worked.
    pub workspace: Option<String>,
    /// The conversation.
    pub thread: Option<String>,
    /// The last session.
    pub session: Option<String>,
    /// The file that tells what happened in it.
    pub transcript: Option<String>,
}

/// Which runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Those of one issue.
    pub issue: Option<String>,
    /// Those of the issue that people know by this.
    pub identifier: Option<String>,
    /// Those whose end was not noted.
    pub open: bool,
    /// How many at most; all if nothing is said.
    pub limit: Option<u32>,
}
