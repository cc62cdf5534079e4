//! News on its way to those who wait for it, inside one process.
//!
//! Losing news loses nothing: whoever waits reads the store, which has all of it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carrel_domain::TaskId;
use carrel_store::Event;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

/// Events that a slow reader may be behind before it has to read the store instead.
const BEHIND: usize = 256;

/// News about tasks. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    readers: HashMap<TaskId, broadcast::Sender<News>>,
    /// What ends the tasks that run here.
    running: HashMap<TaskId, CancellationToken>,
    /// Tasks that got their first reader or lost their last one, for whoever brings news from elsewhere.
    changed: Option<HashSet<TaskId>>,
}

/// What a reader hears.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// This happened.
    Event(Arc<Event>),
    /// Something may have happened that nobody told.
    LookAgain,
}

impl Feed {
    /// Tells everybody who listens.
    pub fn publish(&self, events: &[Event]) {
        let mut inner = self.inner();
        for event in events {
            let Some(readers) = inner.readers.get(&event.task) else { continue };
            // Nobody may be left who listens.
            let _ = readers.send(News::Event(Arc::new(event.clone())));
            if event.is_last() {
                inner.readers.remove(&event.task);
                inner.note(event.task, &self.changed);
            }
        }
    }

    /// Listens to the news about a task.
    pub(crate) fn listen(&self, task: TaskId) -> Listener {
        let mut inner = self.inner();
        let news = if let Some(readers) = inner.readers.get(&task) {
            readers.subscribe()
        } else {
            let (readers, news) = broadcast::channel(BEHIND);
            inner.readers.insert(task, readers);
            inner.note(task, &self.changed);
            news
        };
        drop(inner);
        Listener { feed: self.clone(), task, news: Some(news) }
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

    /// Returns the tasks that run here.
    pub fn running_here(&self) -> Vec<TaskId> {
        self.inner().running.keys().copied().collect()
    }

    /// Returns the tasks that somebody listens to, and remembers changes from then on.
    pub(crate) fn listened(&self) -> Vec<TaskId> {
        let mut inner = self.inner();
        inner.changed = Some(HashSet::new());
        inner.readers.keys().copied().collect()
    }

    /// Waits until tasks get their first reader or lose their last one, and returns them.
    pub(crate) async fn changed(&self) -> Vec<TaskId> {
        loop {
            let changed: Vec<_> =
                self.inner().changed.iter_mut().flat_map(HashSet::drain).collect();
            if !changed.is_empty() {
                return changed;
            }
            self.changed.notified().await;
        }
    }

    /// Tells whether somebody listens to a task.
    pub(crate) fn is_listened(&self, task: TaskId) -> bool {
        self.inner().readers.contains_key(&task)
    }

    /// Makes the readers of tasks look into the store.
    pub(crate) fn look_again(&self, tasks: &[TaskId]) {
        let inner = self.inner();
        for readers in tasks.iter().filter_map(|task| inner.readers.get(task)) {
            // Nobody may be left who listens.
            let _ = readers.send(News::LookAgain);
        }
    }

    /// Makes all readers look into the store.
    pub(crate) fn look_again_all(&self) {
        for readers in self.inner().readers.values() {
            let _ = readers.send(News::LookAgain);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn note(&mut self, task: TaskId, notify: &Notify) {
        if let Some(changed) = &mut self.changed {
            changed.insert(task);
            notify.notify_one();
        }
    }
}

/// Somebody who listens to the news about a task.
#[derive(Debug)]
pub(crate) struct Listener {
    feed: Feed,
    task: TaskId,
    news: Option<broadcast::Receiver<News>>,
}

impl Listener {
    /// Waits for news. None comes after the last event.
    pub(crate) async fn hear(&mut self) -> Result<News, RecvError> {
        match &mut self.news {
            Some(news) => news.recv().await,
            None => Err(RecvError::Closed),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut inner = self.feed.inner();
        // Under the lock nobody begins to listen meanwhile.
        self.news = None;
        let alone = |readers: &broadcast::Sender<News>| readers.receiver_count() == 0;
        if inner.readers.get(&self.task).is_some_and(alone) {
            inner.readers.remove(&self.task);
            inner.note(self.task, &self.feed.changed);
        }
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
