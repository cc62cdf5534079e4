//! The embedded tracker in SQLite. `carrel issue` may write the file beside a running server, which is why
//! numbers come from the database (`AUTOINCREMENT`) and never from memory.

use async_trait::async_trait;
use carrel_domain::Timestamp;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use serde_json::json;

use super::{Sqlite, rows};
use crate::error::StoreError;
use crate::issues::{
    Comment, IssueChange, IssueFilter, IssueOutcome, IssueStore, NewComment, NewIssue, StoredIssue,
    normalize,
};
use crate::lifecycle::signed;

#[async_trait]
impl IssueStore for Sqlite {
    async fn add_issue(&self, issue: NewIssue, now: Timestamp) -> Result<IssueOutcome, StoreError> {
        self.writer.write(move |connection| add(connection, &issue, now)).await
    }

    async fn issues(&self, filter: IssueFilter) -> Result<Vec<StoredIssue>, StoreError> {
        self.readers.read(move |connection| list(connection, &filter)).await
    }

    async fn change_issue(
        &self,
        number: u64,
        change: IssueChange,
        now: Timestamp,
    ) -> Result<IssueOutcome, StoreError> {
        self.writer.write(move |connection| change_issue(connection, number, &change, now)).await
    }

    async fn comment(
        &self,
        number: u64,
        comment: NewComment,
        now: Timestamp,
    ) -> Result<Option<Comment>, StoreError> {
        self.writer.write(move |connection| add_comment(connection, number, comment, now)).await
    }

    async fn comments(&self, number: u64, limit: u32) -> Result<Vec<Comment>, StoreError> {
        self.readers.read(move |connection| comments(connection, number, limit)).await
    }

    async fn tracker_name(&self) -> Result<String, StoreError> {
        let read = |connection: &Connection| {
            Ok(connection.query_row("SELECT name FROM tracker_name", [], |row| row.get(0))?)
        };
        self.readers.read(read).await
    }
}

