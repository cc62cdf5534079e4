//! Operations that wait together, done in one transaction.
//!
//! Operations of one kind are one statement, and all statements travel at once, the commit with them: a
//! transaction costs one round trip and one write to the disk, however many it serves.

use std::pin::Pin;
use std::time::Duration;

use carrel_domain::{TaskId, Timestamp};
use futures_util::future::join_all;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::LOCK;
use super::columns::{self, Values};
use super::operation::{Operation, Wish};
use super::rows;
use super::session::Session;
use super::trouble::Trouble;
use crate::facts::status_changed;
use crate::model::{Claim, Claimed, Event, NewEvent};

pub(super) const SUBMIT: &str = include_str!("sql/submit.sql");
pub(super) const FINISH: &str = include_str!("sql/finish.sql");
pub(super) const CLAIM: &str = include_str!("sql/claim.sql");
pub(super) const APPEND: &str = include_str!("sql/append.sql");
pub(super) const HEARTBEAT: &str = include_str!("sql/heartbeat.sql");

/// Tells waiting workers of other processes that there is something to do, and who says so.
const NOTIFY: &str = "SELECT pg_notify('carrel_queued', $1)";

/// Tells when the next task is due that waits for its time, and whether anything waits at all.
const LEFT: &str = "SELECT (SELECT min(due_at) FROM task_executions
         WHERE status = 'queued' AND attempt > 0 AND due_at > $1),
    EXISTS (SELECT FROM workspaces WHERE queued > 0)";

/// Wishes at nearly the same time are one.
const SAME_TIME: Duration = Duration::from_millis(100);

/// What came of a transaction.
#[derive(Default)]
pub(super) struct Outcome {
    /// For each submission what became of it, and the first task of its key.
    pub(super) submitted: Vec<(String, TaskId)>,
    /// For each end its status, if the claim held.
    pub(super) finished: Vec<Option<String>>,
    /// For each piece of news whether it was written.
    pub(super) appended: Vec<bool>,
    /// For each sign of life whether the end was asked for, if the claim held.
    pub(super) beats: Vec<Option<bool>>,
    /// For each wish what it got.
    pub(super) claimed: Vec<Option<Claimed>>,
    /// When the next task is due that waits for its time.
    pub(super) next_due: Option<Timestamp>,
    /// Whether tasks wait that were not given to anybody.
    pub(super) left: bool,
}

/// What all transactions of a lane have in common.
pub(super) struct Manner<'a> {
    /// Whether no other of the queue may run beside it.
    pub(super) alone: bool,
    /// Who tells other processes of new tasks.
    pub(super) name: &'a str,
}

/// Which statements a transaction has, in their order.
enum Part {
    Submit,
    Finish,
    Append,
    Heartbeat,
    /// The wishes of these numbers.
    Claim(Vec<usize>),
    Notify,
    Left,
}

