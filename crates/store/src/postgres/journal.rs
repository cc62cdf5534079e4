//! The conductor's journal in PostgreSQL. Each write is a transaction that begins with the check of the tenure,
//! whose share lock keeps a successor from taking over before the commit. The lock of the queue is not taken.

use async_trait::async_trait;
use carrel_domain::Timestamp;
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::PgError;
use super::retry::{in_transaction, with_session};
use super::rows::{self, optional, text};
use super::session::PgSession;
use super::{Postgres, tenure};
use crate::error::StoreError;
use crate::journal::{Journal, JournalRecord, NewRun, RunFilter, RunRecord};
use crate::lifecycle::signed;
use crate::tenure::{Tenure, TenureOutcome};

#[async_trait]
impl Journal for Postgres {
    async fn acquire(
        &self,
        scope: &str,
        holder: &str,
        now: Timestamp,
    ) -> Result<TenureOutcome, StoreError> {
        tenure::acquire(self.server(), scope, holder, now).await
    }

    async fn append(
        &self,
        tenure: &Tenure,
        records: Vec<JournalRecord>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        in_transaction!(self, |session| {
            tenure::check(session, tenure).await?;
            for record in &records {
                write(session, tenure.scope(), record, now).await?;
            }
        })
    }

    async fn entries(&self, scope: &str) -> Result<Vec<(String, Value)>, StoreError> {
        const ENTRIES: &str = r#"SELECT issue, entry FROM conductor_entries WHERE scope = $1
            ORDER BY issue COLLATE "C""#;
        with_session!(self, |session| {
            let found = session.query(ENTRIES, &[&text(scope)]).await?;
            found.iter().map(entry).collect::<Result<_, _>>()?
        })
    }

    async fn ledger(&self, scope: &str) -> Result<Option<Value>, StoreError> {
        const LEDGER: &str = "SELECT ledger FROM conductor_ledgers WHERE scope = $1";
        with_session!(self, |session| {
            let found = session.first(LEDGER, &[&text(scope)]).await?;
            found.map_or(Ok(None), |row| rows::json(&row, 0))?
        })
    }

    async fn last_run(&self, scope: &str) -> Result<Option<u64>, StoreError> {
        const LAST: &str =
            "SELECT run FROM conductor_runs WHERE scope = $1 ORDER BY run DESC LIMIT 1";
        with_session!(self, |session| {
            let found = session.first(LAST, &[&text(scope)]).await?;
            found.map(|row| rows::unsigned(&row, 0)).transpose()?
        })
    }

    async fn runs(&self, scope: &str, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        with_session!(self, |session| runs(session, scope, &filter).await?)
    }

    async fn delete_runs(&self, tenure: &Tenure, before: Timestamp) -> Result<u64, StoreError> {
        const DELETE: &str = "DELETE FROM conductor_runs WHERE scope = $1 AND ended_at < $2
            AND run < (SELECT max(run) FROM conductor_runs WHERE scope = $1)";
        in_transaction!(self, |session| {
            tenure::check(session, tenure).await?;
            session.execute(DELETE, &[&text(tenure.scope()), &before.as_millis()]).await?
        })
    }
}

