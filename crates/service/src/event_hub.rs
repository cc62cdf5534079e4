//! Notification on its way to those who wait for it, inside one process.
//!
//! Losing notifications loses nothing: whoever waits reads the store, which has all of it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_domain::{TaskId, sync};
use carrel_store::Event;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

/// Events that a slow reader may be behind before it has to read the store instead.
const BEHIND: usize = 256;

/// Notification about tasks. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct EventHub {
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    subscribers: HashMap<TaskId, broadcast::Sender<Notification>>,
    /// What ends the tasks that run here.
    running: HashMap<TaskId, CancellationToken>,
    /// Tasks that got their first reader or lost their last one, for whoever brings notifications from elsewhere.
    changed: Option<HashSet<TaskId>>,
}

/// What a reader hears.
#[derive(Clone, Debug)]
pub(crate) enum Notification {
    /// This happened.
    Event(Arc<Event>),
    /// Something may have happened that nobody told.
    Reload,
}

impl EventHub {
    /// Tells everybody who listens.
    pub fn publish(&self, events: &[Event]) {
        let mut inner = self.inner();
        for event in events {
            let Some(subscribers) = inner.subscribers.get(&event.task) else { continue };
            // Nobody may be left who listens.
            let _ = subscribers.send(Notification::Event(Arc::new(event.clone())));
            if event.is_last() {
                inner.subscribers.remove(&event.task);
                inner.note_change(event.task, &self.changed);
            }
        }
    }

    /// Listens to the notifications about a task.
    pub(crate) fn subscribe(&self, task: TaskId) -> Subscription {
        let mut inner = self.inner();
        let notifications = if let Some(subscribers) = inner.subscribers.get(&task) {
            subscribers.subscribe()
        } else {
            let (subscribers, notifications) = broadcast::channel(BEHIND);
            inner.subscribers.insert(task, subscribers);
            inner.note_change(task, &self.changed);
            notifications
        };
        drop(inner);
        Subscription { hub: self.clone(), task, notifications: Some(notifications) }
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
        RunningHere { hub: self.clone(), task }
    }

    /// Returns the tasks that run here.
    pub fn running_here(&self) -> Vec<TaskId> {
        self.inner().running.keys().copied().collect()
    }

    /// Returns the tasks that somebody listens to, and remembers changes from then on.
    pub(crate) fn subscribed_tasks(&self) -> Vec<TaskId> {
        let mut inner = self.inner();
        inner.changed = Some(HashSet::new());
        inner.subscribers.keys().copied().collect()
    }

    /// Waits until tasks get their first reader or lose their last one, and returns them.
    pub(crate) async fn subscriptions_changed(&self) -> Vec<TaskId> {
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
    pub(crate) fn has_subscribers(&self, task: TaskId) -> bool {
        self.inner().subscribers.contains_key(&task)
    }

    /// Makes the subscribers of tasks look into the store.
    pub(crate) fn reload(&self, tasks: &[TaskId]) {
        let inner = self.inner();
        for subscribers in tasks.iter().filter_map(|task| inner.subscribers.get(task)) {
            // Nobody may be left who listens.
            let _ = subscribers.send(Notification::Reload);
        }
    }

    /// Makes all subscribers look into the store.
    pub(crate) fn reload_all(&self) {
        for subscribers in self.inner().subscribers.values() {
            let _ = subscribers.send(Notification::Reload);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        sync::lock(&self.inner)
    }
}

impl Inner {
    fn note_change(&mut self, task: TaskId, notify: &Notify) {
        if let Some(changed) = &mut self.changed {
            changed.insert(task);
            notify.notify_one();
        }
    }
}

/// Somebody who listens to the notifications about a task.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: EventHub,
    task: TaskId,
    notifications: Option<broadcast::Receiver<Notification>>,
}

impl Subscription {
    /// Waits for notifications. None comes after the last event.
    pub(crate) async fn recv(&mut self) -> Result<Notification, RecvError> {
        match &mut self.notifications {
            Some(notifications) => notifications.recv().await,
            None => Err(RecvError::Closed),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut inner = self.hub.inner();
        // Under the lock nobody begins to listen meanwhile.
        self.notifications = None;
        let alone =
            |subscribers: &broadcast::Sender<Notification>| subscribers.receiver_count() == 0;
        if inner.subscribers.get(&self.task).is_some_and(alone) {
            inner.subscribers.remove(&self.task);
            inner.note_change(self.task, &self.hub.changed);
        }
    }
}

/// Says that a task runs here.
#[derive(Debug)]
pub(crate) struct RunningHere {
    hub: EventHub,
    task: TaskId,
}

impl Drop for RunningHere {
    fn drop(&mut self) {
        self.hub.inner().running.remove(&self.task);
    }
}
