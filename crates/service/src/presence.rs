//! A worker's signs of life, for those who look for one.

use std::time::Duration;

use carrel_store::WorkerRecord;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::tasks::Tasks;

/// How often a worker says that it is there.
const EVERY: Duration = Duration::from_secs(2);

/// How long a worker counts as there that has said nothing more.
pub const WORKER_TTL: Duration = Duration::from_secs(10);

/// A worker's signs of life.
#[derive(Debug)]
pub(crate) struct Presence {
    pub(crate) tasks: Tasks,
    pub(crate) worker: WorkerRecord,
}

impl Presence {
    /// Gives signs until `stop` is cancelled, and then says that the worker is gone.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = ticks.tick() => self.give_sign().await,
            }
        }
        if let Err(error) = self.tasks.store.deregister_worker(&self.worker.id).await {
            debug!(%error, "could not say that the worker is gone; others notice");
        }
    }

    async fn give_sign(&self) {
        let worker = WorkerRecord { seen_at: self.tasks.clock.now(), ..self.worker.clone() };
        if let Err(error) = self.tasks.store.register_worker(worker).await {
            warn!(%error, "could not say that the worker is there, trying again");
        }
        let running = self.tasks.hub.running_here();
        if let Err(error) = self.tasks.bus.show(&self.worker.id, &running).await {
            debug!(%error, "could not show a sign of life");
        }
    }
}
