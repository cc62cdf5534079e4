//! News on its way to those who wait for it, inside one process.
//!
//! Losing news loses nothing: whoever waits reads the store, which has all of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carrel_domain::TaskId;
use carrel_store::Event;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Events that a slow reader may be behind before it has to read the store instead.
const BEHIND: usize = 256;

/// News about tasks. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    readers: HashMap<TaskId, broadcast::Sender<Arc<Event>>>,
    /// What ends the tasks that run here.
    running: HashMap<TaskId, CancellationToken>,
}

impl Feed {
    /// Tells everybody who listens.
    pub fn publish(&self, events: &[Event]) {
        let mut inner = self.inner();
        for event in events {
            let Some(readers) = inner.readers.get(&event.task) else { continue };
            // Nobody may be left who listens.
            let _ = readers.send(Arc::new(event.clone()));
            if event.is_last() {
                inner.readers.remove(&event.task);
            }
        }
    }

    /// Listens to the news about a task.
    pub(crate) fn listen(&self, task: TaskId) -> broadcast::Receiver<Arc<Event>> {
        let mut inner = self.inner();
        // Those whose readers have gone are dropped when somebody new comes.
        inner.readers.retain(|_, readers| readers.receiver_count() > 0);
        inner.readers.entry(task).or_insert_with(|| broadcast::channel(BEHIND).0).subscribe()
    }

    /// Ends a task that runs here, if it does.
    pub fn cancel(&self, task: TaskId) {
        if let Some(cancel) = self.inner().running.get(&task) {
            cancel.cancel();
        }
    }

    /// Says that a task runs here until the returned guard is dropped.
    pub(crate) fn running(&self, task: TaskId, cancel: CancellationToken) -> RunningHere {
        self.inner().running.insert(task, cancel);
        RunningHere { feed: self.clone(), task }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that a task runs here.
#[derive(Debug)]
pub(crate) struct RunningHere {
    feed: Feed,
    task: TaskId,
}

impl Drop for RunningHere {
    fn drop(&mut self) {
        self.feed.inner().running.remove(&self.task);
    }
}
