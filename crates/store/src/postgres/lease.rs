//! How a task is taken from whoever has it, and ended while nobody does.

use std::time::Duration;

use carrel_domain::{Clock as _, SystemClock, TaskId, TaskStatus, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::rows::{self, AsUuid as _, small};
use super::session::Session;
use super::trouble::Trouble;
use crate::facts::{LOST, TakenBack, Tries, ended, signed, status_changed};
use crate::model::{Cancellation, Claim, Event, NewEvent, Release, Released, WorkerId};

/// Tasks that are taken back in one transaction.
const MANY: i64 = 100;

/// A task that lives, as far as it matters to whoever ends it.
struct Live {
    id: TaskId,
    sequence: i64,
    last: u64,
    status: TaskStatus,
    tries: Tries,
}

/// The columns of [`live`], and the lock that keeps the row as it was read.
macro_rules! live {
    ($condition:literal) => {
        concat!(
            "SELECT id, sequence, last_event, status, cancel_requested, attempt, lost, max_attempts
             FROM task_executions WHERE ",
            $condition,
            " FOR NO KEY UPDATE"
        )
    };
}

fn live(row: &Row) -> Result<Live, Trouble> {
    let number = |column| Ok::<_, Trouble>(rows::get::<i32>(row, column)?.unsigned_abs());
    let status: &str = rows::get(row, 3)?;
    let status = status.parse::<TaskStatus>();
    Ok(Live {
        id: TaskId::from_bytes(rows::get::<Uuid>(row, 0)?.into_bytes()),
        sequence: rows::get(row, 1)?,
        last: rows::unsigned(row, 2)?,
        status: status.map_err(|error| Trouble::passing(error.to_string()))?,
        tries: Tries {
            cancel_requested: rows::get(row, 4)?,
            attempt: number(5)?,
            lost: number(6)?,
            max_attempts: number(7)?,
        },
    })
}

impl Live {
    /// Writes where the task stands, and what is told of it.
    async fn write(
        &self,
        session: &mut Session,
        change: &TakenBack,
        due: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Vec<Event>, Trouble> {
        const MOVE: &str = "UPDATE task_executions SET status = $2, error_message = $3,
            completed_at = $4, due_at = coalesce($5, due_at), lost = $6, last_event = $7,
            lease_until = NULL, claim_token = NULL WHERE sequence = $1";
        const TELL: &str = "INSERT INTO task_events (task, number, kind, data, at)
            SELECT $1, $2::int8 + place, kind, data, at
            FROM unnest($3::text[], $4::text[], $5::int8[])
                WITH ORDINALITY AS n (kind, data, at, place)";
        let TakenBack { status, error, lost, told } = change;
        let completed = status.is_terminal().then(|| now.as_millis());
        let last = signed(self.last + told.len() as u64);
        let error = rows::optional(error.as_deref());
        let due = due.map(Timestamp::as_millis);
        session
            .execute(
                MOVE,
                &[&self.sequence, &status.as_str(), &error, &completed, &due, &small(*lost), &last],
            )
            .await?;
        let kinds: Vec<_> = told.iter().map(|event| event.kind.as_str()).collect();
        let data: Vec<_> = told.iter().map(|event| event.data.to_string()).collect();
        let times: Vec<_> = told.iter().map(|event| event.at.as_millis()).collect();
        let values: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&self.sequence, &signed(self.last), &kinds, &data, &times];
        session.execute(TELL, values).await?;
        let number = |(number, event): (u64, &NewEvent)| Event {
            task: self.id,
            number,
            kind: event.kind,
            data: event.data.clone(),
            at: event.at,
        };
        Ok((self.last + 1..).zip(told).map(number).collect())
    }

    async fn take_back(
        &self,
        session: &mut Session,
        back: &Release,
    ) -> Result<(TaskStatus, Vec<Event>), Trouble> {
        let change = self.tries.taken_back(back);
        let due = (change.status == TaskStatus::Queued).then_some(back.due);
        let events = self.write(session, &change, due, back.now).await?;
        Ok((change.status, events))
    }

    async fn end(
        &self,
        session: &mut Session,
        status: TaskStatus,
        error: Option<String>,
        told: Vec<NewEvent>,
        now: Timestamp,
    ) -> Result<Vec<Event>, Trouble> {
        let change = TakenBack { status, error, lost: self.tries.lost, told };
        self.write(session, &change, None, now).await
    }
}

/// Tells waiting workers that there is something to do.
async fn notify(session: &mut Session) -> Result<(), Trouble> {
    session.execute("SELECT pg_notify('carrel_queued', '')", &[]).await.map(|_| ())
}

/// Takes a task back from its worker.
pub(super) async fn release(
    session: &mut Session,
    claim: Claim,
    back: &Release,
) -> Result<Released, Trouble> {
    const HELD: &str = live!("id = $1 AND attempt = $2 AND status = 'running'");
    let held = session.first(HELD, &[&claim.task.uuid(), &small(claim.attempt)]).await?;
    let Some(row) = held else { return Ok(Released::Lost) };
    let (status, events) = live(&row)?.take_back(session, back).await?;
    notify(session).await?;
    Ok(Released::Done { status, events })
}

/// Does as [`release`] does, in a transaction of its own.
pub(super) async fn hand_back_alone(
    session: &mut Session,
    claim: Claim,
    back: &Release,
) -> Result<(), Trouble> {
    session.begin().await?;
    release(session, claim, back).await?;
    session.commit().await
}

/// Gives back whatever claims got whose answer was lost.
pub(super) async fn settle(session: &mut Session, tokens: &[Uuid]) -> Result<(), Trouble> {
    const CLAIMED: &str = live!("status = 'running' AND claim_token = ANY($1) ORDER BY sequence");
    session.begin().await?;
    let claimed = session.query(CLAIMED, &[&tokens]).await?;
    let now = SystemClock.now();
    let reason = "its worker never heard of it".to_owned();
    let back = Release { reason, due: now, now, counts: false };
    for row in &claimed {
        live(row)?.take_back(session, &back).await?;
    }
    if !claimed.is_empty() {
        notify(session).await?;
    }
    session.commit().await
}

/// Takes back tasks whose claim has run out, at most so many that others are not kept waiting. Returns
/// whether there are more.
pub(super) async fn release_expired(
    session: &mut Session,
    now: Timestamp,
    delay: fn(u32) -> Duration,
) -> Result<(Vec<Event>, bool), Trouble> {
    const EXPIRED: &str = live!(
        "sequence IN (SELECT sequence FROM task_executions
             WHERE status = 'running' AND lease_until <= $1 ORDER BY lease_until LIMIT $2)
         AND status = 'running' AND lease_until <= $1 ORDER BY sequence"
    );
    let expired = session.query(EXPIRED, &[&now.as_millis(), &MANY]).await?;
    let mut told = Vec::new();
    for row in &expired {
        let live = live(row)?;
        let due = now.after(delay(live.tries.lost + 1));
        let back = Release { reason: LOST.to_owned(), due, now, counts: true };
        told.extend(live.take_back(session, &back).await?.1);
    }
    if !expired.is_empty() {
        notify(session).await?;
    }
    Ok((told, signed(expired.len() as u64) == MANY))
}

