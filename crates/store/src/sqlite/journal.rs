//! The conductor's journal in SQLite. One append is one operation of the writer, so that its records are
//! committed or rolled back together, in one transaction with the check of the tenure.

use async_trait::async_trait;
use carrel_domain::Timestamp;
use rusqlite::{Connection, Row, ToSql, params};
use serde_json::Value;

use super::{Sqlite, rows};
use crate::error::StoreError;
use crate::journal::{Journal, JournalRecord, NewRun, RunFilter, RunRecord};
use crate::lifecycle::signed;
use crate::tenure::{Tenure, TenureOutcome};

#[async_trait]
impl Journal for Sqlite {
    /// Always succeeds: the lock of the data directory excludes other conductors.
    async fn acquire(
        &self,
        scope: &str,
        holder: &str,
        now: Timestamp,
    ) -> Result<TenureOutcome, StoreError> {
        let (scope, holder) = (scope.to_owned(), holder.to_owned());
        let acquire = move |connection: &_| acquire(connection, &scope, &holder, now);
        self.writer.write(acquire).await
    }

    async fn append(
        &self,
        tenure: &Tenure,
        records: Vec<JournalRecord>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let tenure = tenure.clone();
        let write = move |connection: &_| {
            check(connection, &tenure)?;
            records.iter().try_for_each(|record| write(connection, tenure.scope(), record, now))
        };
        self.writer.write(write).await
    }

    async fn entries(&self, scope: &str) -> Result<Vec<(String, Value)>, StoreError> {
        let scope = scope.to_owned();
        self.readers.read(move |connection| entries(connection, &scope)).await
    }

    async fn ledger(&self, scope: &str) -> Result<Option<Value>, StoreError> {
        let scope = scope.to_owned();
        let read = move |connection: &Connection| {
            let mut select = connection
                .prepare_cached("SELECT ledger FROM conductor_ledgers WHERE scope = ?")?;
            let mut found = select.query([scope])?;
            Ok(found.next()?.map(|row| rows::json(row, 0)).transpose()?.flatten())
        };
        self.readers.read(read).await
    }

    async fn last_run(&self, scope: &str) -> Result<Option<u64>, StoreError> {
        let scope = scope.to_owned();
        let read = move |connection: &Connection| {
            let last: Option<i64> = connection
                .prepare_cached("SELECT max(run) FROM conductor_runs WHERE scope = ?")?
                .query_row([scope], |row| row.get(0))?;
            Ok(last.and_then(|last| u64::try_from(last).ok()))
        };
        self.readers.read(read).await
    }

    async fn runs(&self, scope: &str, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        let scope = scope.to_owned();
        self.readers.read(move |connection| runs(connection, &scope, &filter)).await
    }

    async fn delete_runs(&self, tenure: &Tenure, before: Timestamp) -> Result<u64, StoreError> {
        let tenure = tenure.clone();
        let delete = move |connection: &Connection| {
            check(connection, &tenure)?;
            let deleted = connection
                .prepare_cached(
                    "DELETE FROM conductor_runs WHERE scope = ?1 AND ended_at < ?2
                     AND run < (SELECT max(run) FROM conductor_runs WHERE scope = ?1)",
                )?
                .execute(params![tenure.scope(), before.as_millis()])?;
            Ok(deleted as u64)
        };
        self.writer.write(delete).await
    }
}

fn acquire(
    connection: &Connection,
    scope: &str,
    holder: &str,
    now: Timestamp,
) -> Result<TenureOutcome, StoreError> {
    let mut upsert = connection.prepare_cached(
        "INSERT INTO conductor_tenures (scope, number, holder, taken_at) VALUES (?, 1, ?, ?)
         ON CONFLICT (scope) DO UPDATE SET number = number + 1, holder = excluded.holder,
             taken_at = excluded.taken_at
         RETURNING number",
    )?;
    let number =
        upsert.query_row(params![scope, holder, now.as_millis()], |row| rows::unsigned(row, 0))?;
    Ok(TenureOutcome::Acquired(Tenure::permanent(scope, number)))
}

/// Fails unless the tenure is the latest of its scope.
fn check(connection: &Connection, tenure: &Tenure) -> Result<(), StoreError> {
    let mut select = connection
        .prepare_cached("SELECT number, holder FROM conductor_tenures WHERE scope = ?")?;
    let (number, holder): (u64, String) =
        select.query_row([tenure.scope()], |row| Ok((rows::unsigned(row, 0)?, row.get(1)?)))?;
    tenure.check(number, holder)
}

