//! Sessions: connections to the server with their settings and prepared statements, and a pool of them.
//!
//! A session is opened when it is needed and checks that the schema is the one of this version. It is
//! closed as soon as an operation on it failed, which also rolls back its open transaction. Every session
//! sets timeouts for statements, locks and idle transactions, so that a process that hangs in a
//! transaction cannot keep the lock of the queue from the others for longer than five seconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrel_domain::sync;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Statement as Prepared};
use tokio_util::task::AbortOnDropHandle;

use super::error::PgError;
use super::tls::{TlsMode, connect};
use super::values::rows;
use super::{OUTAGE_LIMIT, QUEUE_LOCK, migrate};
use crate::database::{self, Statement};
use crate::value::{FromRow, Row, Value};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Sessions of the pool; the lanes, the listener and a tenure have their own.
const MAX_SESSIONS: usize = 6;

/// The settings of every session. `synchronous_commit` is raised to `on` where the server's default is
/// weaker: a commit has to survive a power cut.
const SETTINGS: &str = "SET statement_timeout = '10s'; SET lock_timeout = '4s';
    SET idle_in_transaction_session_timeout = '5s'; SET jit = off;
    SET default_transaction_isolation = 'read committed';
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// The address of a server. Its `Debug` form shows no password.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) config: Arc<Config>,
    pub(super) tls: TlsMode,
}

impl Server {
    /// Opens a session, unless the schema is not the one of this version.
    pub(super) async fn connect(&self) -> Result<PgSession, PgError> {
        let session = self.connect_to_any_schema().await?;
        migrate::check(&session.client).await?;
        Ok(session)
    }

    pub(super) async fn connect_to_any_schema(&self) -> Result<PgSession, PgError> {
        let connecting = async {
            let (client, connection) = connect(&self.config, &self.tls).await?;
            let driver = tokio::spawn(async move {
                // Pending queries get the error of the connection.
                let _ = connection.await;
            });
            let driver = AbortOnDropHandle::new(driver);
            let session = PgSession { client, statements: HashMap::new(), _driver: driver };
            session.client.batch_execute(SETTINGS).await?;
            Ok(session)
        };
        let timed_out = |_| PgError::transient("the server did not accept a connection in time");
        timeout(CONNECT_TIMEOUT, connecting).await.map_err(timed_out)?
    }
}

#[derive(Debug)]
pub(super) struct PgSession {
    pub(super) client: Client,
    statements: HashMap<&'static str, Prepared>,
    /// The task that does the I/O of the connection.
    _driver: AbortOnDropHandle<()>,
}

/// Returns values in the form that the driver takes.
pub(super) fn parameters(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl PgSession {
    /// Returns a prepared statement, preparing it at its first use.
    pub(super) async fn statement(&mut self, text: &'static str) -> Result<Prepared, PgError> {
        if let Some(known) = self.statements.get(text) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(text).await?;
        self.statements.insert(text, statement.clone());
        Ok(statement)
    }

    pub(super) async fn rows(
        &mut self,
        text: &'static str,
        values: &[Value],
    ) -> Result<Vec<Row>, PgError> {
        let statement = self.statement(text).await?;
        rows(&self.client.query(&statement, &parameters(values)).await?)
    }

    pub(super) async fn all<T: FromRow>(
        &mut self,
        text: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, PgError> {
        Ok(database::read(self.rows(text, &values).await?)?)
    }

    pub(super) async fn first<T: FromRow>(
        &mut self,
        text: &'static str,
        values: Vec<Value>,
    ) -> Result<Option<T>, PgError> {
        Ok(self.all(text, values).await?.into_iter().next())
    }

    /// Writes, and returns the number of changed rows.
    pub(super) async fn execute(
        &mut self,
        text: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, PgError> {
        let statement = self.statement(text).await?;
        Ok(self.client.execute(&statement, &parameters(&values)).await?)
    }

    pub(super) async fn execute_all(
        &mut self,
        statements: &[Statement],
    ) -> Result<Vec<Vec<Row>>, PgError> {
        let mut results = Vec::with_capacity(statements.len());
        for statement in statements {
            let rows = self.rows(statement.text, &statement.values).await?;
            statement.check(&rows)?;
            results.push(rows);
        }
        Ok(results)
    }

    /// Begins a transaction and takes the lock of the queue.
    pub(super) async fn begin_queue_transaction(&self) -> Result<(), PgError> {
        self.client.batch_execute("BEGIN").await?;
        Ok(self.client.batch_execute(QUEUE_LOCK).await?)
    }

    pub(super) async fn begin(&self) -> Result<(), PgError> {
        Ok(self.client.batch_execute("BEGIN").await?)
    }

    pub(super) async fn commit(&self) -> Result<(), PgError> {
        Ok(self.client.batch_execute("COMMIT").await?)
    }
}

/// The pool of sessions for operations outside of the lanes.
#[derive(Clone, Debug)]
pub(super) struct SessionPool {
    pub(super) server: Server,
    idle: Arc<Mutex<Vec<PgSession>>>,
    permits: Arc<Semaphore>,
}

/// A session of the pool. Returned by [`PooledSession::release`] alone; dropping it closes the connection and
/// rolls back an open transaction.
pub(super) struct PooledSession {
    pub(super) session: PgSession,
    idle: Arc<Mutex<Vec<PgSession>>>,
    _permit: OwnedSemaphorePermit,
}

impl SessionPool {
    pub(super) fn new(server: Server) -> Self {
        Self { server, idle: Arc::default(), permits: Arc::new(Semaphore::new(MAX_SESSIONS)) }
    }

    pub(super) async fn acquire(&self) -> Result<PooledSession, PgError> {
        let overloaded = |_| PgError::transient("too many operations wait for the database");
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = timeout(OUTAGE_LIMIT, permit).await.map_err(overloaded)?;
        let permit = permit.map_err(PgError::transient)?;
        let idle = sync::lock(&self.idle).pop().filter(|session| !session.client.is_closed());
        let session = match idle {
            Some(session) => session,
            None => self.server.connect().await?,
        };
        Ok(PooledSession { session, idle: Arc::clone(&self.idle), _permit: permit })
    }
}

impl PooledSession {
    pub(super) fn release(self) {
        sync::lock(&self.idle).push(self.session);
    }
}
