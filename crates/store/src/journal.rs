//! The conductor's write-ahead journal.
//!
//! A conductor records what it is about to do before it does it: the state of each claimed issue (an
//! *entry*), its counters and budgets (the *ledger*), and each run of an agent. All records of one decision
//! are appended in one transaction and are durable when `append` returns. After a crash the next conductor
//! reads the entries, finds the runs whose end was never recorded, cleans up after them, and continues.
//!
//! The journal of a tracker is one *scope*. Entries and ledgers are opaque JSON that belongs to the
//! conductor. For example, starting an agent appends, in one call, the new state of the issue and the run,
//! and only then is the process spawned:
//!
//! ```text
//! append [Save { issue, entry }, RunStarted { run: 7, .. }]   durable
//! spawn the agent                                             a crash here leaves run 7 open
//! append [RunSession { run: 7, .. }]
//! append [RunEnded { run: 7, .. }, Save { issue, entry }]
//! ```

use async_trait::async_trait;
use carrel_domain::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::error::StoreError;
use crate::tenure::{Tenure, TenureOutcome};

/// The write-ahead journals of conductors, one for each scope. Writes need the latest [`Tenure`] of the
/// scope.
#[async_trait]
pub trait Journal: std::fmt::Debug + Send + Sync + 'static {
    /// Acquires the tenure of a scope. `holder` describes this conductor to others.
    async fn acquire(
        &self,
        scope: &str,
        holder: &str,
        now: Timestamp,
    ) -> Result<TenureOutcome, StoreError>;

    /// Appends records in order, all of them or none. Repeating a call after a lost reply is safe.
    async fn append(
        &self,
        tenure: &Tenure,
        records: Vec<JournalRecord>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns the current entries with the ids of their issues, ordered by id.
    async fn entries(&self, scope: &str) -> Result<Vec<(String, Value)>, StoreError>;

    /// Returns the current ledger; `None` if there was never one.
    async fn ledger(&self, scope: &str) -> Result<Option<Value>, StoreError>;

    /// Returns the greatest number of a run of the scope. The run of that number is never deleted, so that
    /// numbers are not given twice.
    async fn last_run(&self, scope: &str) -> Result<Option<u64>, StoreError>;

    /// Returns runs, those with the greatest numbers first.
    async fn runs(&self, scope: &str, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError>;

    /// Deletes runs that ended before `before`, but never the one with the greatest number. Returns how
    /// many.
    async fn delete_runs(&self, tenure: &Tenure, before: Timestamp) -> Result<u64, StoreError>;
}

/// One record of the journal.
#[derive(Clone, Debug, PartialEq)]
pub enum JournalRecord {
    /// Replaces the entry of an issue.
    Save {
        /// The id of the issue.
        issue: String,
        /// The state of the issue, any JSON.
        entry: Value,
    },
    /// Deletes the entry of an issue, if there is one.
    Delete {
        /// The id of the issue.
        issue: String,
    },
    /// Replaces the ledger of the scope as a whole.
    Ledger(Value),
    /// Adds a run. Fails if its number belongs to another run, or to one that has ended.
    RunStarted(NewRun),
    /// Sets the workspace of a run.
    RunWorkspace {
        /// The number of the run.
        run: u64,
        /// The path of the directory.
        workspace: String,
    },
    /// Sets the agent session of a run.
    RunSession {
        /// The number of the run.
        run: u64,
        /// The agent's id of the session.
        session: String,
        /// The agent's id of the conversation, which a later run can resume.
        thread: String,
    },
    /// Ends a run, none of whose processes is left. A run that has ended is not changed.
    RunEnded {
        /// The number of the run.
        run: u64,
        /// A one-word outcome.
        outcome: String,
        /// The error message of a run that failed.
        error: Option<String>,
    },
}

/// A run to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// The number, greater than those of all runs of the scope before it.
    pub run: u64,
    /// The id of the issue.
    pub issue: String,
    /// The identifier that people know the issue by, such as `ENG-12`.
    pub identifier: String,
    /// The number of the attempt at the issue.
    pub attempt: u32,
    /// The path of the transcript, if one is written.
    pub transcript: Option<String>,
}

/// A run as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// The number, unique in the scope.
    pub run: u64,
    /// The id of the issue.
    pub issue: String,
    /// The identifier that people know the issue by.
    pub identifier: String,
    /// The number of the attempt at the issue.
    pub attempt: u32,
    /// The time at which the run was added.
    pub started_at: Timestamp,
    /// The time at which its end was recorded; `None` while it is open.
    pub ended_at: Option<Timestamp>,
    /// A one-word outcome; present exactly if the run has ended.
    pub outcome: Option<String>,
    /// The error message of a run that failed.
    pub error: Option<String>,
    /// The path of the workspace.
    pub workspace: Option<String>,
    /// The agent's id of the conversation.
    pub thread: Option<String>,
    /// The agent's id of the latest session.
    pub session: Option<String>,
    /// The path of the transcript.
    pub transcript: Option<String>,
}

/// A selection of runs. Absent fields select all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The id of an issue.
    pub issue: Option<String>,
    /// The identifier of an issue.
    pub identifier: Option<String>,
    /// Selects runs whose end was not recorded.
    pub open: bool,
    /// The most runs to return.
    pub limit: Option<u32>,
}
