//! Places for work, which tasks and requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// A place for work, free again when it is dropped.
pub type Slot = OwnedSemaphorePermit;

/// Places for work. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Slots {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    places: Arc<Semaphore>,
    total: usize,
    /// Requests that wait for a place.
    wanted: AtomicUsize,
    wanting: Notify,
}

impl Slots {
    /// Makes so many places.
    pub fn new(total: usize) -> Self {
        let places = Arc::new(Semaphore::new(total));
        let inner = Inner { places, total, wanted: AtomicUsize::new(0), wanting: Notify::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Returns how many places there are.
    pub fn total(&self) -> usize {
        self.inner.total
    }

    /// Waits for a place for a task.
    pub(crate) async fn for_task(&self) -> Option<Slot> {
        Arc::clone(&self.inner.places).acquire_owned().await.ok()
    }

    /// Waits for a place for a request, and not for longer than this. Whoever holds one for a task that
    /// is not there yet lets go of it, and tasks take turns with requests.
    pub async fn for_request(&self, patience: Duration) -> Option<Slot> {
        let _wanted = Wanted::new(&self.inner);
        let place = Arc::clone(&self.inner.places).acquire_owned();
        tokio::time::timeout(patience, place).await.ok()?.ok()
    }

    /// Tells whether a request waits for a place.
    pub(crate) fn is_wanted(&self) -> bool {
        self.inner.wanted.load(Ordering::Relaxed) > 0
    }

    /// Waits until a request waits for a place.
    pub(crate) async fn wanted(&self) {
        loop {
            let wanting = self.inner.wanting.notified();
            if self.is_wanted() {
                return;
            }
            wanting.await;
        }
    }
}

struct Wanted<'a>(&'a Inner);

impl<'a> Wanted<'a> {
    fn new(inner: &'a Inner) -> Self {
        inner.wanted.fetch_add(1, Ordering::Relaxed);
        inner.wanting.notify_waiters();
        Self(inner)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.wanted.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_place_and_not_for_ever() {
        let slots = Slots::new(1);
        let held = slots.for_task().await;
        assert!(slots.for_request(Duration::from_secs(2)).await.is_none());
        assert!(!slots.is_wanted(), "who gave up wants nothing");
        drop(held);
        assert!(slots.for_request(Duration::from_secs(2)).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_holds_a_place_for_nothing_hears_that_it_is_wanted() {
        let slots = Slots::new(1);
        let held = slots.for_task().await;
        let holder = async {
            slots.wanted().await;
            drop(held);
        };
        let (got, ()) = tokio::join!(slots.for_request(Duration::from_secs(2)), holder);
        assert!(got.is_some());
    }
}
