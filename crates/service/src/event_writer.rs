//! Writes the events of a running task in groups.
//!
//! Each append to the store is a durable transaction, and a command may print thousands of lines a
//! second. Events are therefore collected for up to 20 ms or 128 events and appended together; steps
//! wait only when 256 events are queued. Events are appended in the order in which they were written,
//! and a group is retried with the same numbers until the store replies, which the store recognises
//! (see `Store::append`), so that a reader sees each event once.
//!
//! The events that are still collected when the task ends are handed to the task's `finish`, in the
//! same transaction as the terminal status. A crash loses at most the events that were not appended;
//! the next attempt continues the numbering after the last durable one.

use std::sync::Arc;
use std::time::Duration;

use carrel_store::{Appended, Claim, NewEvent};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::backoff;
use crate::tasks::Tasks;

/// Events between the steps and the writer. A full queue makes the step wait.
const CAPACITY: usize = 256;

/// Events of one transaction.
const MAX_GROUP: usize = 128;

/// The longest time that an event waits for others: short enough to look live to a reader.
const GROUP_DELAY: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct EventWriter {
    events: Sender<NewEvent>,
    writer: JoinHandle<Unwritten>,
}

/// The events that were accepted but not appended when the writer ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unwritten {
    pub(crate) events: Vec<NewEvent>,
    /// The number of the last appended event.
    pub(crate) after: u64,
}

impl EventWriter {
    /// Starts to write events for a claim, numbered on from `after`. `lost` is called if the store refuses
    /// an append because the lease is lost.
    pub(crate) fn start(
        tasks: Tasks,
        claim: Claim,
        after: u64,
        lost: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let (events, queue) = channel(CAPACITY);
        let writer = carrel_exec::spawn_task(run(tasks, claim, after, queue, lost));
        Self { events, writer }
    }

    /// Queues an event.
    pub(crate) async fn write(&self, event: NewEvent) {
        // A writer that has ended has lost its lease, and the event with it.
        let _ = self.events.send(event).await;
    }

    /// Stops the writer and returns the events that it has not appended.
    pub(crate) async fn finish(self) -> Unwritten {
        drop(self.events);
        self.writer.await.unwrap_or_default()
    }
}

async fn run(
    tasks: Tasks,
    claim: Claim,
    mut after: u64,
    mut queue: Receiver<NewEvent>,
    lost: Arc<dyn Fn() + Send + Sync>,
) -> Unwritten {
    let mut group = Vec::new();
    while let Some(first) = queue.recv().await {
        group.push(first);
        let until = Instant::now() + GROUP_DELAY;
        loop {
            if group.len() >= MAX_GROUP {
                break;
            }
            match timeout_at(until, queue.recv()).await {
                Ok(Some(event)) => group.push(event),
                // The task's end is written in one transaction with these.
                Ok(None) => return Unwritten { events: group, after },
                Err(_) => break,
            }
        }
        let appended = group.len() as u64;
        if !append(&tasks, claim, after, std::mem::take(&mut group)).await {
            lost();
            return Unwritten::default();
        }
        after += appended;
    }
    Unwritten { events: group, after }
}

/// Appends a group, and retries while the store is unavailable. Returns false when the lease is lost.
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
