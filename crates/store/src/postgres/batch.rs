//! Executes a batch of operations in one transaction and one round trip.
//!
//! All operations of one kind are one statement, whose parameters are arrays with one element for each
//! operation (`columns`, `sql/*.sql`). The statements are sent without waiting for replies, `BEGIN` and
//! `COMMIT` with them, so that a transaction costs one round trip and one write to the disk, however many
//! operations it has. If a statement fails the server skips the rest and rolls back at `COMMIT`; the batch
//! fails as a whole.
//!
//! Ends come before submissions and claims, so that a task that ends makes way for the next one of its
//! workspace in the same transaction.

use std::pin::Pin;
use std::time::Duration;

use carrel_domain::{TaskId, TaskStatus, Timestamp};
use futures_util::future::join_all;
use tokio_postgres::{Client, Statement};

use super::error::PgError;
use super::operation::{LaneOperation, PendingClaim};
use super::session::{PgSession, parameters};
use super::values::rows;
use super::{QUEUE_LOCK, columns};
use crate::Claimed;
use crate::error::StoreError;
use crate::lifecycle::claimed;
use crate::value::{Row, Value, values};

pub(super) const SUBMIT: &str = include_str!("sql/submit.sql");
pub(super) const FINISH: &str = include_str!("sql/finish.sql");
pub(super) const CLAIM: &str = include_str!("sql/claim.sql");
pub(super) const APPEND: &str = include_str!("sql/append.sql");
pub(super) const HEARTBEAT: &str = include_str!("sql/heartbeat.sql");

/// Notifies waiting claims of other processes. The payload names the sender, which ignores its own.
const NOTIFY: &str = "SELECT pg_notify('carrel_queued', $1)";

/// Returns the due time of the earliest released task, and whether any task is queued.
const TASKS_LEFT: &str = "SELECT (SELECT min(due_at) FROM task_executions
         WHERE status = 'queued' AND attempt > 0 AND due_at > $1),
    EXISTS (SELECT FROM workspaces WHERE queued > 0)";

/// Claims whose times differ by less are executed as if at the same time.
const SAME_TIME: Duration = Duration::from_millis(100);

/// The results of a batch, by kind and in the order of the operations of that kind.
#[derive(Default)]
pub(super) struct BatchOutcome {
    /// The verdict of `submit.sql`, and the first task of the idempotency key.
    pub(super) submitted: Vec<(String, TaskId)>,
    /// The terminal status; `None` if the claim was lost.
    pub(super) finished: Vec<Option<TaskStatus>>,
    pub(super) appended: Vec<bool>,
    /// True if a cancellation was requested; `None` if the claim was lost.
    pub(super) heartbeats: Vec<Option<bool>>,
    pub(super) claimed: Vec<Option<Claimed>>,
    /// The due time of the earliest released task. Set if there were claims.
    pub(super) next_due: Option<Timestamp>,
    /// Tasks are still queued. Set if there were claims.
    pub(super) tasks_left: bool,
}

pub(super) struct BatchOptions<'a> {
    pub(super) locks_queue: bool,
    pub(super) sender: &'a str,
}

enum Part {
    Submit,
    Finish,
    Append,
    Heartbeat,
    Claim(Vec<usize>),
    Notify,
    TasksLeft,
}

