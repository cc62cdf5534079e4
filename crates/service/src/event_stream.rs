//! Reading the events of a task as they happen: each once, in order, however late one begins.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::TaskId;
use carrel_store::{Event, Store, StoreError};
use futures_util::stream::{self, Stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use crate::backoff;
use crate::bus::Bus;
use crate::event_hub::{EventHub, Notification, Subscription};

/// Events that are read at once.
const MAX_PAGE: u32 = 500;

/// How long nothing is heard before the store is asked again, in case notifications was lost.
const POLL_WITH_BUS: Duration = Duration::from_secs(5);

/// The same while other processes cannot tell.
const POLL_WITHOUT_BUS: Duration = Duration::from_millis(500);

/// What a reader gets.
#[derive(Clone, Debug, PartialEq)]
pub enum FollowItem {
    /// The next event.
    Event(Arc<Event>),
    /// Nothing has happened for a while; the task is not over.
    Idle,
}

/// Follows a task from behind an event to its last one, after which the stream ends.
pub fn follow(
    store: Arc<dyn Store>,
    hub: &EventHub,
    bus: Arc<dyn Bus>,
    task: TaskId,
    after: u64,
) -> impl Stream<Item = FollowItem> + Send + use<> {
    // Whoever listens first and reads then misses nothing in between.
    let notifications = hub.subscribe(task);
    let reader = Reader {
        store,
        bus,
        task,
        last: after,
        notifications,
        ready: Vec::new(),
        stale: true,
        over: false,
    };
    stream::unfold(reader, |mut reader| async move {
        let next = reader.next().await?;
        Some((next, reader))
    })
}

struct Reader {
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
    task: TaskId,
    /// The number of the last event that was passed on.
    last: u64,
    notifications: Subscription,
    /// What was read and not passed on yet, newest first.
    ready: Vec<Arc<Event>>,
    /// The store may have more than was read.
    stale: bool,
    over: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<FollowItem> {
        let mut failures = 0;
        loop {
            if let Some(event) = self.ready.pop() {
                return Some(self.pass_on(event));
            }
            if self.over {
                return None;
            }
            if self.stale {
                if self.read().await.is_err() {
                    // The store comes back or the client gives up; nothing is skipped.
                    failures += 1;
                    tokio::time::sleep(backoff::after(failures)).await;
                }
                continue;
            }
            match timeout(self.poll_interval(), self.notifications.recv()).await {
                Ok(Ok(Notification::Event(event))) if event.number == self.last + 1 => {
                    return Some(self.pass_on(event));
                }
                Ok(Ok(Notification::Event(event))) if event.number <= self.last => {}
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => self.stale = true,
                Ok(Err(RecvError::Closed)) => {
                    tokio::time::sleep(POLL_WITH_BUS).await;
                    return Some(self.idle());
                }
                Err(_) => return Some(self.idle()),
            }
        }
    }

    fn poll_interval(&self) -> Duration {
        if self.bus.hears_all() { POLL_WITH_BUS } else { POLL_WITHOUT_BUS }
    }

    fn idle(&mut self) -> FollowItem {
        self.stale = true;
        FollowItem::Idle
    }

    fn pass_on(&mut self, event: Arc<Event>) -> FollowItem {
        self.last = event.number;
        self.over = event.is_last();
        FollowItem::Event(event)
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        let events = self.store.events(self.task, self.last, MAX_PAGE).await?;
        self.stale = events.len() == MAX_PAGE as usize;
        self.ready = events.into_iter().rev().map(Arc::new).collect();
        Ok(())
    }
}
