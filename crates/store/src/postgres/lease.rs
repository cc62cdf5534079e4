//! The release of running tasks, and the end of queued ones.
//!
//! These run outside of the lanes, under the lock of the queue. Each selects its rows `FOR NO KEY UPDATE`, since
//! the lane of heartbeats and events writes them without that lock: a heartbeat that was committed before is
//! seen, and one that comes later finds another attempt or status.

use std::time::Duration;

use carrel_domain::{Clock as _, SystemClock, TaskId, TaskStatus, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::PgError;
use super::rows::{self, AsUuid as _, small};
use super::session::PgSession;
use crate::lifecycle::{AttemptState, LEASE_EXPIRED, Transition, failed, signed, status_changed};
use crate::{Cancellation, Claim, Event, NewEvent, Release, Released, WorkerId};

/// Tasks that one transaction releases, so that others do not wait long for the lock of the queue.
const MAX_RELEASED: i64 = 100;

struct LockedTask {
    id: TaskId,
    sequence: i64,
    last: u64,
    status: TaskStatus,
    state: AttemptState,
}

macro_rules! select_locked {
    ($condition:literal) => {
        concat!(
            "SELECT id, sequence, last_event, status, cancel_requested, attempt, lost, max_attempts
             FROM task_executions WHERE ",
            $condition,
            " FOR NO KEY UPDATE"
        )
    };
}

fn locked_task(row: &Row) -> Result<LockedTask, PgError> {
    let number = |column| Ok::<_, PgError>(rows::get::<i32>(row, column)?.unsigned_abs());
    let status: &str = rows::get(row, 3)?;
    let status = status.parse::<TaskStatus>();
    Ok(LockedTask {
        id: TaskId::from_bytes(rows::get::<Uuid>(row, 0)?.into_bytes()),
        sequence: rows::get(row, 1)?,
        last: rows::unsigned(row, 2)?,
        status: status.map_err(|error| PgError::transient(error.to_string()))?,
        state: AttemptState {
            cancel_requested: rows::get(row, 4)?,
            attempt: number(5)?,
            lost: number(6)?,
            max_attempts: number(7)?,
        },
    })
}

impl LockedTask {
    async fn write(
        &self,
        session: &mut PgSession,
        transition: &Transition,
        due: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Vec<Event>, PgError> {
        const UPDATE: &str = "UPDATE task_executions SET status = $2, error_message = $3,
            completed_at = $4, due_at = coalesce($5, due_at), lost = $6, last_event = $7,
            lease_until = NULL, claim_token = NULL WHERE sequence = $1";
        const INSERT: &str = "INSERT INTO task_events (task, number, kind, data, at)
            SELECT $1, $2::int8 + position, kind, data, at
            FROM unnest($3::text[], $4::text[], $5::int8[])
                WITH ORDINALITY AS n (kind, data, at, position)";
        let Transition { status, error, lost, events } = transition;
        let completed = status.is_terminal().then(|| now.as_millis());
        let last = signed(self.last + events.len() as u64);
        let error = rows::optional(error.as_deref());
        let due = due.map(Timestamp::as_millis);
        session
            .execute(
                UPDATE,
                &[&self.sequence, &status.as_str(), &error, &completed, &due, &small(*lost), &last],
            )
            .await?;
        let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
        let data: Vec<_> = events.iter().map(|event| event.data.to_string()).collect();
        let times: Vec<_> = events.iter().map(|event| event.at.as_millis()).collect();
        let values: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&self.sequence, &signed(self.last), &kinds, &data, &times];
        session.execute(INSERT, values).await?;
        let number = |(number, event): (u64, &NewEvent)| Event {
            task: self.id,
            number,
            kind: event.kind,
            data: event.data.clone(),
            at: event.at,
        };
        Ok((self.last + 1..).zip(events).map(number).collect())
    }

    async fn release(
        &self,
        session: &mut PgSession,
        release: &Release,
    ) -> Result<(TaskStatus, Vec<Event>), PgError> {
        let transition = self.state.release(release);
        let due = (transition.status == TaskStatus::Queued).then_some(release.due);
        let events = self.write(session, &transition, due, release.now).await?;
        Ok((transition.status, events))
    }

    async fn end(
        &self,
        session: &mut PgSession,
        status: TaskStatus,
        error: Option<String>,
        events: Vec<NewEvent>,
        now: Timestamp,
    ) -> Result<Vec<Event>, PgError> {
        let transition = Transition { status, error, lost: self.state.lost, events };
        self.write(session, &transition, None, now).await
    }
}

/// Notifies waiting claims of all processes, this one included.
async fn notify(session: &mut PgSession) -> Result<(), PgError> {
    session.execute("SELECT pg_notify('carrel_queued', '')", &[]).await.map(|_| ())
}

/// Releases the task of a claim, if its attempt is the current one.
pub(super) async fn release(
    session: &mut PgSession,
    claim: Claim,
    release: &Release,
) -> Result<Released, PgError> {
    const HELD: &str = select_locked!("id = $1 AND attempt = $2 AND status = 'running'");
    let held = session.first(HELD, &[&claim.task.uuid(), &small(claim.attempt)]).await?;
    let Some(row) = held else { return Ok(Released::Lost) };
    let (status, events) = locked_task(&row)?.release(session, release).await?;
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
    let claimed = session.query(CLAIMED, &[&tokens]).await?;
    let now = SystemClock.now();
    let reason = "the reply to its claim was lost".to_owned();
    let release = Release { reason, due: now, now, counts_as_lost: false };
    for row in &claimed {
        locked_task(row)?.release(session, &release).await?;
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
    let expired = session.query(EXPIRED, &[&now.as_millis(), &MAX_RELEASED]).await?;
    let mut events = Vec::new();
    for row in &expired {
        let task = locked_task(row)?;
        let due = now.after(delay(task.state.lost + 1));
        let reason = LEASE_EXPIRED.to_owned();
        let release = Release { reason, due, now, counts_as_lost: true };
        events.extend(task.release(session, &release).await?.1);
    }
    if !expired.is_empty() {
        notify(session).await?;
    }
    Ok((events, signed(expired.len() as u64) == MAX_RELEASED))
}

/// Releases every running task whose worker is not in `alive`.
pub(super) async fn release_except(
    session: &mut PgSession,
    alive: &[WorkerId],
    now: Timestamp,
) -> Result<Vec<Event>, PgError> {
    const OTHERS: &str =
        select_locked!("status = 'running' AND worker_id <> ALL($1) ORDER BY sequence");
    let alive: Vec<&str> = alive.iter().map(|worker| worker.0.as_str()).collect();
    let mut events = Vec::new();
    for row in &session.query(OTHERS, &[&alive]).await? {
        let reason = LEASE_EXPIRED.to_owned();
        let release = Release { reason, due: now, now, counts_as_lost: true };
        events.extend(locked_task(row)?.release(session, &release).await?.1);
    }
    notify(session).await?;
    Ok(events)
}

async fn find(session: &mut PgSession, task: TaskId) -> Result<Option<LockedTask>, PgError> {
    const FIND: &str = select_locked!("id = $1");
    session.first(FIND, &[&task.uuid()]).await?.as_ref().map(locked_task).transpose()
}

/// Cancels a queued task, or requests the cancellation of a running one.
pub(super) async fn cancel(
    session: &mut PgSession,
    task: TaskId,
    now: Timestamp,
) -> Result<Cancellation, PgError> {
    let Some(locked) = find(session, task).await? else { return Ok(Cancellation::Unknown) };
    match locked.status {
        TaskStatus::Queued => {
            let events = vec![status_changed(TaskStatus::Cancelled, [], now)];
            let events = locked.end(session, TaskStatus::Cancelled, None, events, now).await?;
            Ok(Cancellation::Cancelled(events))
        }
        TaskStatus::Running => {
            const REQUEST: &str =
                "UPDATE task_executions SET cancel_requested = true WHERE sequence = $1";
            session.execute(REQUEST, &[&locked.sequence]).await?;
            Ok(Cancellation::Requested)
        }
        TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Cancelled
        | TaskStatus::TimedOut
        | TaskStatus::Dead => Ok(Cancellation::Finished(locked.status)),
    }
}

/// Ends a queued task as failed and deletes its idempotency key.
pub(super) async fn fail_queued(
    session: &mut PgSession,
    task: TaskId,
    error: &str,
    now: Timestamp,
) -> Result<Option<Vec<Event>>, PgError> {
    match find(session, task).await? {
        Some(locked) if locked.status == TaskStatus::Queued => {
            session.execute("DELETE FROM replies WHERE task_id = $1", &[&task.uuid()]).await?;
            let status = TaskStatus::Failed;
            let events = failed(status, error, now);
            let events = locked.end(session, status, Some(error.to_owned()), events, now).await?;
            Ok(Some(events))
        }
        _ => Ok(None),
    }
}
