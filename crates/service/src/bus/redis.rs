//! A bus over Redis, for processes on any number of machines.
//!
//! The names of keys, lists and channels are interface: other programs look at them.

mod address;
mod link;
mod lists;
mod names;
mod news;
mod readers;

use std::sync::Arc;

use async_trait::async_trait;
use carrel_domain::{Secret, TaskId, VolumeId};
use carrel_store::{Event, WorkerId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::link::Link;
pub use self::lists::HintReader;
use self::news::{News, Outbox};
use super::{Bus, BusError, BusHealth, Hint};
use crate::event_hub::EventHub;

/// Why an address of Redis cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "it is redis://[[user]:password@]host[:port][/number], or rediss:// for an encrypted connection: {0}"
)]
pub struct RedisAddressError(String);

/// The bus. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RedisBus {
    link: Arc<Link>,
    outbox: mpsc::Sender<News>,
    stop: CancellationToken,
}

/// What keeps the bus going.
#[derive(Debug)]
pub struct RedisService {
    link: Arc<Link>,
    outbox: Outbox,
}

impl RedisBus {
    /// Takes an address, and connects to nothing yet. `stop` ends what hands out hints.
    pub fn new(
        address: &Secret,
        stop: CancellationToken,
    ) -> Result<(Self, RedisService), RedisAddressError> {
        let link = Arc::new(Link::new(address)?);
        let (sender, outbox) = Outbox::new(Arc::clone(&link));
        let bus = Self { link: Arc::clone(&link), outbox: sender, stop };
        Ok((bus, RedisService { link, outbox }))
    }
}

impl RedisService {
    /// Runs until `stop` is cancelled: connects, again and again if need be; sends what there is to
    /// tell, and passes on to the hub what others tell.
    pub async fn run(self, hub: EventHub, stop: CancellationToken) {
        let Self { link, outbox } = self;
        let working = async {
            tokio::join!(
                link.keep(),
                outbox.run(),
                readers::run(&link, &hub),
                readers::warn(&link, &hub)
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
        lists::offer(&self.link, hints).await
    }

    async fn top_up(&self, waiting: &[Hint]) -> Result<(), BusError> {
        lists::top_up(&self.link, waiting).await
    }

    fn tell(&self, events: &[Event]) {
        for event in events {
            // When too much waits, readers look into the store.
            let _ = self.outbox.try_send(News::Event(Box::new(event.clone())));
        }
    }

    fn cancel(&self, task: TaskId) {
        let _ = self.outbox.try_send(News::Cancel(task));
    }

    async fn show(&self, worker: &WorkerId, running: &[TaskId]) -> Result<(), BusError> {
        let (heartbeat, tasks) = (names::heartbeat(worker), names::running(worker));
        let mut orders = redis::pipe();
        orders.atomic();
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        orders.cmd("SET").arg(heartbeat).arg(now).arg("EX").arg(names::WORKER_SECONDS).ignore();
        orders.cmd("DEL").arg(&tasks).ignore();
        if !running.is_empty() {
            let running: Vec<_> = running.iter().map(ToString::to_string).collect();
            orders.cmd("SADD").arg(&tasks).arg(running).ignore();
            orders.cmd("EXPIRE").arg(&tasks).arg(names::WORKER_SECONDS).ignore();
        }
        self.link.order(&orders).await
    }

    fn hints(&self, volume: VolumeId) -> Option<HintReader> {
        Some(HintReader::begin(Arc::clone(&self.link), volume, self.stop.clone()))
    }

    async fn spare_hint(&self, volume: VolumeId) -> Option<Hint> {
        lists::take(&self.link, volume).await.ok().flatten()
    }

    fn needs_sweep(&self) -> bool {
        self.link.health() == BusHealth::Available
    }

    fn hears_all(&self) -> bool {
        self.link.health() == BusHealth::Available
    }

    fn health(&self) -> BusHealth {
        self.link.health()
    }

    async fn returned(&self) {
        self.link.returned().await;
    }
}