fn write(
    connection: &Connection,
    scope: &str,
    record: &JournalRecord,
    now: Timestamp,
) -> Result<(), StoreError> {
    let at = now.as_millis();
    let execute = |statement: &str, values: &[&dyn ToSql]| {
        connection.prepare_cached(statement)?.execute(values)
    };
    match record {
        JournalRecord::Save { issue, entry } => execute(
            "INSERT OR REPLACE INTO conductor_entries (scope, issue, entry, updated_at)
             VALUES (?, ?, ?, ?)",
            params![scope, issue, entry.to_string(), at],
        ),
        JournalRecord::Delete { issue } => execute(
            "DELETE FROM conductor_entries WHERE scope = ? AND issue = ?",
            params![scope, issue],
        ),
        JournalRecord::Ledger(ledger) => execute(
            "INSERT OR REPLACE INTO conductor_ledgers (scope, ledger) VALUES (?, ?)",
            params![scope, ledger.to_string()],
        ),
        JournalRecord::RunStarted(new) => return add_run(connection, scope, new, at),
        JournalRecord::RunWorkspace { run, workspace } => execute(
            "UPDATE conductor_runs SET workspace = ? WHERE scope = ? AND run = ?",
            params![workspace, scope, signed(*run)],
        ),
        JournalRecord::RunSession { run, session, thread } => execute(
            "UPDATE conductor_runs SET session = ?, thread = ? WHERE scope = ? AND run = ?",
            params![session, thread, scope, signed(*run)],
        ),
        JournalRecord::RunEnded { run, outcome, error } => execute(
            "UPDATE conductor_runs SET ended_at = ?, outcome = ?, error = ?
             WHERE scope = ? AND run = ? AND ended_at IS NULL",
            params![at, outcome, error, scope, signed(*run)],
        ),
    }?;
    Ok(())
}

/// Adds a run. Repeating it while the run is open changes nothing.
fn add_run(connection: &Connection, scope: &str, new: &NewRun, at: i64) -> Result<(), StoreError> {
    let NewRun { run, issue, identifier, attempt, transcript } = new;
    let added = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO conductor_runs
                 (scope, run, issue, identifier, attempt, started_at, transcript)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![scope, signed(*run), issue, identifier, attempt, at, transcript])?;
    let is_same = || {
        connection
            .prepare_cached(
                "SELECT 1 FROM conductor_runs
                 WHERE scope = ? AND run = ? AND issue = ? AND ended_at IS NULL",
            )?
            .exists(params![scope, signed(*run), issue])
    };
    if added == 1 || is_same()? {
        return Ok(());
    }
    Err(StoreError::Failed(format!("run {run} exists already").into()))
}

fn entries(connection: &Connection, scope: &str) -> Result<Vec<(String, Value)>, StoreError> {
    let mut select = connection.prepare_cached(
        "SELECT issue, entry FROM conductor_entries WHERE scope = ? ORDER BY issue",
    )?;
    let found = select
        .query_map([scope], |row| Ok((row.get(0)?, rows::json(row, 1)?.unwrap_or_default())))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn runs(
    connection: &Connection,
    scope: &str,
    filter: &RunFilter,
) -> Result<Vec<RunRecord>, StoreError> {
    let mut select = connection.prepare_cached(
        "SELECT run, issue, identifier, attempt, started_at, ended_at, outcome, error, workspace,
                thread, session, transcript
         FROM conductor_runs
         WHERE scope = ?1 AND (?2 IS NULL OR issue = ?2) AND (?3 IS NULL OR identifier = ?3)
           AND (NOT ?4 OR ended_at IS NULL)
         ORDER BY run DESC LIMIT ?5",
    )?;
    let limit = filter.limit.map_or(-1, i64::from);
    let RunFilter { issue, identifier, open, .. } = filter;
    let found = select.query_map(params![scope, issue, identifier, open, limit], run)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn run(row: &Row<'_>) -> rusqlite::Result<RunRecord> {
    Ok(RunRecord {
        run: rows::unsigned(row, 0)?,
        issue: row.get(1)?,
        identifier: row.get(2)?,
        attempt: row.get(3)?,
        started_at: Timestamp::from_millis(row.get(4)?),
        ended_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millis),
        outcome: row.get(6)?,
        error: row.get(7)?,
        workspace: row.get(8)?,
        thread: row.get(9)?,
        session: row.get(10)?,
        transcript: row.get(11)?,
    })
}
