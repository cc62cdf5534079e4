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
use crate::feed::{Feed, Listener, News};

/// Events that are read at once.
const PART: u32 = 500;

/// How long nothing is heard before the store is asked again, in case news was lost.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// The same while other processes cannot tell.
const ASK_AGAIN_ALONE: Duration = Duration::from_millis(500);

/// What a reader gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// The next event.
    Event(Arc<Event>),
    /// Nothing has happened for a while; the task is not over.
    Quiet,
}

/// Follows a task from behind an event to its last one, after which the stream ends.
pub fn follow(
    store: Arc<dyn Store>,
    feed: &Feed,
    bus: Arc<dyn Bus>,
    task: TaskId,
    after: u64,
) -> impl Stream<Item = Followed> + Send + use<> {
    // Whoever listens first and reads then misses nothing in between.
    let news = feed.listen(task);
    let reader =
        Reader { store, bus, task, last: after, news, ready: Vec::new(), stale: true, over: false };
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
    news: Listener,
    /// What was read and not passed on yet, newest first.
    ready: Vec<Arc<Event>>,
    /// The store may have more than was read.
    stale: bool,
    over: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Followed> {
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
            match timeout(self.patience(), self.news.hear()).await {
                Ok(Ok(News::Event(event))) if event.number == self.last + 1 => {
                    return Some(self.pass_on(event));
                }
                Ok(Ok(News::Event(event))) if event.number <= self.last => {}
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => self.stale = true,
                Ok(Err(RecvError::Closed)) => {
                    tokio::time::sleep(ASK_AGAIN).await;
                    return Some(self.quiet());
                }
                Err(_) => return Some(self.quiet()),
            }
        }
    }

    fn patience(&self) -> Duration {
        if self.bus.hears_all() { ASK_AGAIN } else { ASK_AGAIN_ALONE }
    }

    fn quiet(&mut self) -> Followed {
        self.stale = true;
        Followed::Quiet
    }

    fn pass_on(&mut self, event: Arc<Event>) -> Followed {
        self.last = event.number;
        self.over = event.is_last();
        Followed::Event(event)
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        let events = self.store.events(self.task, self.last, PART).await?;
        self.stale = events.len() == PART as usize;
        self.ready = events.into_iter().rev().map(Arc::new).collect();
        Ok(())
    }
}