/// Takes back every task of workers that are not among these.
pub(super) async fn release_except(
    session: &mut Session,
    alive: &[WorkerId],
    now: Timestamp,
) -> Result<Vec<Event>, Trouble> {
    const OTHERS: &str = live!("status = 'running' AND worker_id <> ALL($1) ORDER BY sequence");
    let alive: Vec<&str> = alive.iter().map(|worker| worker.0.as_str()).collect();
    let mut told = Vec::new();
    for row in &session.query(OTHERS, &[&alive]).await? {
        let back = Release { reason: LOST.to_owned(), due: now, now, counts: true };
        told.extend(live(row)?.take_back(session, &back).await?.1);
    }
    notify(session).await?;
    Ok(told)
}

async fn find(session: &mut Session, task: TaskId) -> Result<Option<Live>, Trouble> {
    const ONE: &str = live!("id = $1");
    session.first(ONE, &[&task.uuid()]).await?.as_ref().map(live).transpose()
}

/// Asks for a task's end.
pub(super) async fn cancel(
    session: &mut Session,
    task: TaskId,
    now: Timestamp,
) -> Result<Cancellation, Trouble> {
    let Some(live) = find(session, task).await? else { return Ok(Cancellation::Unknown) };
    match live.status {
        TaskStatus::Queued => {
            let told = vec![status_changed(TaskStatus::Cancelled, [], now)];
            let events = live.end(session, TaskStatus::Cancelled, None, told, now).await?;
            Ok(Cancellation::Cancelled(events))
        }
        TaskStatus::Running => {
            const ASK: &str =
                "UPDATE task_executions SET cancel_requested = true WHERE sequence = $1";
            session.execute(ASK, &[&live.sequence]).await?;
            Ok(Cancellation::Requested)
        }
        TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Cancelled
        | TaskStatus::TimedOut
        | TaskStatus::Dead => Ok(Cancellation::Finished(live.status)),
    }
}

/// Ends a task that waits, as failed, and forgets its idempotency key.
pub(super) async fn fail_queued(
    session: &mut Session,
    task: TaskId,
    error: &str,
    now: Timestamp,
) -> Result<Option<Vec<Event>>, Trouble> {
    match find(session, task).await? {
        Some(live) if live.status == TaskStatus::Queued => {
            session.execute("DELETE FROM replies WHERE task_id = $1", &[&task.uuid()]).await?;
            let (status, told) = ended(TaskStatus::Failed, error, now);
            let events = live.end(session, status, Some(error.to_owned()), told, now).await?;
            Ok(Some(events))
        }
        _ => Ok(None),
    }
}
