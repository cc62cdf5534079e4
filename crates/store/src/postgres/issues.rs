//! The embedded tracker in PostgreSQL.
//!
//! Additions carry a random token, so that one that is retried after a lost reply is recognised.

use async_trait::async_trait;
use carrel_domain::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::Postgres;
use super::error::PgError;
use super::retry::{in_transaction, with_session};
use super::rows::{self, optional, text};
use super::session::PgSession;
use crate::error::StoreError;
use crate::issues::{
    Comment, IssueChange, IssueFilter, IssueOutcome, IssueStore, NewComment, NewIssue, StoredIssue,
    normalize,
};
use crate::lifecycle::signed;

#[async_trait]
impl IssueStore for Postgres {
    async fn add_issue(&self, issue: NewIssue, now: Timestamp) -> Result<IssueOutcome, StoreError> {
        let token = Uuid::now_v7();
        in_transaction!(self, |session| add(session, token, &issue, now).await?)
    }

    async fn issues(&self, filter: IssueFilter) -> Result<Vec<StoredIssue>, StoreError> {
        with_session!(self, |session| list(session, &filter).await?)
    }

    async fn change_issue(
        &self,
        number: u64,
        change: IssueChange,
        now: Timestamp,
    ) -> Result<IssueOutcome, StoreError> {
        in_transaction!(self, |session| change_issue(session, number, &change, now).await?)
    }

    async fn comment(
        &self,
        number: u64,
        comment: NewComment,
        now: Timestamp,
    ) -> Result<Option<Comment>, StoreError> {
        let token = Uuid::now_v7();
        in_transaction!(self, |session| add_comment(session, token, number, &comment, now).await?)
    }

    async fn comments(&self, number: u64, limit: u32) -> Result<Vec<Comment>, StoreError> {
        with_session!(self, |session| comments(session, number, limit).await?)
    }

    async fn tracker_name(&self) -> Result<String, StoreError> {
        with_session!(self, |session| {
            let found = session.first("SELECT name FROM tracker", &[]).await?;
            let row = found.ok_or_else(|| rows::unreadable("a tracker without a name".into()))?;
            rows::get(&row, 0)?
        })
    }
}

/// Adds an issue, or returns the one that was added with the same token.
async fn add(
    session: &mut PgSession,
    token: Uuid,
    issue: &NewIssue,
    now: Timestamp,
) -> Result<IssueOutcome, PgError> {
    const ADDED: &str = "SELECT number FROM issues WHERE token = $1";
    const NUMBER: &str = "UPDATE tracker SET last_number = last_number + 1 RETURNING last_number";
    const ADD: &str = "INSERT INTO issues (number, token, title, description, state, normal_state,
            priority, labels, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)";
    if let Some(row) = session.first(ADDED, &[&token]).await? {
        return outcome(session, rows::unsigned(&row, 0)?).await;
    }
    if let Some(unknown) = first_unknown(session, &issue.blocked_by).await? {
        return Ok(IssueOutcome::Unknown(unknown));
    }
    let number = session.first(NUMBER, &[]).await?;
    let number = number.ok_or_else(|| rows::unreadable("a tracker without a number".into()))?;
    let number = rows::unsigned(&number, 0)?;
    let (title, description) = (text(&issue.title), optional(issue.description.as_deref()));
    let (state, compared) = (text(&issue.state), normalize(&text(&issue.state)));
    let labels = json!(issue.labels).to_string();
    let values: &[&(dyn ToSql + Sync)] = &[
        &signed(number),
        &token,
        &title,
        &description,
        &state,
        &compared,
        &issue.priority,
        &labels,
        &now.as_millis(),
    ];
    session.execute(ADD, values).await?;
    add_blockers(session, number, &issue.blocked_by).await?;
    outcome(session, number).await
}

async fn change_issue(
    session: &mut PgSession,
    number: u64,
    change: &IssueChange,
    now: Timestamp,
) -> Result<IssueOutcome, PgError> {
    const UPDATE: &str = "UPDATE issues
        SET state = $2, normal_state = $3, labels = $4, updated_at = $5 WHERE number = $1";
    const UNBLOCK: &str = "DELETE FROM issue_blockers WHERE issue = $1 AND blocker = ANY($2)";
    lock(session, number).await?;
    let Some(issue) = find(session, number).await? else {
        return Ok(IssueOutcome::Unknown(number));
    };
    if let Some(unknown) = first_unknown(session, &change.add_blockers).await? {
        return Ok(IssueOutcome::Unknown(unknown));
    }
    let state = text(change.state.as_ref().unwrap_or(&issue.state));
    let labels = json!(change.labels(&issue.labels)).to_string();
    let values: &[&(dyn ToSql + Sync)] =
        &[&signed(number), &state, &normalize(&state), &labels, &now.as_millis()];
    session.execute(UPDATE, values).await?;
    session.execute(UNBLOCK, &[&signed(number), &all_signed(&change.remove_blockers)]).await?;
    add_blockers(session, number, &change.add_blockers).await?;
    outcome(session, number).await
}

