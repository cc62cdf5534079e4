//! The release of running tasks, and the end of queued ones.
//!
//! These run outside of the lanes, under the lock of the queue. Each selects its rows `FOR NO KEY UPDATE`, since
//! the lane of heartbeats and events writes them without that lock: a heartbeat that was committed before is
//! seen, and one that comes later finds another attempt or status.

use std::time::Duration;

use carrel_domain::{TaskId, TaskStatus, Timestamp};
use uuid::Uuid;

use super::error::PgError;
use super::session::PgSession;
use crate::event::numbered;
use crate::lifecycle::{TaskState, Transition, select_task_state};
use crate::value::{Value, values};
use crate::{Cancellation, Claim, Event, Release, Released, WorkerId};

/// Tasks that one transaction releases, so that others do not wait long for the lock of the queue.
const MAX_RELEASED: usize = 100;

macro_rules! select_locked {
    ($condition:literal) => {
        concat!(select_task_state!($condition), " FOR NO KEY UPDATE")
    };
}

/// Writes a transition with its events, which are returned.
async fn write(
    session: &mut PgSession,
    task: &TaskState,
    transition: Transition,
) -> Result<Vec<Event>, PgError> {
    const UPDATE: &str = "UPDATE task_executions SET status = $2, error_message = $3,
        completed_at = $4, due_at = coalesce($5, due_at), lost = $6, last_event = $7,
        lease_until = NULL, claim_token = NULL WHERE sequence = $1";
    const INSERT: &str = "INSERT INTO task_events (task, number, kind, data, at)
        SELECT $1, number, kind, data, at
        FROM unnest($2::int8[], $3::text[], $4::text[], $5::int8[]) AS n (number, kind, data, at)";
    let completed = transition.completed_at();
    let Transition { status, error, lost, due, events, .. } = transition;
    let last = task.last_event + events.len() as u64;
    let events = numbered(task.id, (task.last_event + 1..).zip(events));
    let values = values![task.sequence, status, error, completed, due, lost, last];
    session.execute(UPDATE, values).await?;
    let numbers = Value::list(events.iter().map(|event| event.number));
    let kinds = Value::list(events.iter().map(|event| event.kind));
    let data = Value::list(events.iter().map(|event| &event.data));
    let times = Value::list(events.iter().map(|event| event.at));
    session.execute(INSERT, values![task.sequence, numbers, kinds, data, times]).await?;
    Ok(events)
}

/// Notifies waiting claims of all processes, this one included.
async fn notify(session: &mut PgSession) -> Result<(), PgError> {
    session.execute("SELECT pg_notify('carrel_queued', '')", vec![]).await.map(|_| ())
}

/// Releases the task of a claim, if its attempt is the current one.
pub(super) async fn release(
    session: &mut PgSession,
    claim: Claim,
    release: &Release,
) -> Result<Released, PgError> {
    const HELD: &str = select_locked!("id = $1 AND attempt = $2 AND status = 'running'");
    let held: Option<TaskState> = session.first(HELD, values![claim.task, claim.attempt]).await?;
    let Some(task) = held else { return Ok(Released::Lost) };
    let transition = task.release(release);
    let status = transition.status;
    let events = write(session, &task, transition).await?;
    notify(session).await?;
    Ok(Released::Done { status, events })
}

/// Releases the task of a claim in a transaction of its own.
pub(super) async fn release_in_transaction(
    session: &mut PgSession,
    claim: Claim,
    terms: &Release,
) -> Result<(), PgError> {
    session.begin_queue_transaction().await?;
    release(session, claim, terms).await?;
    session.commit().await
}

/// Releases the tasks of claims whose reply was lost, found by their tokens.
pub(super) async fn release_unacknowledged(
    session: &mut PgSession,
    tokens: &[Uuid],
) -> Result<(), PgError> {
    const CLAIMED: &str =
        select_locked!("status = 'running' AND claim_token = ANY($1) ORDER BY sequence");
    session.begin_queue_transaction().await?;
    let tokens = Value::list(tokens.iter().copied());
    let claimed: Vec<TaskState> = session.all(CLAIMED, vec![tokens]).await?;
    let release = Release::unused("the reply to its claim was lost");
    for task in &claimed {
        write(session, task, task.release(&release)).await?;
    }
    if !claimed.is_empty() {
        notify(session).await?;
    }
    session.commit().await
}

/// Releases up to [`MAX_RELEASED`] tasks whose lease has expired. Returns their events, and whether there are
/// more.
pub(super) async fn release_expired(
    session: &mut PgSession,
    now: Timestamp,
    delay: fn(u32) -> Duration,
) -> Result<(Vec<Event>, bool), PgError> {
    const EXPIRED: &str = select_locked!(
        "sequence IN (SELECT sequence FROM task_executions
             WHERE status = 'running' AND lease_until <= $1 ORDER BY lease_until LIMIT $2)
         AND status = 'running' AND lease_until <= $1 ORDER BY sequence"
    );
    let expired: Vec<TaskState> = session.all(EXPIRED, values![now, MAX_RELEASED]).await?;
    let mut events = Vec::new();
    for task in &expired {
        let release = Release::expired(now.after(delay(task.lost + 1)), now);
        events.extend(write(session, task, task.release(&release)).await?);
    }
    if !expired.is_empty() {
        notify(session).await?;
    }
    Ok((events, expired.len() == MAX_RELEASED))
}

/// Releases every running task whose worker is not in `alive`.
pub(super) async fn release_except(
    session: &mut PgSession,
    alive: &[WorkerId],
    now: Timestamp,
) -> Result<Vec<Event>, PgError> {
    const OTHERS: &str =
        select_locked!("status = 'running' AND worker_id <> ALL($1) ORDER BY sequence");
    let release = Release::expired(now, now);
    let mut events = Vec::new();
    for task in session.all::<TaskState>(OTHERS, vec![Value::list(alive)]).await? {
        events.extend(write(session, &task, task.release(&release)).await?);
    }
    notify(session).await?;
    Ok(events)
}

async fn find(session: &mut PgSession, task: TaskId) -> Result<Option<TaskState>, PgError> {
    session.first(select_locked!("id = $1"), values![task]).await
}

/// Cancels a queued task, or requests the cancellation of a running one.
pub(super) async fn cancel(
    session: &mut PgSession,
    id: TaskId,
    now: Timestamp,
) -> Result<Cancellation, PgError> {
    const REQUEST: &str = "UPDATE task_executions SET cancel_requested = true WHERE sequence = $1";
    let Some(task) = find(session, id).await? else { return Ok(Cancellation::Unknown) };
    match task.status {
        TaskStatus::Queued => {
            Ok(Cancellation::Cancelled(write(session, &task, task.cancel(now)).await?))
        }
        TaskStatus::Running => {
            session.execute(REQUEST, values![task.sequence]).await?;
            Ok(Cancellation::Requested)
        }
        TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Cancelled
        | TaskStatus::TimedOut
        | TaskStatus::Dead => Ok(Cancellation::Finished(task.status)),
    }
}

/// Ends a queued task as failed and deletes its idempotency key.
pub(super) async fn fail_queued(
    session: &mut PgSession,
    id: TaskId,
    error: &str,
    now: Timestamp,
) -> Result<Option<Vec<Event>>, PgError> {
    match find(session, id).await? {
        Some(task) if task.status == TaskStatus::Queued => {
            session.execute("DELETE FROM replies WHERE task_id = $1", values![id]).await?;
            let failure = task.fail(TaskStatus::Failed, error.to_owned(), now);
            Ok(Some(write(session, &task, failure).await?))
        }
        _ => Ok(None),
    }
}
