//! The lists of hints: a submission pushes, a worker pops.
//!
//! Workers pop with `BRPOP` over all of their lists, those of the highest priority first. A pop removes
//! the hint, and the worker may die right after it: the task is then without a hint until the sweep adds
//! one. The reverse, a hint without a task, makes a worker ask the store once for nothing. Because each
//! claim consumes one hint, both errors stay small and correct themselves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Priority, VolumeId};
use redis::aio::MultiplexedConnection;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::connection::{Connection, answered};
use super::keys;
use crate::bus::{BusError, Hint};

/// The timeout of a blocking pop, in seconds. Bounded, so that a connection that died silently is noticed.
const POP_SECONDS: u32 = 5;

/// The interval at which a worker polls the store while Redis is away.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// Hints that one sweep adds to a list. Each makes a worker ask the store.
const MAX_ADDED: usize = 64;

/// Invalid entries that are kept for the operator to look at.
const MAX_DEAD: i64 = 1000;

/// Pushes hints, and writes the status hash of each task.
pub(super) async fn offer(connection: &Connection, hints: &[Hint]) -> Result<(), BusError> {
    let mut pipeline = redis::pipe();
    for hint in hints {
        let status = keys::status(hint.task);
        pipeline.cmd("HSETNX").arg(&status).arg("status").arg("queued").ignore();
        pipeline.cmd("HSET").arg(&status).arg(hint.status_fields()).ignore();
        pipeline.cmd("EXPIRE").arg(&status).arg(keys::STATUS_SECONDS).ignore();
        let list = keys::list(hint.priority, hint.volume);
        pipeline.cmd("LPUSH").arg(list).arg(hint.entry()).ignore();
    }
    connection.execute(&pipeline).await
}

/// Adds hints to lists that have fewer entries than `queued` has tasks for them.
pub(super) async fn replenish(connection: &Connection, queued: &[Hint]) -> Result<(), BusError> {
    let mut by_list = HashMap::<String, Vec<&Hint>>::new();
    for hint in queued {
        by_list.entry(keys::list(hint.priority, hint.volume)).or_default().push(hint);
    }
    if by_list.is_empty() {
        return Ok(());
    }
    let mut count = redis::pipe();
    for list in by_list.keys() {
        count.cmd("LLEN").arg(list);
    }
    let lengths: Vec<usize> = connection.query(&count).await?;
    let mut pipeline = redis::pipe();
    for ((list, hints), length) in by_list.iter().zip(lengths) {
        for hint in hints.iter().skip(length).take(MAX_ADDED) {
            pipeline.cmd("LPUSH").arg(list).arg(hint.entry()).ignore();
        }
    }
    if pipeline.is_empty() { Ok(()) } else { connection.execute(&pipeline).await }
}

/// The hints for one worker. A hint is popped only when the worker asks for it, so that a worker without
/// a free slot leaves hints to others.
#[derive(Debug)]
pub struct HintReader {
    connection: Arc<Connection>,
    requests: mpsc::Sender<()>,
    popped: mpsc::Receiver<Hint>,
    requested: bool,
}

impl HintReader {
    pub(super) fn start(
        connection: Arc<Connection>,
        volume: VolumeId,
        stop: CancellationToken,
    ) -> Self {
        let (requests, requested) = mpsc::channel(1);
        let (hints, popped) = mpsc::channel(1);
        let task =
            Popper { connection: Arc::clone(&connection), volume, requests: requested, hints };
        carrel_exec::spawn_task(task.run(stop));
        Self { connection, requests, popped, requested: false }
    }

    /// Waits for the next hint. While Redis is away it returns `None` every half second, so that the worker
    /// polls the store. Cancel safe: a hint that was popped meanwhile is returned by the next call.
    pub async fn next(&mut self) -> Option<Hint> {
        if !self.requested {
            // Fails only after the popper has stopped, when no hint will come.
            let _ = self.requests.try_send(());
            self.requested = true;
        }
        let poll = async {
            self.connection.disconnected().await;
            tokio::time::sleep(POLL_EVERY).await;
        };
        tokio::select! {
            Some(hint) = self.popped.recv() => {
                self.requested = false;
                Some(hint)
            }
            () = poll => None,
        }
    }
}

