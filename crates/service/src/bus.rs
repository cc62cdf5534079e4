//! The bus between processes: hints that tasks are queued, events of tasks, cancellations.
//!
//! The bus only makes things happen sooner. Every message repeats something that is in the store, so
//! that a lost, doubled or reordered message changes nothing but the delay: a lost hint is found by the
//! sweep or by a worker that polls, a lost event by the reader's next look into the store, a lost
//! cancellation by the next heartbeat. A bus that is away must therefore never fail an operation, with
//! one exception that the operator chooses ([`OnEnqueueFailure`](crate::OnEnqueueFailure)).
//!
//! [`LocalBus`] is the bus of a process without Redis and sends nothing. [`RedisBus`] joins any number
//! of processes: lists hold hints, channels carry events and cancellations.

mod hint;
mod redis;

use async_trait::async_trait;
use carrel_domain::{TaskId, VolumeId};
use carrel_store::{Event, WorkerId};

pub use self::hint::{Hint, InvalidHint};

pub use self::redis::{HintReader, RedisAddressError, RedisBus, RedisService};

/// A message that could not be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BusError {
    /// The error of Redis or of the network, for logs and health replies.
    pub reason: String,
}

/// The state of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusHealth {
    /// Messages reach other processes, or there are none.
    Available,
    /// Messages are lost for now; other processes poll the store.
    Unavailable {
        /// The error of the last attempt to connect or to send.
        reason: String,
    },
}

/// The messages between processes.
#[async_trait]
pub trait Bus: std::fmt::Debug + Send + Sync + 'static {
    /// Sends hints that tasks are queued.
    async fn offer(&self, hints: &[Hint]) -> Result<(), BusError>;

    /// Adds hints where there are fewer than queued tasks, of which `queued` are some.
    async fn replenish(&self, queued: &[Hint]) -> Result<(), BusError>;

    /// Sends events to the subscribers of other processes. Returns at once; events beyond the capacity
    /// of the queue are dropped.
    fn publish(&self, events: &[Event]);

    /// Sends a cancellation to the worker of a task. Returns at once.
    fn cancel(&self, task: TaskId);

    /// Announces a live worker and its running tasks, for a limited time.
    async fn announce(&self, worker: &WorkerId, running: &[TaskId]) -> Result<(), BusError>;

    /// Returns the hints for a worker of a volume; `None` if claims wait in the store instead.
    fn hints(&self, volume: VolumeId) -> Option<HintReader>;

    /// Takes a hint if there is one, for a worker that has claimed without one: otherwise there would be
    /// more hints than tasks.
    async fn take_hint(&self, volume: VolumeId) -> Option<Hint>;

    /// Returns whether the sweep has to offer overlooked tasks.
    fn needs_sweep(&self) -> bool;

    /// Returns whether the events of other processes arrive here at once. Subscribers poll the store more
    /// often when they do not.
    fn delivers_all(&self) -> bool;

    /// Returns the current state.
    fn health(&self) -> BusHealth;

    /// Waits until the bus is available after it was unavailable.
    async fn reconnected(&self);
}

/// The bus of a process without Redis. It sends nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalBus {
    /// Other processes use the same store, so that subscribers here have to poll for their events.
    pub shared_store: bool,
}

#[async_trait]
impl Bus for LocalBus {
    async fn offer(&self, _: &[Hint]) -> Result<(), BusError> {
        Ok(())
    }

    async fn replenish(&self, _: &[Hint]) -> Result<(), BusError> {
        Ok(())
    }

    fn publish(&self, _: &[Event]) {}

    fn cancel(&self, _: TaskId) {}

    async fn announce(&self, _: &WorkerId, _: &[TaskId]) -> Result<(), BusError> {
        Ok(())
    }

    fn hints(&self, _: VolumeId) -> Option<HintReader> {
        None
    }

    async fn take_hint(&self, _: VolumeId) -> Option<Hint> {
        None
    }

    fn needs_sweep(&self) -> bool {
        false
    }

    fn delivers_all(&self) -> bool {
        !self.shared_store
    }

    fn health(&self) -> BusHealth {
        BusHealth::Available
    }

    async fn reconnected(&self) {
        std::future::pending::<()>().await;
    }
}
