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

use crate::database::{Database, Statement};
use crate::error::StoreError;
use crate::tenure::{Tenure, TenureOutcome};
use crate::value::{from_row, values};

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

from_row! { RunRecord: run, issue, identifier, attempt, started_at, ended_at, outcome, error,
workspace, thread, session, transcript }

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

#[async_trait]
impl<D: Database> Journal for D {
    async fn acquire(
        &self,
        scope: &str,
        holder: &str,
        now: Timestamp,
    ) -> Result<TenureOutcome, StoreError> {
        self.acquire_tenure(scope, holder, now).await
    }

    async fn append(
        &self,
        tenure: &Tenure,
        records: Vec<JournalRecord>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let records = records.into_iter();
        let statements = records.flat_map(|record| record.statements(tenure.scope(), now));
        self.write_fenced(tenure, statements.collect()).await?;
        Ok(())
    }

    async fn entries(&self, scope: &str) -> Result<Vec<(String, Value)>, StoreError> {
        const ENTRIES: &str = "SELECT issue, entry FROM conductor_entries WHERE scope = $1";
        let mut entries: Vec<(String, Value)> = self.all(ENTRIES, values![scope]).await?;
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(entries)
    }

    async fn ledger(&self, scope: &str) -> Result<Option<Value>, StoreError> {
        const LEDGER: &str = "SELECT ledger FROM conductor_ledgers WHERE scope = $1";
        self.first(LEDGER, values![scope]).await
    }

    async fn last_run(&self, scope: &str) -> Result<Option<u64>, StoreError> {
        const LAST: &str =
            "SELECT run FROM conductor_runs WHERE scope = $1 ORDER BY run DESC LIMIT 1";
        self.first(LAST, values![scope]).await
    }

    async fn runs(&self, scope: &str, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        const RUNS: &str = "SELECT run, issue, identifier, attempt, started_at, ended_at, outcome,
                error, workspace, thread, session, transcript
            FROM conductor_runs
            WHERE scope = $1 AND (issue = $2 OR $2 IS NULL) AND (identifier = $3 OR $3 IS NULL)
                AND (NOT $4 OR ended_at IS NULL)
            ORDER BY run DESC LIMIT $5";
        let RunFilter { issue, identifier, open, limit } = filter;
        let limit = limit.map_or(i64::MAX, i64::from);
        self.all(RUNS, values![scope, issue, identifier, open, limit]).await
    }

    async fn delete_runs(&self, tenure: &Tenure, before: Timestamp) -> Result<u64, StoreError> {
        const DELETE: &str = "DELETE FROM conductor_runs WHERE scope = $1 AND ended_at < $2
            AND run < (SELECT max(run) FROM conductor_runs WHERE scope = $1) RETURNING 1";
        let delete = Statement::new(DELETE, values![tenure.scope(), before]);
        let deleted = self.write_fenced(tenure, vec![delete]).await?;
        Ok(deleted.iter().map(|rows| rows.len() as u64).sum())
    }
}

impl JournalRecord {
    /// Returns the statements that write the record. Repeating them changes nothing.
    fn statements(self, scope: &str, now: Timestamp) -> Vec<Statement> {
        vec![match self {
            Self::Save { issue, entry } => Statement::new(
                "INSERT INTO conductor_entries (scope, issue, entry, updated_at)
                 VALUES ($1, $2, $3, $4) ON CONFLICT (scope, issue) DO UPDATE
                 SET entry = excluded.entry, updated_at = excluded.updated_at",
                values![scope, issue, &entry, now],
            ),
            Self::Delete { issue } => Statement::new(
                "DELETE FROM conductor_entries WHERE scope = $1 AND issue = $2",
                values![scope, issue],
            ),
            Self::Ledger(ledger) => Statement::new(
                "INSERT INTO conductor_ledgers (scope, ledger) VALUES ($1, $2)
                 ON CONFLICT (scope) DO UPDATE SET ledger = excluded.ledger",
                values![scope, &ledger],
            ),
            Self::RunStarted(new) => return new.statements(scope, now),
            Self::RunWorkspace { run, workspace } => Statement::new(
                "UPDATE conductor_runs SET workspace = $3 WHERE scope = $1 AND run = $2",
                values![scope, run, workspace],
            ),
            Self::RunSession { run, session, thread } => Statement::new(
                "UPDATE conductor_runs SET session = $3, thread = $4
                 WHERE scope = $1 AND run = $2",
                values![scope, run, session, thread],
            ),
            Self::RunEnded { run, outcome, error } => Statement::new(
                "UPDATE conductor_runs SET ended_at = $3, outcome = $4, error = $5
                 WHERE scope = $1 AND run = $2 AND ended_at IS NULL",
                values![scope, run, now, outcome, error],
            ),
        }]
    }
}

impl NewRun {
    /// Adds the run, and fails unless it is now there and open. Repeating it while the run is open changes
    /// nothing.
    fn statements(self, scope: &str, now: Timestamp) -> Vec<Statement> {
        let Self { run, issue, identifier, attempt, transcript } = self;
        let add = Statement::new(
            "INSERT INTO conductor_runs
                 (scope, run, issue, identifier, attempt, started_at, transcript)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (scope, run) DO NOTHING",
            values![scope, run, &issue, identifier, attempt, now, transcript],
        );
        let is_open = Statement::new(
            "SELECT 1 FROM conductor_runs
             WHERE scope = $1 AND run = $2 AND issue = $3 AND ended_at IS NULL",
            values![scope, run, issue],
        );
        vec![add, is_open.required(format!("run {run} exists already"))]
    }
}