async fn write(
    session: &mut PgSession,
    scope: &str,
    record: &JournalRecord,
    now: Timestamp,
) -> Result<(), PgError> {
    let (scope, at) = (text(scope), now.as_millis());
    match record {
        JournalRecord::Save { issue, entry } => {
            let save = "INSERT INTO conductor_entries (scope, issue, entry, updated_at)
                VALUES ($1, $2, $3, $4) ON CONFLICT (scope, issue) DO UPDATE
                SET entry = excluded.entry, updated_at = excluded.updated_at";
            session.execute(save, &[&scope, &text(issue), &entry.to_string(), &at]).await
        }
        JournalRecord::Delete { issue } => {
            let delete = "DELETE FROM conductor_entries WHERE scope = $1 AND issue = $2";
            session.execute(delete, &[&scope, &text(issue)]).await
        }
        JournalRecord::Ledger(ledger) => {
            let save = "INSERT INTO conductor_ledgers (scope, ledger) VALUES ($1, $2)
                ON CONFLICT (scope) DO UPDATE SET ledger = excluded.ledger";
            session.execute(save, &[&scope, &ledger.to_string()]).await
        }
        JournalRecord::RunStarted(new) => return add_run(session, &scope, new, at).await,
        JournalRecord::RunWorkspace { run, workspace } => {
            let update = "UPDATE conductor_runs SET workspace = $3 WHERE scope = $1 AND run = $2";
            session.execute(update, &[&scope, &signed(*run), &text(workspace)]).await
        }
        JournalRecord::RunSession { run, session: name, thread } => {
            let update = "UPDATE conductor_runs SET session = $3, thread = $4
                WHERE scope = $1 AND run = $2";
            let values: &[&(dyn ToSql + Sync)] =
                &[&scope, &signed(*run), &text(name), &text(thread)];
            session.execute(update, values).await
        }
        JournalRecord::RunEnded { run, outcome, error } => {
            let update = "UPDATE conductor_runs SET ended_at = $3, outcome = $4, error = $5
                WHERE scope = $1 AND run = $2 AND ended_at IS NULL";
            let error = optional(error.as_deref());
            session.execute(update, &[&scope, &signed(*run), &at, &text(outcome), &error]).await
        }
    }?;
    Ok(())
}

/// Adds a run. Repeating it while the run is open changes nothing.
async fn add_run(
    session: &mut PgSession,
    scope: &str,
    new: &NewRun,
    at: i64,
) -> Result<(), PgError> {
    const INSERT: &str = "INSERT INTO conductor_runs
            (scope, run, issue, identifier, attempt, started_at, transcript)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (scope, run) DO NOTHING";
    const SAME: &str = "SELECT FROM conductor_runs
        WHERE scope = $1 AND run = $2 AND issue = $3 AND ended_at IS NULL";
    let run = signed(new.run);
    let issue = text(&new.issue);
    let identifier = text(&new.identifier);
    let attempt = i64::from(new.attempt);
    let transcript = optional(new.transcript.as_deref());
    let values: &[&(dyn ToSql + Sync)] =
        &[&scope, &run, &issue, &identifier, &attempt, &at, &transcript];
    if session.execute(INSERT, values).await? == 1
        || session.first(SAME, &[&scope, &run, &issue]).await?.is_some()
    {
        return Ok(());
    }
    Err(StoreError::Failed(format!("run {run} exists already").into()).into())
}

fn entry(row: &Row) -> Result<(String, Value), PgError> {
    Ok((rows::get(row, 0)?, rows::json(row, 1)?.unwrap_or_default()))
}

async fn runs(
    session: &mut PgSession,
    scope: &str,
    filter: &RunFilter,
) -> Result<Vec<RunRecord>, PgError> {
    const RUNS: &str =
        "SELECT run, issue, identifier, attempt, started_at, ended_at, outcome, error,
            workspace, thread, session, transcript
        FROM conductor_runs
        WHERE scope = $1 AND ($2::text IS NULL OR issue = $2) AND (NOT $3 OR ended_at IS NULL)
            AND ($5::text IS NULL OR identifier = $5)
        ORDER BY run DESC LIMIT $4";
    let (issue, limit) = (optional(filter.issue.as_deref()), filter.limit.map(i64::from));
    let identifier = optional(filter.identifier.as_deref());
    let parameters: [&(dyn ToSql + Sync); 5] =
        [&text(scope), &issue, &filter.open, &limit, &identifier];
    let found = session.query(RUNS, &parameters).await?;
    found.iter().map(run).collect()
}

fn run(row: &Row) -> Result<RunRecord, PgError> {
    Ok(RunRecord {
        run: rows::unsigned(row, 0)?,
        issue: rows::get(row, 1)?,
        identifier: rows::get(row, 2)?,
        attempt: u32::try_from(rows::unsigned(row, 3)?).unwrap_or(u32::MAX),
        started_at: rows::time(row, 4)?,
        ended_at: rows::get::<Option<i64>>(row, 5)?.map(Timestamp::from_millis),
        outcome: rows::get(row, 6)?,
        error: rows::get(row, 7)?,
        workspace: rows::get(row, 8)?,
        thread: rows::get(row, 9)?,
        session: rows::get(row, 10)?,
        transcript: rows::get(row, 11)?,
    })
}
