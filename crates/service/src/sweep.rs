//! Takes back what nobody works on, and forgets what is old.

use std::time::Duration;

use carrel_domain::Timestamp;
use carrel_store::{QueuedTask, StoreError, WorkerId};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::backoff;
use crate::bus::Hint;
use crate::limits::REMEMBER_REPLIES;
use crate::tasks::Tasks;

/// How often claims are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// How long a task waits before it looks as if nobody had told workers of it.
const OVERDUE: Duration = Duration::from_secs(1);

/// Tasks that workers are told of at once.
const MOST_OFFERED: u32 = 256;

/// After how many looks old answers and tasks are forgotten.
const FORGET_EVERY: u32 = 600;

/// Takes back what nobody works on, and forgets what is old.
#[derive(Clone, Debug)]
pub struct Sweep {
    tasks: Tasks,
    /// How long finished tasks are kept.
    keep: Duration,
}

impl Sweep {
    /// Prepares to sweep.
    pub fn new(tasks: Tasks, keep: Duration) -> Self {
        Self { tasks, keep }
    }

    /// Runs until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = 0_u32;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
                // What was pushed before is gone.
                () = self.tasks.bus.returned() => {}
            }
            if let Err(error) = self.release_expired().await {
                warn!(%error, "could not take back expired claims, trying again");
            }
            if let Err(error) = self.offer_waiting().await {
                warn!(%error, "could not look for tasks that wait, trying again");
            }
            if looks.is_multiple_of(FORGET_EVERY)
                && let Err(error) = self.forget().await
            {
                warn!(%error, "could not forget old tasks, trying again");
            }
            looks = looks.wrapping_add(1);
        }
    }

    /// Takes back every task of workers that are known to be dead: all but these. For a store that
    /// belongs to this process alone.
    pub async fn release_except(&self, alive: &[WorkerId]) -> Result<(), StoreError> {
        let now = self.tasks.clock.now();
        let events = self.tasks.store.release_except(alive, now).await?;
        if !events.is_empty() {
            info!(events = events.len(), "took back the tasks of a worker that is gone");
        }
        self.tasks.publish(&events);
        Ok(())
    }

    /// Takes back every task whose claim has run out.
    pub async fn release_expired(&self) -> Result<(), StoreError> {
        let now = self.tasks.clock.now();
        let events = self.tasks.store.release_expired(now, backoff::of_lost).await?;
        self.tasks.publish(&events);
        Ok(())
    }

    /// Tells workers of tasks that nobody seems to have told them of.
    pub async fn offer_waiting(&self) -> Result<(), StoreError> {
        if !self.tasks.bus.needs_sweep() {
            return Ok(());
        }
        let due = before(self.tasks.clock.now(), OVERDUE);
        let waiting = self.tasks.store.waiting(due, MOST_OFFERED).await?;
        let hint = |one: &QueuedTask| Hint::new(one.task, one.workspace, one.priority, one.volume);
        let hints: Vec<_> = waiting.iter().map(hint).collect();
        // If they cannot be told, they look for tasks by themselves.
        let _ = self.tasks.bus.top_up(&hints).await;
        Ok(())
    }

    async fn forget(&self) -> Result<(), StoreError> {
        let now = self.tasks.clock.now();
        let before = |age| before(now, age);
        self.tasks.store.delete_before(before(REMEMBER_REPLIES), before(self.keep)).await?;
        Ok(())
    }
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}