/// Locks an issue until the end of the transaction. Returns whether it exists.
async fn lock(session: &mut PgSession, number: u64) -> Result<bool, PgError> {
    const LOCK: &str = "SELECT FROM issues WHERE number = $1 FOR NO KEY UPDATE";
    Ok(session.first(LOCK, &[&signed(number)]).await?.is_some())
}

/// Adds blockers; an issue is never its own.
async fn add_blockers(
    session: &mut PgSession,
    number: u64,
    blockers: &[u64],
) -> Result<(), PgError> {
    const BLOCK: &str = "INSERT INTO issue_blockers (issue, blocker)
        SELECT $1, blocker FROM unnest($2::int8[]) blocker WHERE blocker <> $1
        ON CONFLICT DO NOTHING";
    session.execute(BLOCK, &[&signed(number), &all_signed(blockers)]).await?;
    Ok(())
}

fn all_signed(numbers: &[u64]) -> Vec<i64> {
    numbers.iter().copied().map(signed).collect()
}

async fn first_unknown(session: &mut PgSession, numbers: &[u64]) -> Result<Option<u64>, PgError> {
    for number in numbers {
        if find(session, *number).await?.is_none() {
            return Ok(Some(*number));
        }
    }
    Ok(None)
}

async fn outcome(session: &mut PgSession, number: u64) -> Result<IssueOutcome, PgError> {
    let found = find(session, number).await?;
    Ok(found.map_or(IssueOutcome::Unknown(number), IssueOutcome::Done))
}

macro_rules! issue_columns {
    () => {
        "SELECT number, title, description, state, priority, labels, created_at, updated_at,
             (SELECT coalesce(json_agg(json_build_array(there.number, there.state)
                                       ORDER BY there.number), '[]')::text
              FROM issue_blockers JOIN issues there ON there.number = blocker
              WHERE issue = issues.number)
         FROM issues "
    };
}

async fn find(session: &mut PgSession, number: u64) -> Result<Option<StoredIssue>, PgError> {
    const FIND: &str = concat!(issue_columns!(), "WHERE number = $1");
    session.first(FIND, &[&signed(number)]).await?.as_ref().map(issue).transpose()
}

async fn list(session: &mut PgSession, filter: &IssueFilter) -> Result<Vec<StoredIssue>, PgError> {
    const LIST: &str = concat!(
        issue_columns!(),
        "WHERE ($1::text[] IS NULL OR normal_state = ANY($1))
           AND ($2::int8[] IS NULL OR number = ANY($2))
         ORDER BY number LIMIT $3"
    );
    let states = filter.states.as_ref();
    let states: Option<Vec<_>> =
        states.map(|states| states.iter().map(|state| normalize(&text(state))).collect());
    let numbers = filter.numbers.as_deref().map(all_signed);
    let limit = filter.limit.map(i64::from);
    let found = session.query(LIST, &[&states, &numbers, &limit]).await?;
    found.iter().map(issue).collect()
}

fn issue(row: &Row) -> Result<StoredIssue, PgError> {
    Ok(StoredIssue {
        number: rows::unsigned(row, 0)?,
        title: rows::get(row, 1)?,
        description: rows::get(row, 2)?,
        state: rows::get(row, 3)?,
        priority: rows::get(row, 4)?,
        labels: value(row, 5)?,
        created_at: rows::time(row, 6)?,
        updated_at: rows::time(row, 7)?,
        blocked_by: value(row, 8)?,
    })
}

fn value<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, PgError> {
    let text: &str = rows::get(row, column)?;
    serde_json::from_str(text).map_err(|error| rows::unreadable(error.to_string()))
}

/// Adds a comment, unless one was added with the same token.
async fn add_comment(
    session: &mut PgSession,
    token: Uuid,
    number: u64,
    new: &NewComment,
    now: Timestamp,
) -> Result<Option<Comment>, PgError> {
    const ADD: &str = "INSERT INTO issue_comments (token, issue, author, body, created_at)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (token) DO NOTHING";
    const TOUCH: &str = "UPDATE issues SET updated_at = $2 WHERE number = $1";
    if !lock(session, number).await? {
        return Ok(None);
    }
    let (author, body) = (text(&new.author), text(&new.body));
    let values: &[&(dyn ToSql + Sync)] =
        &[&token, &signed(number), &author, &body, &now.as_millis()];
    session.execute(ADD, values).await?;
    session.execute(TOUCH, &[&signed(number), &now.as_millis()]).await?;
    let (author, body) = (author.into_owned(), body.into_owned());
    Ok(Some(Comment { author, body, created_at: now }))
}

async fn comments(
    session: &mut PgSession,
    number: u64,
    limit: u32,
) -> Result<Vec<Comment>, PgError> {
    const LAST: &str = "SELECT author, body, created_at FROM
            (SELECT * FROM issue_comments WHERE issue = $1 ORDER BY id DESC LIMIT $2) latest
        ORDER BY id";
    let found = session.query(LAST, &[&signed(number), &i64::from(limit)]).await?;
    let comment = |row: &Row| {
        Ok(Comment {
            author: rows::get(row, 0)?,
            body: rows::get(row, 1)?,
            created_at: rows::time(row, 2)?,
        })
    };
    found.iter().map(comment).collect()
}
