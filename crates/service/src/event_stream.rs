//! The event stream of a task: every event once, in order, from any cursor.
//!
//! A stream combines two sources. The store has all events and is read in pages; the hub delivers new
//! ones without a read. The rules that make the combination exact:
//!
//! 1. Subscribe first, then read the store. An event in between is seen twice, never missed.
//! 2. Pass on an event from the hub only if its number is the one after the last. A smaller number was
//!    read before and is dropped; a larger one means that something is missing, and the store is read.
//! 3. Read the store as well when the hub says `Reload`, when the subscription lagged, and after a
//!    while of silence, in case a notification from another process was lost.
//!
//! The stream ends with the terminal event, whose number is the task's last. While the store is
//! unavailable the stream waits and retries; a client that reconnects with the number of its last event
//! continues after it.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::TaskId;
use carrel_store::{Event, StoreError};
use futures_util::stream::{self, Stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use crate::backoff;
use crate::event_hub::{Notification, Subscription};
use crate::tasks::Tasks;

/// Events of one read of the store.
const MAX_PAGE: u32 = 500;

/// The silence after which the store is read while notifications of other processes arrive.
const POLL_WITH_BUS: Duration = Duration::from_secs(5);

/// The same while they do not: this bounds the delay of events from other processes.
const POLL_WITHOUT_BUS: Duration = Duration::from_millis(500);

/// One item of an event stream.
#[derive(Clone, Debug, PartialEq)]
pub enum FollowItem {
    /// The next event of the task.
    Event(Arc<Event>),
    /// A sign that the stream is alive: no event for a while, and the task is not terminal.
    Idle,
}

/// Streams the events of a task after the number `after`, up to and including the terminal one.
pub(crate) fn follow(
    tasks: Tasks,
    task: TaskId,
    after: u64,
) -> impl Stream<Item = FollowItem> + Send + use<> {
    let subscription = tasks.hub.subscribe(task);
    let (page, last) = (Vec::new(), after);
    let cursor = Cursor { tasks, task, last, subscription, page, stale: true, ended: false };
    stream::unfold(cursor, |mut cursor| async move {
        let next = cursor.next().await?;
        Some((next, cursor))
    })
}

struct Cursor {
    tasks: Tasks,
    task: TaskId,
    /// The number of the last event that was passed on.
    last: u64,
    subscription: Subscription,
    /// Events that were read and not passed on yet, the newest first.
    page: Vec<Arc<Event>>,
    /// The store may have events after those of `page`.
    stale: bool,
    ended: bool,
}

impl Cursor {
    async fn next(&mut self) -> Option<FollowItem> {
        let mut failures = 0;
        loop {
            if let Some(event) = self.page.pop() {
                return Some(self.pass_on(event));
            }
            if self.ended {
                return None;
            }
            if self.stale {
                if self.read().await.is_err() {
                    failures += 1;
                    tokio::time::sleep(backoff::after(failures)).await;
                }
                continue;
            }
            match timeout(self.poll_interval(), self.subscription.recv()).await {
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
        if self.tasks.bus.delivers_all() { POLL_WITH_BUS } else { POLL_WITHOUT_BUS }
    }

    fn idle(&mut self) -> FollowItem {
        self.stale = true;
        FollowItem::Idle
    }

    fn pass_on(&mut self, event: Arc<Event>) -> FollowItem {
        self.last = event.number;
        self.ended = event.is_last();
        FollowItem::Event(event)
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        let events = self.tasks.store.events(self.task, self.last, MAX_PAGE).await?;
        self.stale = events.len() == MAX_PAGE as usize;
        self.page = events.into_iter().rev().map(Arc::new).collect();
        Ok(())
    }
}