pub(super) async fn execute(
    session: &mut PgSession,
    options: &BatchOptions<'_>,
    operations: &[&LaneOperation],
    claims: &[PendingClaim],
) -> Result<BatchOutcome, PgError> {
    let mut new = Vec::new();
    let mut ends = Vec::new();
    let mut appends = Vec::new();
    let mut heartbeats = Vec::new();
    for operation in operations {
        match operation {
            LaneOperation::Submit(task, _) => new.push(&**task),
            LaneOperation::Finish(claim, finish, _) => ends.push((*claim, &**finish)),
            LaneOperation::Append(claim, after, events, _) => {
                appends.push((*claim, *after, events.as_slice()));
            }
            LaneOperation::Heartbeat(claim, until, _) => heartbeats.push((*claim, *until)),
            LaneOperation::Claim(..) => {}
        }
    }
    let mut parts: Vec<(Part, &'static str, Vec<Value>)> = Vec::new();
    if !ends.is_empty() {
        parts.push((Part::Finish, FINISH, columns::ends(&ends)));
    }
    if !new.is_empty() {
        parts.push((Part::Submit, SUBMIT, columns::submissions(&new)));
        parts.push((Part::Notify, NOTIFY, values![options.sender]));
    }
    if !heartbeats.is_empty() {
        parts.push((Part::Heartbeat, HEARTBEAT, columns::heartbeats(&heartbeats)));
    }
    if !appends.is_empty() {
        parts.push((Part::Append, APPEND, columns::appends(&appends)));
    }
    for group in group_alike(claims) {
        let tokens = group.iter().map(|claim| claims[*claim].token);
        let values = columns::claims(&claims[group[0]], tokens);
        parts.push((Part::Claim(group), CLAIM, values));
    }
    if let Some(latest) = claims.iter().map(|claim| claim.now).max() {
        parts.push((Part::TasksLeft, TASKS_LEFT, values![latest]));
    }
    let results = send(session, options.locks_queue, &parts).await?;
    let mut outcome = BatchOutcome {
        finished: vec![None; ends.len()],
        appended: vec![false; appends.len()],
        heartbeats: vec![None; heartbeats.len()],
        claimed: vec![None; claims.len()],
        ..BatchOutcome::default()
    };
    for ((part, ..), rows) in parts.iter().zip(results) {
        for (number, row) in rows.into_iter().enumerate() {
            outcome.read(part, number, row, claims)?;
        }
    }
    Ok(outcome)
}

/// Groups claims that one statement can execute: of the same request, at about the same time. Returns their
/// indexes.
fn group_alike(claims: &[PendingClaim]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, claim) in claims.iter().enumerate() {
        let group = groups.iter_mut().find(|group| {
            let first = &claims[group[0]];
            first.request == claim.request
                && first.now.age(claim.now).max(claim.now.age(first.now)) < SAME_TIME
        });
        match group {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

type PendingRows<'a> = Pin<
    Box<dyn Future<Output = Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>> + Send + 'a>,
>;

fn simple_query<'a>(client: &'a Client, text: &'static str) -> PendingRows<'a> {
    Box::pin(async move { client.batch_execute(text).await.map(|()| Vec::new()) })
}

/// Sends a whole transaction, and then waits for the rows of each part.
async fn send(
    session: &mut PgSession,
    locks_queue: bool,
    parts: &[(Part, &'static str, Vec<Value>)],
) -> Result<Vec<Vec<Row>>, PgError> {
    let mut statements: Vec<Statement> = Vec::with_capacity(parts.len());
    for (_, text, _) in parts {
        statements.push(session.statement(text).await?);
    }
    // A single statement is a transaction of its own.
    let explicit = locks_queue || parts.len() > 1;
    let lock = if locks_queue { Some(session.statement(QUEUE_LOCK).await?) } else { None };
    let client = &session.client;
    let mut pending = Vec::with_capacity(parts.len() + 3);
    if explicit {
        pending.push(simple_query(client, "BEGIN"));
    }
    if let Some(lock) = &lock {
        pending.push(Box::pin(client.query(lock, &[])));
    }
    let before = pending.len();
    for (statement, (_, _, values)) in statements.iter().zip(parts) {
        let values = parameters(values);
        pending.push(Box::pin(async move { client.query(statement, &values).await }));
    }
    if explicit {
        // After a failed statement the server treats this as a rollback.
        pending.push(simple_query(client, "COMMIT"));
    }
    // Queries are sent in the order in which they are first polled, which `join_all` keeps.
    let results = join_all(pending).await;
    let results = results.into_iter().collect::<Result<Vec<_>, _>>()?;
    results.iter().skip(before).take(parts.len()).map(|found| rows(found)).collect()
}

impl BatchOutcome {
    /// Reads one row of a part.
    fn read(
        &mut self,
        part: &Part,
        number: usize,
        mut row: Row,
        claims: &[PendingClaim],
    ) -> Result<(), StoreError> {
        match part {
            Part::Submit => self.submitted.push(row.take()?),
            Part::Finish => {
                let (place, status) = row.take()?;
                self.finished[index(place)] = Some(status);
            }
            Part::Append => self.appended[index(row.take()?)] = true,
            Part::Heartbeat => {
                let (place, cancel_requested) = row.take()?;
                self.heartbeats[index(place)] = Some(cancel_requested);
            }
            Part::Claim(group) => {
                self.claimed[group[number]] = Some(claimed(row.take()?, claims[group[0]].now));
            }
            Part::TasksLeft => (self.next_due, self.tasks_left) = row.take()?,
            Part::Notify => {}
        }
        Ok(())
    }
}

/// Returns the index of an operation by its place, which SQL counts from one.
fn index(place: u64) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX) - 1
}
