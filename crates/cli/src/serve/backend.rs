//! Where the service keeps its tasks, and how processes tell each other of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::SystemClock;
use carrel_service::{Alone, Bus, Feed, Redis, RedisService, Tasks};
use carrel_store::{Postgres, PostgresOptions, Sqlite, SqliteOptions, Store};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::settings::{Settings, Shared};
use crate::failure::Failure;

/// The shortest and the longest wait before a database that is away is asked again.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Where the service keeps its tasks, and how processes tell each other of them.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) tasks: Tasks,
    postgres: Option<Postgres>,
    migrate: bool,
    redis: Option<RedisService>,
}

impl Backend {
    /// Opens what the settings name: a file in the data directory, or servers, which may be away.
    pub(crate) fn open(
        settings: &Settings,
        data: &Path,
        stop: &CancellationToken,
    ) -> Result<Self, Failure> {
        if let Some(shared) = &settings.shared {
            return Self::shared(shared, stop);
        }
        let store = Sqlite::open(&SqliteOptions { path: data.join("carrel.db") })?;
        Ok(Self { tasks: tasks(Arc::new(store)), postgres: None, migrate: false, redis: None })
    }

    /// Prepares to use servers.
    pub(crate) fn shared(shared: &Shared, stop: &CancellationToken) -> Result<Self, Failure> {
        let options = PostgresOptions { url: shared.database.clone() };
        let postgres = Postgres::open(&options)?;
        let (bus, redis): (Arc<dyn Bus>, _) = match &shared.redis {
            Some(address) => {
                let (bus, service) = Redis::new(address, stop.clone())?;
                (Arc::new(bus), Some(service))
            }
            None => (Arc::new(Alone { among_others: true }), None),
        };
        let tasks = tasks(Arc::new(postgres.clone())).over(bus, shared.on_enqueue_failure);
        Ok(Self { tasks, postgres: Some(postgres), migrate: shared.migrate, redis })
    }

    /// Tells whether other processes use the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.postgres.is_some()
    }

    /// Takes what keeps the bus going.
    pub(crate) fn take_bus(&mut self) -> Option<RedisService> {
        self.redis.take()
    }

    /// Waits until the store is up to date and answers. Returns false if `stop` came first.
    pub(crate) async fn ready(&self, stop: &CancellationToken) -> bool {
        let Some(postgres) = &self.postgres else { return true };
        let (mut wait, longest) = TRY_AGAIN;
        loop {
            let asked = async {
                if self.migrate {
                    for done in postgres.migrate().await? {
                        info!(?done, "brought the database up to date");
                    }
                }
                postgres.ping().await
            };
            match asked.await {
                Ok(()) => return true,
                Err(error) => {
                    let error = carrel_domain::message_of(&error);
                    warn!(%error, "the database cannot be used yet, trying again");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(longest),
            }
        }
    }
}

fn tasks(store: Arc<dyn Store>) -> Tasks {
    Tasks::new(store, Feed::default(), Arc::new(SystemClock))
}
