//! The periodic sweep: lease takeover, hints for tasks that were overlooked, and removal of old records.
//!
//! Every second the sweep releases tasks whose lease has expired: their worker died, hung, or cannot
//! reach the store. A released task is queued again after a back-off, or becomes `dead` when it was its
//! last attempt; the old worker's writes are refused from then on, because the attempt number has
//! changed. Any number of processes may sweep the same store, since each release is one
//! compare-and-set transaction.
//!
//! Where workers wait for hints on a bus, the sweep also offers tasks that have been due for a second:
//! their hint was lost, or was never sent because the bus was away. Every ten minutes replies and
//! finished tasks beyond their retention are deleted. A failed sweep is logged and repeated at the next
//! tick; the only cost is delay.

use std::time::Duration;

use carrel_domain::Timestamp;
use carrel_store::{StoreError, WorkerId};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::backoff;
use crate::bus::Hint;
use crate::limits::REPLY_RETENTION;
use crate::tasks::Tasks;

const EVERY: Duration = Duration::from_secs(1);

/// The time after which a queued task that is due counts as overlooked by the bus.
const OVERDUE: Duration = Duration::from_secs(1);

/// Tasks that are offered in one sweep.
const MAX_OFFERED: u32 = 256;

/// Sweeps between two deletions of old records: ten minutes.
const DELETE_EVERY: u32 = 600;

/// The periodic maintenance of a store's queue.
#[derive(Clone, Debug)]
pub struct Sweep {
    tasks: Tasks,
    retention: Duration,
}

impl Sweep {
    /// Creates a sweep that keeps finished tasks for `retention`.
    pub fn new(tasks: Tasks, retention: Duration) -> Self {
        Self { tasks, retention }
    }

    /// Sweeps every second and after each reconnection of the bus, until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sweeps = 0_u32;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
                // Redis may have lost its lists: offer what is queued without delay.
                () = self.tasks.bus.reconnected() => {}
            }
            if let Err(error) = self.release_expired().await {
                warn!(%error, "could not release expired leases, trying again");
            }
            if let Err(error) = self.offer_overlooked().await {
                warn!(%error, "could not offer queued tasks, trying again");
            }
            if sweeps.is_multiple_of(DELETE_EVERY)
                && let Err(error) = self.delete_old().await
            {
                warn!(%error, "could not delete old records, trying again");
            }
            sweeps = sweeps.wrapping_add(1);
        }
    }

    /// Releases the tasks of all workers but `alive`, without waiting for their leases. Only for a store
    /// that no other process uses: there a worker that is not of this process is dead.
    pub async fn release_except(&self, alive: &[WorkerId]) -> Result<(), StoreError> {
        let now = self.tasks.clock.now();
        let events = self.tasks.store.release_except(alive, now).await?;
        if !events.is_empty() {
            info!(events = events.len(), "released the tasks of workers that are gone");
        }
        self.tasks.publish(&events);
        Ok(())
    }

    /// Releases every task whose lease has expired.
    pub async fn release_expired(&self) -> Result<(), StoreError> {
        let now = self.tasks.clock.now();
        let events = self.tasks.store.release_expired(now, backoff::after_lost_attempts).await?;
        self.tasks.publish(&events);
        Ok(())
    }

    /// Offers hints for tasks that have been due for a second, if the bus works with hints.
    pub async fn offer_overlooked(&self) -> Result<(), StoreError> {
        if !self.tasks.bus.needs_sweep() {
            return Ok(());
        }
        let due = before(self.tasks.clock.now(), OVERDUE);
        let queued = self.tasks.store.queued_tasks(due, MAX_OFFERED).await?;
        let hints: Vec<_> = queued.into_iter().map(Hint::new).collect();
        // While the bus is away, workers poll the store.
        let _ = self.tasks.bus.replenish(&hints).await;
        Ok(())
    }

    async fn delete_old(&self) -> Result<(), StoreError> {
        let now = self.tasks.clock.now();
        let before = |age| before(now, age);
        self.tasks.store.delete_before(before(REPLY_RETENTION), before(self.retention)).await?;
        Ok(())
    }
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}
