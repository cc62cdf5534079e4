//! Retries of operations outside of the lanes.
//!
//! An operation takes a connection from the pool, runs, and returns the connection only if it succeeded: a
//! connection with an error may have an open transaction. A transient error is retried every 50 ms until the
//! server has been away for [`OUTAGE_LIMIT`]. Macros rather than functions, because a closure that borrows the
//! session across an await cannot be expressed without boxing each call.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::OUTAGE_LIMIT;
use super::error::PgError;

pub(super) const TRY: Duration = Duration::from_secs(5);

/// The time of one attempt that deletes or moves many rows.
pub(super) const LONG_TRY: Duration = Duration::from_secs(12);

pub(super) const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Returns whether to retry an operation that began at `started`, after the delay.
pub(super) async fn should_retry(error: &PgError, started: Instant) -> bool {
    let retry = matches!(error, PgError::Transient(_)) && started.elapsed() < OUTAGE_LIMIT;
    if retry {
        sleep(RETRY_DELAY).await;
    }
    retry
}

pub(super) fn timed_out<T>(_: T) -> PgError {
    PgError::transient("the database did not reply in time")
}

/// Runs an operation on a pooled connection, and retries it.
macro_rules! with_session {
    ($self:ident, |$session:ident| $work:expr) => {
        with_session!($self, TRY, |$session| $work)
    };
    ($self:ident, $limit:ident, |$session:ident| $work:expr) => {{
        use $crate::postgres::error::PgError;
        use $crate::postgres::retry::{self, should_retry, timed_out};
        let started = tokio::time::Instant::now();
        loop {
            let work = async {
                let mut pooled = $self.sessions.acquire().await?;
                let $session = &mut pooled.session;
                let result = $work;
                pooled.release();
                Ok::<_, PgError>(result)
            };
            match tokio::time::timeout(retry::$limit, work).await.map_err(timed_out).flatten() {
                Ok(result) => break Ok(result),
                Err(error) if should_retry(&error, started).await => {}
                Err(error) => break Err(StoreError::from(error)),
            }
        }
    }};
}

/// Runs an operation in a transaction with the lock of the queue.
macro_rules! in_queue_transaction {
    ($self:ident, |$session:ident| $work:expr) => {
        in_queue_transaction!($self, TRY, |$session| $work)
    };
    ($self:ident, $limit:ident, |$session:ident| $work:expr) => {
        $crate::postgres::retry::with_session!($self, $limit, |$session| {
            $session.begin_queue_transaction().await?;
            let result = $work;
            $session.commit().await?;
            result
        })
    };
}

/// Runs an operation in a transaction that does not touch the queue.
macro_rules! in_transaction {
    ($self:ident, |$session:ident| $work:expr) => {
        $crate::postgres::retry::with_session!($self, TRY, |$session| {
            $session.begin().await?;
            let result = $work;
            $session.commit().await?;
            result
        })
    };
}

pub(super) use {in_queue_transaction, in_transaction, with_session};
