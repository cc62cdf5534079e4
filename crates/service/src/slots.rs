//! The slots of a worker, shared by tasks and by requests over HTTP.
//!
//! A slot is the right to run one piece of work. Tasks wait for slots without a limit; requests have a
//! client that waits and give up after a timeout. A worker that holds a slot while it waits for a task
//! would starve requests, so requests announce themselves: the worker then drops its idle slot, and a
//! slot that runs task after task is given up between two tasks. Slots are granted first come, first
//! served, so that tasks and requests take turns under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The right to run one task or request, released when it is dropped.
pub type Slot = OwnedSemaphorePermit;

/// The slots of a worker. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Slots {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    permits: Arc<Semaphore>,
    total: usize,
    waiting_requests: AtomicUsize,
    request_came: Notify,
}

impl Slots {
    /// Creates `total` free slots.
    pub fn new(total: usize) -> Self {
        let inner = Inner {
            permits: Arc::new(Semaphore::new(total)),
            total,
            waiting_requests: AtomicUsize::new(0),
            request_came: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the number of slots, free or not.
    pub fn total(&self) -> usize {
        self.inner.total
    }

    pub(crate) async fn for_task(&self) -> Option<Slot> {
        Arc::clone(&self.inner.permits).acquire_owned().await.ok()
    }

    /// Waits for a slot for a request, at most `timeout`. A slot that is held for a task which has not come
    /// yet is given up for it.
    pub async fn for_request(&self, timeout: Duration) -> Option<Slot> {
        let _waiting = WaitingRequest::new(&self.inner);
        let slot = Arc::clone(&self.inner.permits).acquire_owned();
        tokio::time::timeout(timeout, slot).await.ok()?.ok()
    }

    /// Returns whether a request waits for a slot.
    pub(crate) fn has_waiting_requests(&self) -> bool {
        self.inner.waiting_requests.load(Ordering::Relaxed) > 0
    }

    /// Waits until a request waits for a slot.
    pub(crate) async fn request_waits(&self) {
        loop {
            // Created before the check, so that a request in between is not missed.
            let request_came = self.inner.request_came.notified();
            if self.has_waiting_requests() {
                return;
            }
            request_came.await;
        }
    }
}

struct WaitingRequest<'a>(&'a Inner);

impl<'a> WaitingRequest<'a> {
    fn new(inner: &'a Inner) -> Self {
        inner.waiting_requests.fetch_add(1, Ordering::Relaxed);
        inner.request_came.notify_waiters();
        Self(inner)
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.0.waiting_requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_slot_until_its_timeout() {
        let slots = Slots::new(1);
        let held = slots.for_task().await;
        assert!(slots.for_request(Duration::from_secs(2)).await.is_none());
        assert!(!slots.has_waiting_requests(), "a request that gave up does not wait");
        drop(held);
        assert!(slots.for_request(Duration::from_secs(2)).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_holder_of_an_idle_slot_learns_of_a_waiting_request() {
        let slots = Slots::new(1);
        let held = slots.for_task().await;
        let holder = async {
            slots.request_waits().await;
            drop(held);
        };
        let (got, ()) = tokio::join!(slots.for_request(Duration::from_secs(2)), holder);
        assert!(got.is_some());
    }
}
