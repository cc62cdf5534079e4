//! The store and the bus of the service: SQLite in one process, or PostgreSQL and Redis in many.

use std::path::Path;
use std::sync::Arc;

use carrel_config::environment::REDIS_URL;
use carrel_domain::SystemClock;
use carrel_service::{Bus, EventHub, LocalBus, RedisBus, RedisService, Tasks};
use carrel_store::Store;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::settings::{Settings, SharedBackend};
use crate::database::Database;
use crate::error::{CliError, Result};

/// The queue of tasks with the connections behind it.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) tasks: Tasks,
    database: Option<Database>,
    /// The service that keeps the bus connected, to be run once.
    pub(super) redis: Option<RedisService>,
}

impl Backend {
    /// Opens the store that the settings name. Servers are not contacted yet.
    pub(crate) fn open(settings: &Settings, data: &Path, stop: &CancellationToken) -> Result<Self> {
        if let Some(shared) = &settings.shared {
            return Self::shared(shared, stop);
        }
        let store = super::data::database(data)?;
        Ok(Self { tasks: tasks(Arc::new(store)), database: None, redis: None })
    }

    /// Prepares a shared store and its bus without contacting them.
    pub(crate) fn shared(shared: &SharedBackend, stop: &CancellationToken) -> Result<Self> {
        let database = Database::open(&shared.database)?;
        let (bus, redis): (Arc<dyn Bus>, _) = match &shared.redis {
            Some(address) => {
                let (bus, service) = RedisBus::new(address, stop.clone()).map_err(|error| {
                    CliError::usage(&error)
                        .context(format_args!("REDIS_URL cannot be used; {error}"))
                        .with(json!({ "variable": REDIS_URL }))
                })?;
                (Arc::new(bus), Some(service))
            }
            None => (Arc::new(LocalBus { shared_store: true }), None),
        };
        let tasks =
            tasks(Arc::new(database.postgres.clone())).with_bus(bus, shared.on_enqueue_failure);
        Ok(Self { tasks, database: Some(database), redis })
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.database.is_some()
    }

    /// Waits until the schema is current and the store answers. Returns false if `stop` was cancelled
    /// first.
    pub(crate) async fn ready(&self, stop: &CancellationToken) -> bool {
        match &self.database {
            Some(database) => database.ready(stop).await,
            None => true,
        }
    }
}

fn tasks(store: Arc<dyn Store>) -> Tasks {
    Tasks::new(store, EventHub::default(), Arc::new(SystemClock))
}
