//! What processes tell each other. Losing any of it loses nothing: the store has all of it.
//!
//! [`LocalBus`] is the bus of a process that works by itself. [`RedisBus`] joins any number of them: hints for
//! workers in lists, news about tasks on channels.

mod hint;
mod redis;

use async_trait::async_trait;
use carrel_domain::{TaskId, VolumeId};
use carrel_store::{Event, WorkerId};

pub use self::hint::{Hint, InvalidHint};

pub use self::redis::{HintReader, RedisAddressError, RedisBus, RedisService};

/// Why others could not be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BusError {
    /// What Redis or the network says.
    pub reason: String,
}

/// Whether others can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusHealth {
    /// There is nobody else, or they can.
    Available,
    /// They cannot for now; they find out by looking into the store.
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// What processes tell each other.
#[async_trait]
pub trait Bus: std::fmt::Debug + Send + Sync + 'static {
    /// Tells workers that tasks wait.
    async fn offer(&self, hints: &[Hint]) -> Result<(), BusError>;

    /// Sees to it that there are as many hints as tasks that wait.
    async fn top_up(&self, waiting: &[Hint]) -> Result<(), BusError>;

    /// Tells the readers of other processes. Returns at once.
    fn tell(&self, events: &[Event]);

    /// Tells the worker of a task that somebody asked for the task's end. Returns at once.
    fn cancel(&self, task: TaskId);

    /// Shows for a while that a worker lives, and what it runs.
    async fn show(&self, worker: &WorkerId, running: &[TaskId]) -> Result<(), BusError>;

    /// Returns the hints for a worker; none if claims wait in the store.
    fn hints(&self, volume: VolumeId) -> Option<HintReader>;

    /// Takes a hint if one is there, for a worker that has found work without one: there would be
    /// more hints than tasks otherwise.
    async fn spare_hint(&self, volume: VolumeId) -> Option<Hint>;

    /// Tells whether workers need to be told of tasks that wait, now and then.
    fn needs_sweep(&self) -> bool;

    /// Tells whether what happens elsewhere is heard here at once.
    fn hears_all(&self) -> bool;

    /// Returns whether others can be told.
    fn health(&self) -> BusHealth;

    /// Waits until others can be told again who could not be before.
    async fn returned(&self);
}

/// The bus of a process that tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalBus {
    /// There are other processes all the same, which share the store.
    pub shared_store: bool,
}

#[async_trait]
impl Bus for LocalBus {
    async fn offer(&self, _: &[Hint]) -> Result<(), BusError> {
        Ok(())
    }

    async fn top_up(&self, _: &[Hint]) -> Result<(), BusError> {
        Ok(())
    }

    fn tell(&self, _: &[Event]) {}

    fn cancel(&self, _: TaskId) {}

    async fn show(&self, _: &WorkerId, _: &[TaskId]) -> Result<(), BusError> {
        Ok(())
    }

    fn hints(&self, _: VolumeId) -> Option<HintReader> {
        None
    }

    async fn spare_hint(&self, _: VolumeId) -> Option<Hint> {
        None
    }

    fn needs_sweep(&self) -> bool {
        false
    }

    fn hears_all(&self) -> bool {
        !self.shared_store
    }

    fn health(&self) -> BusHealth {
        BusHealth::Available
    }

    async fn returned(&self) {
        std::future::pending::<()>().await;
    }
}
