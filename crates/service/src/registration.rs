//! Registers a worker in the store and on the bus, so that other processes can find it.
//!
//! A server that gets a request for a workspace on another volume looks up a live worker of that volume
//! and forwards the request. Liveness is the age of the registration: a worker renews it every two
//! seconds and removes it when it stops; one that died stays listed for at most [`WORKER_TTL`]. Leases
//! of tasks do not depend on it.

use std::time::Duration;

use carrel_store::WorkerRecord;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::tasks::Tasks;

const RENEW_EVERY: Duration = Duration::from_secs(2);

/// The age after which a registration counts as that of a dead worker: five missed renewals.
pub const WORKER_TTL: Duration = Duration::from_secs(10);

/// Renews the registration of a worker until `stop` is cancelled, and then removes it.
pub(crate) async fn keep_registered(tasks: &Tasks, worker: WorkerRecord, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(RENEW_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = ticks.tick() => renew(tasks, &worker).await,
        }
    }
    if let Err(error) = tasks.store.deregister_worker(&worker.id).await {
        debug!(%error, "could not deregister the worker; its registration expires");
    }
}

async fn renew(tasks: &Tasks, worker: &WorkerRecord) {
    let renewed = WorkerRecord { seen_at: tasks.clock.now(), ..worker.clone() };
    if let Err(error) = tasks.store.register_worker(renewed).await {
        warn!(%error, "could not register the worker, trying again");
    }
    let running = tasks.hub.running_tasks();
    if let Err(error) = tasks.bus.announce(&worker.id, &running).await {
        debug!(%error, "could not announce the worker on the bus");
    }
}
