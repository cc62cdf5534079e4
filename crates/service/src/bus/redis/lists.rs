//! HintReader in lists: who has work pushes them, who looks for work pops them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Priority, VolumeId};
use redis::aio::MultiplexedConnection;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::link::{Link, failed};
use super::names;
use crate::bus::{BusError, Hint};

/// How long a pop waits before it is begun again, so that a connection that died in silence is noticed.
const POP_SECONDS: u32 = 5;

/// How often work is looked for while Redis is away.
const LOOK: Duration = Duration::from_millis(500);

/// HintReader that are added to one list at once. Each of them makes a worker look for work.
const MOST_ADDED: usize = 64;

/// Entries that are kept although they are no hints.
const MOST_DEAD: i64 = 1000;

/// Pushes hints, each with what is known of its task.
pub(super) async fn offer(link: &Link, hints: &[Hint]) -> Result<(), BusError> {
    let mut orders = redis::pipe();
    for hint in hints {
        let status = names::status(hint.task);
        orders.cmd("HSETNX").arg(&status).arg("status").arg("queued").ignore();
        orders.cmd("HSET").arg(&status).arg(hint.status_fields()).ignore();
        orders.cmd("EXPIRE").arg(&status).arg(names::STATUS_SECONDS).ignore();
        let list = names::list(hint.priority, hint.volume);
        orders.cmd("LPUSH").arg(list).arg(hint.entry()).ignore();
    }
    link.order(&orders).await
}

/// Adds hints to lists that are shorter than what waits.
pub(super) async fn top_up(link: &Link, waiting: &[Hint]) -> Result<(), BusError> {
    let mut by_list = HashMap::<String, Vec<&Hint>>::new();
    for hint in waiting {
        by_list.entry(names::list(hint.priority, hint.volume)).or_default().push(hint);
    }
    if by_list.is_empty() {
        return Ok(());
    }
    let mut count = redis::pipe();
    for list in by_list.keys() {
        count.cmd("LLEN").arg(list);
    }
    let lengths: Vec<usize> = link.ask(&count).await?;
    let mut orders = redis::pipe();
    for ((list, hints), length) in by_list.iter().zip(lengths) {
        for hint in hints.iter().skip(length).take(MOST_ADDED) {
            orders.cmd("LPUSH").arg(list).arg(hint.entry()).ignore();
        }
    }
    if orders.is_empty() { Ok(()) } else { link.order(&orders).await }
}

/// The hints for one worker. One is taken from the lists when somebody waits for it, so that a worker
/// that has no place leaves them to others.
#[derive(Debug)]
pub struct HintReader {
    link: Arc<Link>,
    wanted: mpsc::Sender<()>,
    taken: mpsc::Receiver<Hint>,
    waiting: bool,
}

impl HintReader {
    pub(super) fn begin(link: Arc<Link>, volume: VolumeId, stop: CancellationToken) -> Self {
        let (wanted, wishes) = mpsc::channel(1);
        let (given, taken) = mpsc::channel(1);
        let popping = Popping { link: Arc::clone(&link), volume, wishes, given };
        tokio::spawn(popping.run(stop));
        Self { link, wanted, taken, waiting: false }
    }

    /// Waits for the next hint. While Redis is away it returns none, now and then: work may be there all
    /// the same. Giving up the wait loses no hint.
    pub async fn next(&mut self) -> Option<Hint> {
        if !self.waiting {
            // It ends together with the worker, and then there is nothing to wait for.
            let _ = self.wanted.try_send(());
            self.waiting = true;
        }
        let look = async {
            self.link.away().await;
            tokio::time::sleep(LOOK).await;
        };
        tokio::select! {
            Some(hint) = self.taken.recv() => {
                self.waiting = false;
                Some(hint)
            }
            () = look => None,
        }
    }
}

/// Takes a hint if one is there.
pub(super) async fn take(link: &Link, volume: VolumeId) -> Result<Option<Hint>, BusError> {
    let lists = names::lists(volume);
    let mut orders = redis::pipe();
    orders.cmd("LMPOP").arg(lists.len());
    for (list, _) in &lists {
        orders.arg(list);
    }
    orders.arg("RIGHT");
    let (popped,): (Option<(String, Vec<Vec<u8>>)>,) = link.ask(&orders).await?;
    let Some((list, entries)) = popped else { return Ok(None) };
    let Some(entry) = entries.first() else { return Ok(None) };
    Ok(read(link, &lists, &list, entry).await)
}

/// Reads an entry, or puts it aside if it is no hint.
async fn read(link: &Link, lists: &[(String, Priority)], list: &str, entry: &[u8]) -> Option<Hint> {
    let priority = lists.iter().find(|(name, _)| name == list);
    let priority = priority.map_or(Priority::Normal, |(_, priority)| *priority);
    match Hint::read(entry, priority) {
        Ok(hint) => Some(hint),
        Err(error) => {
            warn!(%error, list, "put an entry aside that is no hint");
            bury(link, entry).await;
            None
        }
    }
}

struct Popping {
    link: Arc<Link>,
    volume: VolumeId,
    wishes: mpsc::Receiver<()>,
    given: mpsc::Sender<Hint>,
}

impl Popping {
    async fn run(mut self, stop: CancellationToken) {
        let lists = names::lists(self.volume);
        let mut connection = None;
        while self.wishes.recv().await.is_some() {
            let hint = tokio::select! {
                () = stop.cancelled() => return,
                hint = self.pop(&mut connection, &lists) => hint,
            };
            if let Err(unwanted) = self.given.send(hint).await {
                // The worker has gone; another one may want it.
                let _ = put_back(&self.link, &unwanted.0).await;
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
                None => match self.link.connect(None).await {
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
                    if let Some(hint) = read(&self.link, lists, &list, &entry).await {
                        return hint;
                    }
                }
                Err(_) => {
                    *connection = None;
                    self.link.there().await;
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
    let mut order = redis::cmd("BRPOP");
    for (list, _) in lists {
        order.arg(list);
    }
    order.arg(POP_SECONDS);
    let patience = Duration::from_secs(u64::from(POP_SECONDS) + 2);
    match tokio::time::timeout(patience, order.query_async(connection)).await {
        Ok(answer) => answer.map_err(|error| failed(&error)),
        Err(_) => Err(BusError { reason: "Redis does not answer".to_owned() }),
    }
}

/// Puts a hint where the next one takes it.
async fn put_back(link: &Link, hint: &Hint) -> Result<(), BusError> {
    let mut orders = redis::pipe();
    orders.cmd("RPUSH").arg(names::list(hint.priority, hint.volume)).arg(hint.entry()).ignore();
    link.order(&orders).await
}

async fn bury(link: &Link, entry: &[u8]) {
    let mut orders = redis::pipe();
    orders.cmd("LPUSH").arg(names::DEAD).arg(entry).ignore();
    orders.cmd("LTRIM").arg(names::DEAD).arg(0).arg(MOST_DEAD - 1).ignore();
    if let Err(error) = link.order(&orders).await {
        warn!(%error, "lost an entry that is no hint");
    }
}
