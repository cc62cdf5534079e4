//! Delivers the events of tasks to their subscribers inside one process.
//!
//! The hub is a shortcut, never the source of truth: events are durable in the store before they are
//! published here, and every subscriber reads the store whenever it may have missed one. Losing a
//! notification therefore costs time only. A subscriber that falls more than [`CAPACITY`] events behind
//! is told so by the channel and reads the store; the publisher never waits for it.
//!
//! The hub also knows two things that a bus between processes needs: the tasks with at least one local
//! subscriber, so that it subscribes to the channels of those and no others, and the tasks that run in
//! this process, so that a cancellation reaches them at once instead of with the next heartbeat.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_domain::{TaskId, sync};
use carrel_store::Event;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

/// The notifications that a slow subscriber may fall behind before it has to read the store.
const CAPACITY: usize = 256;

/// The publish/subscribe hub of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct EventHub {
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    subscribers: HashMap<TaskId, broadcast::Sender<Notification>>,
    /// The tokens that cancel the tasks of this process.
    running: HashMap<TaskId, CancellationToken>,
    /// Tasks that got their first subscriber or lost their last one since a bus last asked. `None`
    /// until a bus asks for the first time.
    changed: Option<HashSet<TaskId>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Notification {
    Event(Arc<Event>),
    /// Events may have been missed; read the store.
    Reload,
}

impl EventHub {
    /// Delivers events, which must be in the store already, to the subscribers of their tasks. Closes
    /// the subscriptions of a task after its terminal event.
    pub fn publish(&self, events: &[Event]) {
        let mut inner = self.inner();
        for event in events {
            let Some(subscribers) = inner.subscribers.get(&event.task) else { continue };
            // Fails only if the last subscriber has just gone.
            let _ = subscribers.send(Notification::Event(Arc::new(event.clone())));
            if event.is_last() {
                inner.subscribers.remove(&event.task);
                inner.note_change(event.task, &self.changed);
            }
        }
    }

    pub(crate) fn subscribe(&self, task: TaskId) -> Subscription {
        let mut inner = self.inner();
        let notifications = if let Some(subscribers) = inner.subscribers.get(&task) {
            subscribers.subscribe()
        } else {
            let (subscribers, notifications) = broadcast::channel(CAPACITY);
            inner.subscribers.insert(task, subscribers);
            inner.note_change(task, &self.changed);
            notifications
        };
        drop(inner);
        Subscription { hub: self.clone(), task, notifications: Some(notifications) }
    }

    /// Cancels a task if it runs in this process.
    pub fn cancel(&self, task: TaskId) {
        if let Some(cancel) = self.inner().running.get(&task) {
            cancel.cancel();
        }
    }

    /// Registers a running task, with the token that cancels it, until the guard is dropped.
    pub(crate) fn running(&self, task: TaskId, cancel: CancellationToken) -> RunningTask {
        self.inner().running.insert(task, cancel);
        RunningTask { hub: self.clone(), task }
    }

    /// Returns the tasks that run in this process, in no order.
    pub fn running_tasks(&self) -> Vec<TaskId> {
        self.inner().running.keys().copied().collect()
    }

    /// Returns the tasks with subscribers, and records changes of that set from now on.
    pub(crate) fn subscribed_tasks(&self) -> Vec<TaskId> {
        let mut inner = self.inner();
        inner.changed = Some(HashSet::new());
        inner.subscribers.keys().copied().collect()
    }

    /// Waits until tasks get their first subscriber or lose their last one, and returns them.
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

    pub(crate) fn has_subscribers(&self, task: TaskId) -> bool {
        self.inner().subscribers.contains_key(&task)
    }

    /// Makes the subscribers of these tasks read the store.
    pub(crate) fn reload(&self, tasks: &[TaskId]) {
        let inner = self.inner();
        for subscribers in tasks.iter().filter_map(|task| inner.subscribers.get(task)) {
            let _ = subscribers.send(Notification::Reload);
        }
    }

    /// Makes all subscribers read the store.
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

/// A subscription to the events of one task, ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: EventHub,
    task: TaskId,
    notifications: Option<broadcast::Receiver<Notification>>,
}

impl Subscription {
    /// Waits for the next notification. Returns `Closed` after the terminal event, and `Lagged` if
    /// notifications were dropped because the subscriber was too slow.
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
        // Under the lock, so that no subscriber is added between the count and the removal.
        self.notifications = None;
        let unused =
            |subscribers: &broadcast::Sender<Notification>| subscribers.receiver_count() == 0;
        if inner.subscribers.get(&self.task).is_some_and(unused) {
            inner.subscribers.remove(&self.task);
            inner.note_change(self.task, &self.hub.changed);
        }
    }
}

/// The registration of a running task, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct RunningTask {
    hub: EventHub,
    task: TaskId,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.hub.inner().running.remove(&self.task);
    }
}
