//! The bus over Redis, for processes on any number of machines.
//!
//! One list for each priority, and for each priority and volume, holds hints; a worker pops from the
//! lists of its volume and from the common ones, in order of priority. One channel for each task carries
//! its events, and one for all carries cancellations. A hash for each task holds its status and a key
//! for each worker its liveness, both for other programs. The names of keys, lists and channels and the
//! JSON in them are interface (`keys`).
//!
//! Redis may lose everything at any time. Hints come back with the sweep, which runs at once after a
//! reconnection; subscribers read the store when the connection breaks and when it returns. Nothing here
//! needs persistence, and no operation of the service waits for Redis except the push of a hint, which
//! gives up after a second.

mod address;
mod connection;
mod hint_lists;
mod keys;
mod outbox;
mod subscriber;

use std::sync::Arc;

use async_trait::async_trait;
use carrel_domain::{Secret, TaskId, VolumeId};
use carrel_store::{Event, WorkerId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::connection::Connection;
pub use self::hint_lists::HintReader;
use self::outbox::{Outbox, OutgoingMessage};
use super::{Bus, BusError, BusHealth, Hint};
use crate::event_hub::EventHub;

/// A `REDIS_URL` that cannot be used. Never contains the URL, which may hold a password.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected redis://[[user]:password@]host[:port][/number], or rediss:// for an encrypted connection: {0}"
)]
pub struct RedisAddressError(String);

/// The handle of the bus. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RedisBus {
    connection: Arc<Connection>,
    outbox: mpsc::Sender<OutgoingMessage>,
    stop: CancellationToken,
}

/// The background part of the bus: it connects, sends and receives while [`RedisService::run`] runs.
#[derive(Debug)]
pub struct RedisService {
    connection: Arc<Connection>,
    outbox: Outbox,
}

impl RedisBus {
    /// Parses the URL and prepares a bus, without connecting. `stop` ends the readers of hints.
    pub fn new(
        address: &Secret,
        stop: CancellationToken,
    ) -> Result<(Self, RedisService), RedisAddressError> {
        let connection = Arc::new(Connection::new(address)?);
        let (sender, outbox) = Outbox::new(Arc::clone(&connection));
        let bus = Self { connection: Arc::clone(&connection), outbox: sender, stop };
        Ok((bus, RedisService { connection, outbox }))
    }
}

impl RedisService {
    /// Runs until `stop` is cancelled: keeps the connection, sends queued messages, and passes the
    /// messages of other processes on to the hub.
    pub async fn run(self, hub: EventHub, stop: CancellationToken) {
        let Self { connection, outbox } = self;
        let working = async {
            tokio::join!(
                connection.maintain(),
                outbox.run(),
                subscriber::run(&connection, &hub),
                subscriber::reload_on_disconnect(&connection, &hub)
            );
        };
        tokio::select! {
            () = working => {}
            () = stop.cancelled() => {}
        }
    }
}

#[async_trait]
impl Bus for RedisBus {
    async fn offer(&self, hints: &[Hint]) -> Result<(), BusError> {
        hint_lists::offer(&self.connection, hints).await
    }

    async fn replenish(&self, queued: &[Hint]) -> Result<(), BusError> {
        hint_lists::replenish(&self.connection, queued).await
    }

    fn publish(&self, events: &[Event]) {
        for event in events {
            // A full outbox drops the event; subscribers read it from the store.
            let _ = self.outbox.try_send(OutgoingMessage::Event(Box::new(event.clone())));
        }
    }

    fn cancel(&self, task: TaskId) {
        let _ = self.outbox.try_send(OutgoingMessage::Cancel(task));
    }

    async fn announce(&self, worker: &WorkerId, running: &[TaskId]) -> Result<(), BusError> {
        let heartbeat = keys::heartbeat(worker);
        let tasks = keys::running(worker);
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        pipeline.cmd("SET").arg(heartbeat).arg(now).arg("EX").arg(keys::WORKER_SECONDS).ignore();
        pipeline.cmd("DEL").arg(&tasks).ignore();
        if !running.is_empty() {
            let running: Vec<_> = running.iter().map(ToString::to_string).collect();
            pipeline.cmd("SADD").arg(&tasks).arg(running).ignore();
            pipeline.cmd("EXPIRE").arg(&tasks).arg(keys::WORKER_SECONDS).ignore();
        }
        self.connection.execute(&pipeline).await
    }

    fn hints(&self, volume: VolumeId) -> Option<HintReader> {
        Some(HintReader::start(Arc::clone(&self.connection), volume, self.stop.clone()))
    }

    async fn take_hint(&self, volume: VolumeId) -> Option<Hint> {
        hint_lists::take(&self.connection, volume).await.ok().flatten()
    }

    fn needs_sweep(&self) -> bool {
        self.connection.health() == BusHealth::Available
    }

    fn delivers_all(&self) -> bool {
        self.connection.health() == BusHealth::Available
    }

    fn health(&self) -> BusHealth {
        self.connection.health()
    }

    async fn reconnected(&self) {
        self.connection.reconnected().await;
    }
}