/// Pops a hint without waiting.
pub(super) async fn take(
    connection: &Connection,
    volume: VolumeId,
) -> Result<Option<Hint>, BusError> {
    let lists = keys::lists(volume);
    let mut pipeline = redis::pipe();
    pipeline.cmd("LMPOP").arg(lists.len());
    for (list, _) in &lists {
        pipeline.arg(list);
    }
    pipeline.arg("RIGHT");
    let (popped,): (Option<(String, Vec<Vec<u8>>)>,) = connection.query(&pipeline).await?;
    let Some((list, entries)) = popped else { return Ok(None) };
    let Some(entry) = entries.first() else { return Ok(None) };
    Ok(parse(connection, &lists, &list, entry).await)
}

/// Parses an entry. An invalid one is moved to the dead list.
async fn parse(
    connection: &Connection,
    lists: &[(String, Priority)],
    list: &str,
    entry: &[u8],
) -> Option<Hint> {
    let priority = lists.iter().find(|(name, _)| name == list);
    let priority = priority.map_or(Priority::Normal, |(_, priority)| *priority);
    match Hint::parse(entry, priority) {
        Ok(hint) => Some(hint),
        Err(error) => {
            warn!(%error, list, "moved an invalid entry to the dead list");
            move_to_dead(connection, entry).await;
            None
        }
    }
}

/// Pops one hint for each request of its [`HintReader`].
struct Popper {
    connection: Arc<Connection>,
    volume: VolumeId,
    requests: mpsc::Receiver<()>,
    hints: mpsc::Sender<Hint>,
}

impl Popper {
    async fn run(mut self, stop: CancellationToken) {
        let lists = keys::lists(self.volume);
        let mut popping = None;
        while self.requests.recv().await.is_some() {
            let hint = tokio::select! {
                () = stop.cancelled() => return,
                hint = self.pop(&mut popping, &lists) => hint,
            };
            if let Err(unsent) = self.hints.send(hint).await {
                // The worker has stopped; leave the hint to another.
                let _ = put_back(&self.connection, &unsent.0).await;
                return;
            }
        }
    }

    async fn pop(
        &self,
        connection: &mut Option<MultiplexedConnection>,
        lists: &[(String, Priority)],
    ) -> Hint {
        loop {
            let popped = match connection {
                Some(connection) => blocking_pop(connection, lists).await,
                None => match self.connection.connect(None).await {
                    Ok(made) => {
                        *connection = Some(made);
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            match popped {
                Ok(None) => {}
                Ok(Some((list, entry))) => {
                    if let Some(hint) = parse(&self.connection, lists, &list, &entry).await {
                        return hint;
                    }
                }
                Err(_) => {
                    *connection = None;
                    self.connection.connected().await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
}

async fn blocking_pop(
    connection: &mut MultiplexedConnection,
    lists: &[(String, Priority)],
) -> Result<Option<(String, Vec<u8>)>, BusError> {
    let mut command = redis::cmd("BRPOP");
    for (list, _) in lists {
        command.arg(list);
    }
    command.arg(POP_SECONDS);
    let limit = Duration::from_secs(u64::from(POP_SECONDS) + 2);
    answered(limit, command.query_async(connection)).await
}

/// Returns a hint to the end of its list that is popped next.
async fn put_back(connection: &Connection, hint: &Hint) -> Result<(), BusError> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("RPUSH").arg(keys::list(hint.priority, hint.volume)).arg(hint.entry()).ignore();
    connection.execute(&pipeline).await
}

async fn move_to_dead(connection: &Connection, entry: &[u8]) {
    let mut pipeline = redis::pipe();
    pipeline.cmd("LPUSH").arg(keys::DEAD).arg(entry).ignore();
    pipeline.cmd("LTRIM").arg(keys::DEAD).arg(0).arg(MAX_DEAD - 1).ignore();
    if let Err(error) = connection.execute(&pipeline).await {
        warn!(%error, "lost an invalid entry");
    }
}
