//! Connections to the server: made when they are needed, dropped when anything went wrong on them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrel_domain::sync;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Statement};

use super::tls::{Mode, connect};
use super::trouble::Trouble;
use super::{LOCK, PATIENCE, migrate};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(2);

/// Connections beside those of the lanes.
const MAX_SESSIONS: usize = 6;

/// What every connection begins with. A client that hangs in a transaction loses it, so that it keeps
/// nobody from the lock; and whoever is told that something is done finds it done after a power cut.
const BEGINNING: &str = "SET statement_timeout = '10s'; SET lock_timeout = '4s';
    SET idle_in_transaction_session_timeout = '5s'; SET jit = off;
    SET default_transaction_isolation = 'read committed';
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// A server, and how to reach it. Prints without the password.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) config: Arc<Config>,
    pub(super) tls: Mode,
}

impl Server {
    /// Connects, and looks whether the schema is the one that is known here.
    pub(super) async fn connect(&self) -> Result<Session, Trouble> {
        let session = self.connect_to_any_schema().await?;
        migrate::check(&session.client).await?;
        Ok(session)
    }

    pub(super) async fn connect_to_any_schema(&self) -> Result<Session, Trouble> {
        let connecting = async {
            let (client, connection) = connect(&self.config, &self.tls).await?;
            let driver = tokio::spawn(async move {
                // Whoever waits for an answer is told when the connection breaks.
                let _ = connection.await;
            });
            let session = Session { client, statements: HashMap::new(), driver: Driver(driver) };
            session.client.batch_execute(BEGINNING).await?;
            Ok(session)
        };
        let late = |_| Trouble::passing("the server did not answer a connection in time");
        timeout(CONNECT, connecting).await.map_err(late)?
    }
}

/// A connection, with its prepared statements.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Client,
    statements: HashMap<&'static str, Statement>,
    #[expect(dead_code, reason = "held for its end")]
    driver: Driver,
}

/// What carries the bytes of a connection, until it is dropped.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Session {
    /// Returns a statement, prepared once.
    pub(super) async fn statement(&mut self, text: &'static str) -> Result<Statement, Trouble> {
        if let Some(known) = self.statements.get(text) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(text).await?;
        self.statements.insert(text, statement.clone());
        Ok(statement)
    }

    pub(super) async fn query(
        &mut self,
        text: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Trouble> {
        let statement = self.statement(text).await?;
        Ok(self.client.query(&statement, parameters).await?)
    }

    pub(super) async fn first(
        &mut self,
        text: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Option<Row>, Trouble> {
        Ok(self.query(text, parameters).await?.into_iter().next())
    }

    pub(super) async fn execute(
        &mut self,
        text: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<u64, Trouble> {
        let statement = self.statement(text).await?;
        Ok(self.client.execute(&statement, parameters).await?)
    }

    /// Begins a transaction that no other of the queue runs beside.
    pub(super) async fn begin(&self) -> Result<(), Trouble> {
        self.client.batch_execute("BEGIN").await?;
        Ok(self.client.batch_execute(LOCK).await?)
    }

    /// Begins a transaction that has nothing to do with the queue.
    pub(super) async fn begin_beside_the_queue(&self) -> Result<(), Trouble> {
        Ok(self.client.batch_execute("BEGIN").await?)
    }

    pub(super) async fn commit(&self) -> Result<(), Trouble> {
        Ok(self.client.batch_execute("COMMIT").await?)
    }
}

/// Connections for whatever is not done in a lane.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    pub(super) server: Server,
    idle: Arc<Mutex<Vec<Session>>>,
    room: Arc<Semaphore>,
}

/// A connection that is lent. It goes back only by [`Lent::give_back`]; otherwise it is closed, with
/// whatever it had begun.
pub(super) struct Lent {
    pub(super) session: Session,
    idle: Arc<Mutex<Vec<Session>>>,
    _room: OwnedSemaphorePermit,
}

impl Sessions {
    pub(super) fn new(server: Server) -> Self {
        Self { server, idle: Arc::default(), room: Arc::new(Semaphore::new(MAX_SESSIONS)) }
    }

    pub(super) async fn lend(&self) -> Result<Lent, Trouble> {
        let late = |_| Trouble::passing("too much waits for the database");
        let room = timeout(PATIENCE, Arc::clone(&self.room).acquire_owned()).await.map_err(late)?;
        let room = room.map_err(Trouble::passing)?;
        let idle = sync::lock(&self.idle).pop().filter(|session| !session.client.is_closed());
        let session = match idle {
            Some(session) => session,
            None => self.server.connect().await?,
        };
        Ok(Lent { session, idle: Arc::clone(&self.idle), _room: room })
    }
}

impl Lent {
    pub(super) fn give_back(self) {
        sync::lock(&self.idle).push(self.session);
    }
}
