//! Where the service keeps its tasks, and how processes tell each other of them.

use std::path::Path;
use std::sync::Arc;

use carrel_domain::SystemClock;
use carrel_service::{Bus, EventHub, LocalBus, RedisBus, RedisService, Tasks};
use carrel_store::Store;
use tokio_util::sync::CancellationToken;

use super::settings::{Settings, Shared};
use crate::database::Database;
use crate::failure::Failure;

/// Where the service keeps its tasks, and how processes tell each other of them.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) tasks: Tasks,
    database: Option<Database>,
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
        let store = super::data::database(data)?;
        Ok(Self { tasks: tasks(Arc::new(store)), database: None, redis: None })
    }

    /// Prepares to use servers.
    pub(crate) fn shared(shared: &Shared, stop: &CancellationToken) -> Result<Self, Failure> {
        let database = Database::open(&shared.database)?;
        let (bus, redis): (Arc<dyn Bus>, _) = match &shared.redis {
            Some(address) => {
                let (bus, service) = RedisBus::new(address, stop.clone())?;
                (Arc::new(bus), Some(service))
            }
            None => (Arc::new(LocalBus { shared_store: true }), None),
        };
        let tasks =
            tasks(Arc::new(database.postgres.clone())).with_bus(bus, shared.on_enqueue_failure);
        Ok(Self { tasks, database: Some(database), redis })
    }

    /// Tells whether other processes use the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.database.is_some()
    }

    /// Takes what keeps the bus going.
    pub(crate) fn take_bus(&mut self) -> Option<RedisService> {
        self.redis.take()
    }

    /// Waits until the store is up to date and answers. Returns false if `stop` came first.
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
