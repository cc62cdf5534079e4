//! Telling what a task does, without waiting for the disk at each word.

use std::sync::Arc;
use std::time::Duration;

use carrel_store::{Appended, Claim, NewEvent};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::backoff;
use crate::tasks::Tasks;

/// Events that may wait to be written. More make the command that causes them wait.
const WAITING: usize = 256;

/// Events that are written at once.
const MANY: usize = 128;

/// How long an event waits for others.
const TOGETHER: Duration = Duration::from_millis(20);

/// Takes the events of a task and writes them in groups.
#[derive(Debug)]
pub(crate) struct EventWriter {
    events: Sender<NewEvent>,
    writing: JoinHandle<Unwritten>,
}

/// What is still to be told when a journal ends.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    pub(crate) events: Vec<NewEvent>,
    /// The number of the last event before them.
    pub(crate) after: u64,
}

impl EventWriter {
    /// Begins to write for the holder of a claim, after an event. `lost` is called when it holds no more.
    pub(crate) fn begin(
        tasks: Tasks,
        claim: Claim,
        after: u64,
        lost: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let (events, queue) = channel(WAITING);
        let writing = tokio::spawn(write(tasks, claim, after, queue, lost));
        Self { events, writing }
    }

    /// Tells something.
    pub(crate) async fn tell(&self, event: NewEvent) {
        // If nobody writes any more, the claim is lost and the event with it.
        let _ = self.events.send(event).await;
    }

    /// Ends, and returns what was not written yet.
    pub(crate) async fn end(self) -> Unwritten {
        drop(self.events);
        self.writing.await.unwrap_or_default()
    }
}

async fn write(
    tasks: Tasks,
    claim: Claim,
    mut after: u64,
    mut queue: Receiver<NewEvent>,
    lost: Arc<dyn Fn() + Send + Sync>,
) -> Unwritten {
    let mut group = Vec::new();
    while let Some(first) = queue.recv().await {
        group.push(first);
        let until = Instant::now() + TOGETHER;
        loop {
            if group.len() >= MANY {
                break;
            }
            match timeout_at(until, queue.recv()).await {
                Ok(Some(event)) => group.push(event),
                // The end of the task is written together with these.
                Ok(None) => return Unwritten { events: group, after },
                Err(_) => break,
            }
        }
        let told = group.len() as u64;
        if !append(&tasks, claim, after, std::mem::take(&mut group)).await {
            lost();
            return Unwritten::default();
        }
        after += told;
    }
    Unwritten { events: group, after }
}

/// Writes events, and tries again while the store is away. Returns whether the claim holds.
async fn append(tasks: &Tasks, claim: Claim, after: u64, events: Vec<NewEvent>) -> bool {
    let mut failures = 0;
    loop {
        match tasks.store.append(claim, after, events.clone()).await {
            Ok(Appended::Written(events)) => {
                tasks.publish(&events);
                return true;
            }
            Ok(Appended::Lost) => return false,
            Err(error) => {
                failures += 1;
                warn!(%error, task = %claim.task, "could not write events, trying again");
                tokio::time::sleep(backoff::after(failures)).await;
            }
        }
    }
}
