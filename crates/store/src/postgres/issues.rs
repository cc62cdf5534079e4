//! The embedded tracker in PostgreSQL.
//!
//! Additions carry a random token, so that one that is retried after a lost reply is recognised.

use async_trait::async_trait;
use carrel_domain::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::Postgres;
use super::error::PgError;
use super::retry::{in_transaction, with_session};
use super::session::PgSession;
use crate::database::Database as _;
use crate::error::StoreError;
use crate::issues::{
    self, Comment, IssueChange, IssueFilter, IssueOutcome, IssueStore, NewComment, NewIssue,
    StoredIssue, normalize,
};
use crate::value::{Value, values};

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
        issues::comments(self, number, limit).await
    }

    async fn tracker_name(&self) -> Result<String, StoreError> {
        issues::tracker_name(self.first("SELECT name FROM tracker", vec![]).await?)
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
    if let Some(number) = session.first(ADDED, values![token]).await? {
        return outcome(session, number).await;
    }
    if let Some(unknown) = first_unknown(session, &issue.blocked_by).await? {
        return Ok(IssueOutcome::Unknown(unknown));
    }
    let number: Option<u64> = session.first(NUMBER, vec![]).await?;
    let missing = || StoreError::Unreadable { what: "a tracker without a number".into() };
    let number = number.ok_or_else(missing)?;
    let NewIssue { title, description, state, priority, labels, blocked_by } = issue;
    let (compared, labels) = (normalize(state), &json!(labels));
    let values = values![
        number,
        token,
        title,
        description.as_ref(),
        state,
        compared,
        *priority,
        labels,
        now
    ];
    session.execute(ADD, values).await?;
    add_blockers(session, number, blocked_by).await?;
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
    let state = change.state.as_ref().unwrap_or(&issue.state);
    let labels = &json!(change.labels(&issue.labels));
    session.execute(UPDATE, values![number, state, normalize(state), labels, now]).await?;
    session.execute(UNBLOCK, values![number, numbers(&change.remove_blockers)]).await?;
    add_blockers(session, number, &change.add_blockers).await?;
    outcome(session, number).await
}

/// Locks an issue until the end of the transaction. Returns whether it exists.
async fn lock(session: &mut PgSession, number: u64) -> Result<bool, PgError> {
    const LOCK: &str = "SELECT 1 FROM issues WHERE number = $1 FOR NO KEY UPDATE";
    Ok(session.first::<i64>(LOCK, values![number]).await?.is_some())
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
    session.execute(BLOCK, values![number, numbers(blockers)]).await?;
    Ok(())
}

fn numbers(numbers: &[u64]) -> Value {
    Value::list(numbers.iter().copied())
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
    session.first(concat!(issue_columns!(), "WHERE number = $1"), values![number]).await
}

async fn list(session: &mut PgSession, filter: &IssueFilter) -> Result<Vec<StoredIssue>, PgError> {
    const LIST: &str = concat!(
        issue_columns!(),
        "WHERE ($1::text[] IS NULL OR normal_state = ANY($1))
           AND ($2::int8[] IS NULL OR number = ANY($2))
         ORDER BY number LIMIT $3"
    );
    let states = filter.states.as_ref();
    let states = states.map(|states| Value::list(states.iter().map(|state| normalize(state))));
    let numbers = filter.numbers.as_deref().map(numbers);
    session.all(LIST, values![states, numbers, filter.limit]).await
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
    let NewComment { author, body } = new;
    session.execute(ADD, values![token, number, author, body, now]).await?;
    session.execute(TOUCH, values![number, now]).await?;
    let stored = |text: &str| text.replace('\0', "\u{fffd}");
    Ok(Some(Comment { author: stored(author), body: stored(body), created_at: now }))
}
