//! Who may write about a scope.
//!
//! The one who may has a connection that holds an advisory lock of the server, which is free again as soon
//! as that process is gone. The lock alone would not do: a connection can break without its owner being
//! gone. So each tenure has a number, and every transaction that writes looks whether it is the last one.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::attempt::{PAUSE, TRY, again, late};
use super::rows::{self, text};
use super::session::{Server, Session};
use super::trouble::Trouble;
use crate::error::StoreError;
use crate::tenure::{Tenure, TenureOutcome};

/// How long the server may take to notice that a holder was killed.
const NOTICE: Duration = Duration::from_secs(2);

/// How often a holder looks whether it still is one.
const LOOK: Duration = Duration::from_secs(1);

/// Makes the server notice within half a minute that the machine of a holder is gone.
const WATCHED: &str = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3";

const LOCK: &str = "SELECT pg_try_advisory_lock(
    hashtextextended(current_schema() || ' conductor ' || $1, 4850713926108734468))";

/// Takes a scope, unless somebody holds it.
pub(super) async fn acquire(
    server: &Server,
    scope: &str,
    holder: &str,
    now: Timestamp,
) -> Result<TenureOutcome, StoreError> {
    let begun = Instant::now();
    loop {
        let taking = timeout(TRY, try_take(server, scope, holder, now));
        match taking.await.map_err(late).flatten() {
            Ok(Attempt::TenureOutcome(session, number)) => {
                return Ok(TenureOutcome::Acquired(keep(server, scope, number, *session)));
            }
            Ok(Attempt::Held(by)) if begun.elapsed() >= NOTICE => {
                return Ok(TenureOutcome::Held { by });
            }
            Ok(Attempt::Held(_)) => sleep(PAUSE).await,
            Err(trouble) if again(&trouble, begun).await => {}
            Err(trouble) => return Err(trouble.into()),
        }
    }
}

enum Attempt {
    TenureOutcome(Box<Session>, u64),
    Held(String),
}

async fn try_take(
    server: &Server,
    scope: &str,
    holder: &str,
    now: Timestamp,
) -> Result<Attempt, Trouble> {
    const TAKE: &str = "INSERT INTO conductor_tenures (scope, number, holder, taken_at)
        VALUES ($1, 1, $2, $3)
        ON CONFLICT (scope) DO UPDATE SET number = conductor_tenures.number + 1,
            holder = excluded.holder, taken_at = excluded.taken_at
        RETURNING number";
    let mut session = connect(server).await?;
    if !lock(&mut session, scope).await? {
        return Ok(Attempt::Held(last(&mut session, scope).await?.1));
    }
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&text(scope), &text(holder), &now.as_millis()];
    let taken = session.first(TAKE, &values).await?;
    let number = taken.map_or(Ok(0), |row| rows::unsigned(&row, 0))?;
    Ok(Attempt::TenureOutcome(Box::new(session), number))
}

async fn connect(server: &Server) -> Result<Session, Trouble> {
    let session = server.connect().await?;
    session.client.batch_execute(WATCHED).await?;
    Ok(session)
}

async fn lock(session: &mut Session, scope: &str) -> Result<bool, Trouble> {
    let locked = session.first(LOCK, &[&text(scope)]).await?;
    locked.map_or(Ok(false), |row| rows::get(&row, 0))
}

/// Returns the last tenure of a scope: its number and whose it is.
async fn last(session: &mut Session, scope: &str) -> Result<(u64, String), Trouble> {
    const LAST: &str = "SELECT number, holder FROM conductor_tenures WHERE scope = $1";
    let found = session.first(LAST, &[&text(scope)]).await?;
    let unknown = || (0, "one that has not said who it is".to_owned());
    found.map_or_else(|| Ok(unknown()), |row| Ok((rows::unsigned(&row, 0)?, rows::get(&row, 1)?)))
}

/// Refuses, in a transaction, whoever is not the last to have taken a scope. Nobody takes it before that
/// transaction is over.
pub(super) async fn check(session: &mut Session, tenure: &Tenure) -> Result<(), Trouble> {
    const LAST: &str = "SELECT number, holder FROM conductor_tenures WHERE scope = $1 FOR SHARE";
    let found = session.first(LAST, &[&text(tenure.scope())]).await?;
    let gone = || rows::unreadable(format!("nothing, where the tenure of {} was", tenure.scope()));
    let row = found.ok_or_else(gone)?;
    Ok(tenure.check(rows::unsigned(&row, 0)?, rows::get(&row, 1)?)?)
}

fn keep(server: &Server, scope: &str, number: u64, session: Session) -> Tenure {
    let (lost, taken) = watch::channel(None);
    let keeper = Keeper {
        server: server.clone(),
        scope: scope.to_owned(),
        number,
        session: Some(session),
        locked: true,
    };
    let keeping = Keeping(tokio::spawn(keeper.run(lost)));
    Tenure::kept(scope, number, taken, Arc::new(keeping))
}

/// Keeps a tenure, until it is dropped.
struct Keeping(JoinHandle<()>);

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Holds the lock, and takes it again when its connection was lost.
struct Keeper {
    server: Server,
    scope: String,
    number: u64,
    session: Option<Session>,
    locked: bool,
}

impl Keeper {
    /// Looks from time to time, until somebody else has taken over.
    async fn run(mut self, lost: watch::Sender<Option<String>>) {
        loop {
            sleep(LOOK).await;
            let was_locked = self.locked;
            match timeout(TRY, self.look()).await.map_err(late).flatten() {
                Ok(None) if !was_locked && self.locked => {
                    info!(scope = self.scope, "holds the tracker's issues again");
                }
                Ok(None) => {}
                Ok(Some(by)) => {
                    lost.send_replace(Some(by));
                    return;
                }
                Err(trouble) => {
                    self.session = None;
                    self.locked = false;
                    if was_locked {
                        let error = carrel_domain::message_of(&StoreError::from(trouble));
                        warn!(
                            scope = self.scope,
                            error,
                            "lost the connection that holds the tracker's issues, taking it up again"
                        );
                    }
                }
            }
        }
    }

    /// Looks whether this is the last tenure still. Tells who else has one.
    async fn look(&mut self) -> Result<Option<String>, Trouble> {
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
        let (number, by) = last(&mut session, &self.scope).await?;
        self.session = Some(session);
        Ok((number != self.number).then_some(by))
    }
}
