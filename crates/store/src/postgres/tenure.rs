//! Tenures of conductors on PostgreSQL.
//!
//! A conductor holds an advisory lock on a connection of its own, which the server frees as soon as that
//! connection ends: at once if the process is killed, within half a minute (TCP keepalive) if its machine
//! disappears. The lock alone is not enough, because a connection can break while its owner lives on. Each
//! tenure therefore increments a number in the database, and every transaction of the journal checks that
//! its tenure is the latest, with a share lock on that row, so that no takeover happens before it commits.
//!
//! A guard task polls once a second. If its connection broke, it opens another and takes the lock again; if
//! the latest number is not its own, another conductor has taken over and the tenure is lost.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::error::PgError;
use super::retry::{RETRY_DELAY, TRY, should_retry, timed_out};
use super::session::{PgSession, Server};
use crate::error::StoreError;
use crate::tenure::{ACQUIRE, LATEST, Tenure, TenureOutcome};
use crate::value::values;

/// The time for which a held scope is retried, since the server may not have noticed yet that the holder was
/// killed.
const RELEASE_GRACE: Duration = Duration::from_secs(2);

const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Keepalive settings by which the server notices within 25 s that the holder's machine is gone.
const KEEPALIVE: &str = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3";

const LOCK: &str = "SELECT pg_try_advisory_lock(
    hashtextextended(current_schema() || ' conductor ' || $1, 4850713926108734468))";

pub(super) async fn acquire(
    server: &Server,
    scope: &str,
    holder: &str,
    now: Timestamp,
) -> Result<TenureOutcome, StoreError> {
    let started = Instant::now();
    loop {
        let acquiring = timeout(TRY, try_acquire(server, scope, holder, now));
        match acquiring.await.map_err(timed_out).flatten() {
            Ok(Attempt::Acquired(session, number)) => {
                return Ok(TenureOutcome::Acquired(guard(server, scope, number, *session)));
            }
            Ok(Attempt::Held(by)) if started.elapsed() >= RELEASE_GRACE => {
                return Ok(TenureOutcome::Held { by });
            }
            Ok(Attempt::Held(_)) => sleep(RETRY_DELAY).await,
            Err(error) if should_retry(&error, started).await => {}
            Err(error) => return Err(error.into()),
        }
    }
}

enum Attempt {
    Acquired(Box<PgSession>, u64),
    Held(String),
}

async fn try_acquire(
    server: &Server,
    scope: &str,
    holder: &str,
    now: Timestamp,
) -> Result<Attempt, PgError> {
    let mut session = connect(server).await?;
    if !lock(&mut session, scope).await? {
        return Ok(Attempt::Held(latest(&mut session, scope).await?.1));
    }
    let number = session.first(ACQUIRE, values![scope, holder, now]).await?.unwrap_or_default();
    Ok(Attempt::Acquired(Box::new(session), number))
}

async fn connect(server: &Server) -> Result<PgSession, PgError> {
    let session = server.connect().await?;
    session.client.batch_execute(KEEPALIVE).await?;
    Ok(session)
}

async fn lock(session: &mut PgSession, scope: &str) -> Result<bool, PgError> {
    Ok(session.first(LOCK, values![scope]).await?.unwrap_or_default())
}

/// Returns the number and the holder of the latest tenure of a scope.
async fn latest(session: &mut PgSession, scope: &str) -> Result<(u64, String), PgError> {
    let found = session.first(LATEST, values![scope]).await?;
    Ok(found.unwrap_or_else(|| (0, "an unnamed conductor".to_owned())))
}

/// Fails unless the tenure is the latest of its scope. Inside a transaction, the share lock keeps it the latest
/// until the transaction ends.
pub(super) async fn check(session: &mut PgSession, tenure: &Tenure) -> Result<(), PgError> {
    const LATEST: &str = "SELECT number, holder FROM conductor_tenures WHERE scope = $1 FOR SHARE";
    Ok(tenure.check(session.first(LATEST, values![tenure.scope()]).await?)?)
}

fn guard(server: &Server, scope: &str, number: u64, session: PgSession) -> Tenure {
    let (lost, successor) = watch::channel(None);
    let guard = Guard {
        server: server.clone(),
        scope: scope.to_owned(),
        number,
        session: Some(session),
        locked: true,
    };
    let task = AbortOnDropHandle::new(tokio::spawn(guard.run(lost)));
    Tenure::guarded(scope, number, successor, Arc::new(task))
}

/// Holds the lock, and takes it again after its connection broke.
struct Guard {
    server: Server,
    scope: String,
    number: u64,
    session: Option<PgSession>,
    locked: bool,
}

impl Guard {
    /// Checks once a second until another conductor has taken over.
    async fn run(mut self, lost: watch::Sender<Option<String>>) {
        loop {
            sleep(CHECK_EVERY).await;
            let was_locked = self.locked;
            match timeout(TRY, self.check()).await.map_err(timed_out).flatten() {
                Ok(None) if !was_locked && self.locked => {
                    info!(scope = self.scope, "holds the tenure again");
                }
                Ok(None) => {}
                Ok(Some(by)) => {
                    lost.send_replace(Some(by));
                    return;
                }
                Err(error) => {
                    self.session = None;
                    self.locked = false;
                    if was_locked {
                        let error = carrel_domain::message_of(&StoreError::from(error));
                        warn!(
                            scope = self.scope,
                            error, "lost the connection that holds the tenure, reconnecting"
                        );
                    }
                }
            }
        }
    }

    /// Returns the successor if this is no longer the latest tenure.
    async fn check(&mut self) -> Result<Option<String>, PgError> {
        let usable = self.session.take().filter(|session| !session.client.is_closed());
        let mut session = if let Some(session) = usable {
            session
        } else {
            self.locked = false;
            connect(&self.server).await?
        };
        if !self.locked {
            self.locked = lock(&mut session, &self.scope).await?;
        }
        let (number, by) = latest(&mut session, &self.scope).await?;
        self.session = Some(session);
        Ok((number != self.number).then_some(by))
    }
}