/// Does operations and wishes in one transaction.
pub(super) async fn perform(
    session: &mut Session,
    manner: &Manner<'_>,
    operations: &[&Operation],
    wishes: &[Wish],
) -> Result<Outcome, Trouble> {
    let (mut new, mut ends, mut news, mut beats) = (vec![], vec![], vec![], vec![]);
    for operation in operations {
        match operation {
            Operation::Submit(task, _) => new.push(&**task),
            Operation::Finish(claim, finish, _) => ends.push((*claim, &**finish)),
            Operation::Append(claim, after, events, _) => {
                news.push((*claim, *after, events.as_slice()));
            }
            Operation::Heartbeat(claim, until, _) => beats.push((*claim, *until)),
            Operation::Claim(..) => {}
        }
    }
    let mut parts: Vec<(Part, &'static str, Values)> = Vec::new();
    if !ends.is_empty() {
        parts.push((Part::Finish, FINISH, columns::ends(&ends)));
    }
    if !new.is_empty() {
        parts.push((Part::Submit, SUBMIT, columns::submissions(&new)));
        parts.push((Part::Notify, NOTIFY, vec![Box::new(manner.name.to_owned())]));
    }
    if !beats.is_empty() {
        parts.push((Part::Heartbeat, HEARTBEAT, columns::beats(&beats)));
    }
    if !news.is_empty() {
        parts.push((Part::Append, APPEND, columns::news(&news)));
    }
    for group in alike(wishes) {
        let tokens = group.iter().map(|wish| wishes[*wish].token).collect();
        let values = columns::wishes(&wishes[group[0]], tokens);
        parts.push((Part::Claim(group), CLAIM, values));
    }
    if let Some(latest) = wishes.iter().map(|wish| wish.now).max() {
        parts.push((Part::Left, LEFT, vec![Box::new(latest.as_millis())]));
    }
    let answers = travel(session, manner.alone, &parts).await?;
    let mut outcome = Outcome {
        finished: vec![None; ends.len()],
        appended: vec![false; news.len()],
        beats: vec![None; beats.len()],
        claimed: vec![None; wishes.len()],
        ..Outcome::default()
    };
    for ((part, ..), answer) in parts.iter().zip(answers) {
        outcome.read(part, &answer, wishes)?;
    }
    Ok(outcome)
}

/// Returns the wishes that differ in nothing that matters, by their numbers.
fn alike(wishes: &[Wish]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (number, wish) in wishes.iter().enumerate() {
        let group = groups.iter_mut().find(|group| {
            let (first, request) = (&wishes[group[0]], &wish.request);
            first.request == *request
                && first.now.age(wish.now).max(wish.now.age(first.now)) < SAME_TIME
        });
        match group {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    groups
}

type Answering<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 'a>>;

fn plain<'a>(client: &'a Client, text: &'static str) -> Answering<'a> {
    Box::pin(async move { client.batch_execute(text).await.map(|()| Vec::new()) })
}

/// Sends a whole transaction, and then waits for the answers.
async fn travel(
    session: &mut Session,
    alone: bool,
    parts: &[(Part, &'static str, Values)],
) -> Result<Vec<Vec<Row>>, Trouble> {
    let mut statements: Vec<Statement> = Vec::with_capacity(parts.len());
    for (_, text, _) in parts {
        statements.push(session.statement(text).await?);
    }
    // One statement is a transaction of its own.
    let whole = alone || parts.len() > 1;
    let lock = if alone { Some(session.statement(LOCK).await?) } else { None };
    let client = &session.client;
    let mut answering = Vec::with_capacity(parts.len() + 3);
    if whole {
        answering.push(plain(client, "BEGIN"));
    }
    if let Some(lock) = &lock {
        answering.push(Box::pin(client.query(lock, &[])));
    }
    let before = answering.len();
    for (statement, (_, _, values)) in statements.iter().zip(parts) {
        let values: Vec<&(dyn ToSql + Sync)> =
            values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        answering.push(Box::pin(async move { client.query(statement, &values).await }));
    }
    if whole {
        // If a statement fails, the server takes this for a wish to roll back.
        answering.push(plain(client, "COMMIT"));
    }
    // They are sent in the order in which they are first polled, which is this one.
    let answers = join_all(answering).await;
    let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(answers.into_iter().skip(before).take(parts.len()).collect())
}

impl Outcome {
    fn read(&mut self, part: &Part, answer: &[Row], wishes: &[Wish]) -> Result<(), Trouble> {
        for (number, row) in answer.iter().enumerate() {
            match part {
                Part::Submit => {
                    let first: uuid::Uuid = rows::get(row, 1)?;
                    let first = TaskId::from_bytes(first.into_bytes());
                    self.submitted.push((rows::get(row, 0)?, first));
                }
                Part::Finish => self.finished[place(row)?] = Some(rows::get(row, 1)?),
                Part::Append => self.appended[place(row)?] = true,
                Part::Heartbeat => self.beats[place(row)?] = Some(rows::get(row, 1)?),
                Part::Claim(group) => {
                    let wish = group[number];
                    self.claimed[wish] = Some(claimed(row, wishes[group[0]].now)?);
                }
                Part::Left => {
                    let due: Option<i64> = rows::get(row, 0)?;
                    self.next_due = due.map(Timestamp::from_millis);
                    self.left = rows::get(row, 1)?;
                }
                Part::Notify => {}
            }
        }
        Ok(())
    }
}

/// Returns which operation a row answers. The server counts from one.
fn place(row: &Row) -> Result<usize, Trouble> {
    let place = rows::unsigned(row, 0)?;
    Ok(usize::try_from(place).unwrap_or(usize::MAX) - 1)
}

fn claimed(row: &Row, now: Timestamp) -> Result<Claimed, Trouble> {
    let task = rows::task(row)?;
    let worker = task.worker.as_ref().map(|worker| worker.0.as_str());
    let more = [("attempt", task.attempt.into()), ("worker_id", worker.into())];
    let NewEvent { kind, data, at } = status_changed(task.status, more, now);
    let event = Event { task: task.id, number: task.last_event, kind, data, at };
    let claim = Claim { task: task.id, attempt: task.attempt };
    Ok(Claimed { claim, task, events: vec![event] })
}