fn add(
    connection: &Connection,
    issue: &NewIssue,
    now: Timestamp,
) -> Result<IssueOutcome, StoreError> {
    if let Some(unknown) = first_unknown(connection, &issue.blocked_by)? {
        return Ok(IssueOutcome::Unknown(unknown));
    }
    connection
        .prepare_cached(
            "INSERT INTO issues
                 (title, description, state, normal_state, priority, labels, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        )?
        .execute(params![
            issue.title,
            issue.description,
            issue.state,
            normalize(&issue.state),
            issue.priority,
            json!(issue.labels).to_string(),
            now.as_millis()
        ])?;
    let number = u64::try_from(connection.last_insert_rowid()).unwrap_or_default();
    add_blockers(connection, number, &issue.blocked_by)?;
    outcome(connection, number)
}

fn change_issue(
    connection: &Connection,
    number: u64,
    change: &IssueChange,
    now: Timestamp,
) -> Result<IssueOutcome, StoreError> {
    let IssueOutcome::Done(issue) = outcome(connection, number)? else {
        return Ok(IssueOutcome::Unknown(number));
    };
    if let Some(unknown) = first_unknown(connection, &change.add_blockers)? {
        return Ok(IssueOutcome::Unknown(unknown));
    }
    let state = change.state.as_ref().unwrap_or(&issue.state);
    let labels = change.labels(&issue.labels);
    connection
        .prepare_cached(
            "UPDATE issues SET state = ?, normal_state = ?, labels = ?, updated_at = ?
             WHERE number = ?",
        )?
        .execute(params![
            state,
            normalize(state),
            json!(labels).to_string(),
            now.as_millis(),
            signed(number)
        ])?;
    for blocker in &change.remove_blockers {
        connection
            .prepare_cached("DELETE FROM issue_blockers WHERE issue = ? AND blocker = ?")?
            .execute([signed(number), signed(*blocker)])?;
    }
    add_blockers(connection, number, &change.add_blockers)?;
    outcome(connection, number)
}

fn add_blockers(connection: &Connection, number: u64, blockers: &[u64]) -> Result<(), StoreError> {
    for blocker in blockers {
        connection
            .prepare_cached("INSERT OR IGNORE INTO issue_blockers (issue, blocker) VALUES (?, ?)")?
            .execute([signed(number), signed(*blocker)])?;
    }
    Ok(())
}

fn first_unknown(connection: &Connection, numbers: &[u64]) -> Result<Option<u64>, StoreError> {
    for number in numbers {
        if find(connection, *number)?.is_none() {
            return Ok(Some(*number));
        }
    }
    Ok(None)
}

fn outcome(connection: &Connection, number: u64) -> Result<IssueOutcome, StoreError> {
    Ok(find(connection, number)?.map_or(IssueOutcome::Unknown(number), IssueOutcome::Done))
}

const COLUMNS: &str = "number, title, description, state, priority, labels, created_at, updated_at,
     (SELECT json_group_array(json_array(there.number, there.state)) FROM issue_blockers
      JOIN issues there ON there.number = blocker WHERE issue = issues.number)";

fn find(connection: &Connection, number: u64) -> Result<Option<StoredIssue>, StoreError> {
    let found = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM issues WHERE number = ?"))?
        .query_row([signed(number)], issue)
        .optional()?;
    Ok(found)
}

fn list(connection: &Connection, filter: &IssueFilter) -> Result<Vec<StoredIssue>, StoreError> {
    let mut conditions = vec!["1".to_owned()];
    let mut values: Vec<SqlValue> = Vec::new();
    let mut among = |column: &str, wanted: Vec<SqlValue>| {
        let marks = vec!["?"; wanted.len()].join(", ");
        conditions.push(format!("{column} IN ({marks})"));
        values.extend(wanted);
    };
    if let Some(states) = &filter.states {
        among("normal_state", states.iter().map(|state| normalize(state).into()).collect());
    }
    if let Some(numbers) = &filter.numbers {
        among("number", numbers.iter().map(|number| signed(*number).into()).collect());
    }
    let limit = filter.limit.map_or(-1, i64::from);
    let conditions = conditions.join(" AND ");
    let statement =
        format!("SELECT {COLUMNS} FROM issues WHERE {conditions} ORDER BY number LIMIT {limit}");
    let mut select = connection.prepare(&statement)?;
    let found = select.query_map(params_from_iter(values), issue)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn issue(row: &Row<'_>) -> rusqlite::Result<StoredIssue> {
    Ok(StoredIssue {
        number: rows::unsigned(row, 0)?,
        title: row.get(1)?,
        description: row.get(2)?,
        state: row.get(3)?,
        priority: row.get(4)?,
        labels: rows::value(row, 5)?,
        created_at: Timestamp::from_millis(row.get(6)?),
        updated_at: Timestamp::from_millis(row.get(7)?),
        blocked_by: rows::value(row, 8)?,
    })
}

fn add_comment(
    connection: &Connection,
    number: u64,
    new: NewComment,
    now: Timestamp,
) -> Result<Option<Comment>, StoreError> {
    if find(connection, number)?.is_none() {
        return Ok(None);
    }
    let NewComment { author, body } = new;
    connection
        .prepare_cached(
            "INSERT INTO issue_comments (issue, author, body, created_at) VALUES (?, ?, ?, ?)",
        )?
        .execute(params![signed(number), author, body, now.as_millis()])?;
    connection
        .prepare_cached("UPDATE issues SET updated_at = ? WHERE number = ?")?
        .execute([now.as_millis(), signed(number)])?;
    Ok(Some(Comment { author, body, created_at: now }))
}

fn comments(connection: &Connection, number: u64, limit: u32) -> Result<Vec<Comment>, StoreError> {
    let mut select = connection.prepare_cached(
        "SELECT author, body, created_at FROM
             (SELECT * FROM issue_comments WHERE issue = ? ORDER BY id DESC LIMIT ?) ORDER BY id",
    )?;
    let found = select.query_map(params![signed(number), limit], |row| {
        Ok(Comment {
            author: row.get(0)?,
            body: row.get(1)?,
            created_at: Timestamp::from_millis(row.get(2)?),
        })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
