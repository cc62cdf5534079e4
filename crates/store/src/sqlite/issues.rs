//! The embedded tracker in SQLite. `carrel issue` may write the file beside a running server, which is why
//! numbers come from the database (`AUTOINCREMENT`) and never from memory.

use async_trait::async_trait;
use carrel_domain::Timestamp;
use rusqlite::Connection;
use serde_json::json;

use super::Sqlite;
use super::connection::{Execute as _, rows_of};
use crate::database::{self, Database as _};
use crate::error::StoreError;
use crate::issues::{
    self, Comment, IssueChange, IssueFilter, IssueOutcome, IssueStore, NewComment, NewIssue,
    StoredIssue, normalize,
};
use crate::value::{Value, values};

#[async_trait]
impl IssueStore for Sqlite {
    async fn add_issue(&self, issue: NewIssue, now: Timestamp) -> Result<IssueOutcome, StoreError> {
        self.writer.write(move |connection| add(connection, &issue, now)).await
    }

    async fn issues(&self, filter: IssueFilter) -> Result<Vec<StoredIssue>, StoreError> {
        self.readers.read(move |connection| list(connection, filter)).await
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
        issues::comments(self, number, limit).await
    }

    async fn tracker_name(&self) -> Result<String, StoreError> {
        issues::tracker_name(self.first("SELECT name FROM tracker_name", vec![]).await?)
    }
}

fn add(
    connection: &Connection,
    issue: &NewIssue,
    now: Timestamp,
) -> Result<IssueOutcome, StoreError> {
    const ADD: &str = "INSERT INTO issues
            (title, description, state, normal_state, priority, labels, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $7)";
    if let Some(unknown) = first_unknown(connection, &issue.blocked_by)? {
        return Ok(IssueOutcome::Unknown(unknown));
    }
    let NewIssue { title, description, state, priority, labels, blocked_by } = issue;
    let (compared, labels) = (normalize(state), &json!(labels));
    let values = values![title, description.as_ref(), state, compared, *priority, labels, now];
    connection.change(ADD, values)?;
    let number = u64::try_from(connection.last_insert_rowid()).unwrap_or_default();
    add_blockers(connection, number, blocked_by)?;
    outcome(connection, number)
}

fn change_issue(
    connection: &Connection,
    number: u64,
    change: &IssueChange,
    now: Timestamp,
) -> Result<IssueOutcome, StoreError> {
    const UPDATE: &str = "UPDATE issues
        SET state = $2, normal_state = $3, labels = $4, updated_at = $5 WHERE number = $1";
    const UNBLOCK: &str = "DELETE FROM issue_blockers WHERE issue = $1 AND blocker = $2";
    let IssueOutcome::Done(issue) = outcome(connection, number)? else {
        return Ok(IssueOutcome::Unknown(number));
    };
    if let Some(unknown) = first_unknown(connection, &change.add_blockers)? {
        return Ok(IssueOutcome::Unknown(unknown));
    }
    let state = change.state.as_ref().unwrap_or(&issue.state);
    let labels = &json!(change.labels(&issue.labels));
    connection.change(UPDATE, values![number, state, normalize(state), labels, now])?;
    for blocker in &change.remove_blockers {
        connection.change(UNBLOCK, values![number, *blocker])?;
    }
    add_blockers(connection, number, &change.add_blockers)?;
    outcome(connection, number)
}

fn add_blockers(connection: &Connection, number: u64, blockers: &[u64]) -> Result<(), StoreError> {
    const BLOCK: &str = "INSERT OR IGNORE INTO issue_blockers (issue, blocker) VALUES ($1, $2)";
    for blocker in blockers {
        connection.change(BLOCK, values![number, *blocker])?;
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

macro_rules! select_issues {
    () => {
        "SELECT number, title, description, state, priority, labels, created_at, updated_at,
             (SELECT json_group_array(json_array(there.number, there.state)) FROM issue_blockers
              JOIN issues there ON there.number = blocker WHERE issue = issues.number)
         FROM issues WHERE "
    };
}

fn find(connection: &Connection, number: u64) -> Result<Option<StoredIssue>, StoreError> {
    connection.first(concat!(select_issues!(), "number = $1"), values![number])
}

fn list(connection: &Connection, filter: IssueFilter) -> Result<Vec<StoredIssue>, StoreError> {
    let mut conditions = vec!["1".to_owned()];
    let mut values: Vec<Value> = Vec::new();
    let mut among = |column: &str, wanted: Vec<Value>| {
        let marks = vec!["?"; wanted.len()].join(", ");
        conditions.push(format!("{column} IN ({marks})"));
        values.extend(wanted);
    };
    if let Some(states) = filter.states {
        among("normal_state", states.iter().map(|state| normalize(state).into()).collect());
    }
    if let Some(numbers) = filter.numbers {
        among("number", numbers.into_iter().map(Value::from).collect());
    }
    let (select, conditions) = (select_issues!(), conditions.join(" AND "));
    let limit = filter.limit.map_or(-1, i64::from);
    let text = format!("{select} {conditions} ORDER BY number LIMIT {limit}");
    // The text varies with the filter; in the cache it would displace statements that are used again.
    database::read(rows_of(&mut connection.prepare(&text)?, &values)?)
}

fn add_comment(
    connection: &Connection,
    number: u64,
    new: NewComment,
    now: Timestamp,
) -> Result<Option<Comment>, StoreError> {
    const ADD: &str =
        "INSERT INTO issue_comments (issue, author, body, created_at) VALUES ($1, $2, $3, $4)";
    const TOUCH: &str = "UPDATE issues SET updated_at = $2 WHERE number = $1";
    if connection.change(TOUCH, values![number, now])? == 0 {
        return Ok(None);
    }
    let NewComment { author, body } = new;
    connection.change(ADD, values![number, &author, &body, now])?;
    Ok(Some(Comment { author, body, created_at: now }))
}
