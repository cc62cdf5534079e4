//! Two lines of operations, each done by one connection, group by group.
//!
//! What moves tasks through the queue goes through one lane, and takes a lock of the whole database: how
//! many wait and run, whose turn it is and where a workspace lies are counts over many rows, and with one
//! transaction at a time they are exact without anybody having to try again. What a worker tells of a task
//! that it has concerns that row alone, and goes through the other lane beside it.
//!
//! When the server goes away in the middle, nobody knows whether the transaction was done. Everything is
//! then asked again in the same words, which does nothing twice. Only a claim is different: whatever it got
//! is given back.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carrel_domain::{Clock as _, SystemClock, Timestamp, message_of};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};
use uuid::Uuid;

use super::batch::{self, Manner, Outcome};
use super::operation::{Operation, Reply, Wish};
use super::session::{Server, Session};
use super::trouble::Trouble;
use super::{PATIENCE, answers, lease};
use crate::error::StoreError;
use crate::model::{Claim, ClaimRequest, Claimed, Release};

/// Operations that may wait. More callers than that wait before they ask.
const MAX_WAITING: usize = 4096;

/// Operations of one transaction, so that the first is not kept waiting by the last.
const MAX_BATCH: usize = 256;

/// Workers that are served in one transaction.
const MAX_SERVED: usize = 128;

/// How long a transaction may take before it is given up.
const LIMIT: Duration = Duration::from_secs(4);

/// How often waiting workers look for what nobody told them of.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long to wait before the server is asked again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// A lane keeps to its indexes: a plan that was made for an empty table would read a full one.
const STEADY: &str = "SET enable_seqscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET statement_timeout = '4s'; SET plan_cache_mode = force_generic_plan";

/// What goes through a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What moves tasks through the queue.
    Queue,
    /// What workers tell of tasks that they have.
    Telling,
}

/// The way into a lane.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    asked: UnboundedSender<Asked>,
    room: Arc<Semaphore>,
    news: Arc<News>,
    name: Arc<str>,
}

/// That others have something to do for those who wait here.
#[derive(Debug, Default)]
struct News {
    came: AtomicBool,
    wake: Notify,
}

enum Asked {
    Operation(Pending),
    Wait(Waiter),
}

struct Pending {
    operation: Operation,
    /// When whoever asks has waited long enough.
    until: Instant,
    _room: OwnedSemaphorePermit,
}

/// A worker that waits for a task.
struct Waiter {
    request: ClaimRequest,
    reply: Reply<Claimed>,
}

fn gone() -> StoreError {
    StoreError::Unavailable("the lane to the database has ended".into())
}

impl Lane {
    /// Opens a lane. It ends when the last handle is dropped.
    pub(super) fn open(kind: Kind, server: Server) -> Self {
        let (asked, queue) = unbounded_channel();
        let news = Arc::new(News::default());
        let name: Arc<str> = Uuid::now_v7().to_string().into();
        let runner = Runner {
            kind,
            server,
            queue,
            news: Arc::clone(&news),
            session: None,
            pending: VecDeque::new(),
            waiters: VecDeque::new(),
            doubts: Vec::new(),
            name: Arc::clone(&name),
            next_due: None,
            left: true,
            looked: Instant::now(),
            away: None,
        };
        tokio::spawn(runner.run());
        Self { asked, room: Arc::new(Semaphore::new(MAX_WAITING)), news, name }
    }

    /// Asks for something, and returns the answer when it is on the disk.
    pub(super) async fn ask<T>(
        &self,
        operation: impl FnOnce(Reply<T>) -> Operation,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let until = Instant::now() + PATIENCE;
        let late = |_| StoreError::Unavailable("too much waits for the database".into());
        let room = timeout(PATIENCE, Arc::clone(&self.room).acquire_owned()).await.map_err(late)?;
        let room = room.map_err(|_| gone())?;
        let pending = Pending { operation: operation(reply), until, _room: room };
        self.asked.send(Asked::Operation(pending)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Waits for a task.
    pub(super) async fn wait(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.asked.send(Asked::Wait(Waiter { request, reply })).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Tells those who wait that somebody has something to do for them. Those of this lane know already
    /// what it has queued itself.
    pub(super) fn wake(&self, from: &str) {
        if from != &*self.name {
            self.news.came.store(true, Ordering::Relaxed);
            self.news.wake.notify_one();
        }
    }
}

struct Runner {
    kind: Kind,
    server: Server,
    queue: UnboundedReceiver<Asked>,
    news: Arc<News>,
    session: Option<Session>,
    pending: VecDeque<Pending>,
    waiters: VecDeque<Waiter>,
    /// Claims that may have succeeded without anybody knowing.
    doubts: Vec<Uuid>,
    /// By which this process knows its own news.
    name: Arc<str>,
    next_due: Option<Timestamp>,
    /// Whether tasks wait that nobody got, as far as is known.
    left: bool,
    /// When that was last looked at.
    looked: Instant,
    /// Since when the server does not answer, and how often it was asked.
    away: Option<(Instant, u32)>,
}

impl Runner {
    async fn run(mut self) {
        while self.collect().await {
            let batch = self.take_batch();
            let waiters = self.take_waiters(&batch);
            if !batch.is_empty() || !waiters.is_empty() || !self.doubts.is_empty() {
                self.serve(batch, waiters).await;
            }
        }
    }

    /// Returns the workers that may get something in this transaction.
    fn take_waiters(&mut self, batch: &[Pending]) -> Vec<Waiter> {
        self.waiters.retain(|waiter| !waiter.reply.is_closed());
        let due = self.next_due.is_some_and(|due| due <= SystemClock.now());
        let news = self.news.came.swap(false, Ordering::Relaxed);
        let queues = |pending: &Pending| matches!(pending.operation, Operation::Submit(..));
        self.left |= due || news || self.looked.elapsed() >= LOOK_AGAIN;
        self.left |= batch.iter().any(queues);
        if !self.left {
            return Vec::new();
        }
        let served = self.waiters.len().min(MAX_SERVED);
        self.waiters.drain(..served).collect()
    }

    /// Waits until there is something to do. Returns false when nobody is left who could ask.
    async fn collect(&mut self) -> bool {
        if self.pending.is_empty() {
            let patience = self.patience();
            let asked = tokio::select! {
                asked = self.queue.recv() => match asked {
                    Some(asked) => Some(asked),
                    None => return false,
                },
                () = self.news.wake.notified(), if !self.waiters.is_empty() => None,
                () = sleep(patience), if !self.waiters.is_empty() || !self.doubts.is_empty() => None,
            };
            if let Some(asked) = asked {
                self.accept(asked);
            }
        }
        while self.pending.len() < MAX_BATCH {
            match self.queue.try_recv() {
                Ok(asked) => self.accept(asked),
                Err(_) => break,
            }
        }
        true
    }

    fn accept(&mut self, asked: Asked) {
        match asked {
            Asked::Operation(pending) => self.pending.push_back(pending),
            Asked::Wait(waiter) => self.waiters.push_back(waiter),
        }
    }

    /// Returns how long nothing has to be done unless somebody asks.
    fn patience(&self) -> Duration {
        let now = SystemClock.now();
        let due = self.next_due.filter(|due| *due > now);
        due.map_or(LOOK_AGAIN, |due| now.age(due).clamp(Duration::from_millis(1), LOOK_AGAIN))
    }

    /// Returns operations that can be done together. Those about the same wait for the next time.
    fn take_batch(&mut self) -> Vec<Pending> {
        let mut subjects = HashSet::new();
        let mut batch = Vec::new();
        let mut later = VecDeque::new();
        for pending in self.pending.drain(..) {
            let own = pending.operation.subjects();
            if batch.len() < MAX_BATCH && own.iter().all(|subject| !subjects.contains(subject)) {
                batch.push(pending);
            } else {
                later.push_back(pending);
            }
            subjects.extend(own);
        }
        self.pending = later;
        batch
    }

    async fn serve(&mut self, batch: Vec<Pending>, waiters: Vec<Waiter>) {
        let now = SystemClock.now();
        let tried = batch.iter().filter_map(|pending| match &pending.operation {
            Operation::Claim(wish, _) => Some(wish.clone()),
            _ => None,
        });
        let waiting = waiters.iter().map(|waiter| Wish::new(waiter.request.clone(), now));
        let wishes: Vec<Wish> = tried.chain(waiting).collect();
        match self.attempt(&batch, &wishes).await {
            Ok(outcome) => self.answer(batch, waiters, outcome).await,
            Err(Trouble::Passing(reason)) => {
                self.put_off(batch, waiters, &wishes, &*reason).await;
            }
            Err(Trouble::Lasting(error)) if batch.len() + waiters.len() > 1 => {
                // One of them is the cause, and the others must not suffer from it.
                warn!(error = message_of(&error), "a group of operations failed, doing each alone");
                self.one_by_one(batch, waiters).await;
            }
            Err(Trouble::Lasting(error)) => refuse(batch, waiters, error),
        }
    }

    async fn one_by_one(&mut self, batch: Vec<Pending>, waiters: Vec<Waiter>) {
        for pending in batch {
            Box::pin(self.serve(vec![pending], Vec::new())).await;
        }
        for waiter in waiters {
            Box::pin(self.serve(Vec::new(), vec![waiter])).await;
        }
    }

    /// Does a transaction, with a connection that is made if there is none.
    async fn attempt(&mut self, batch: &[Pending], wishes: &[Wish]) -> Result<Outcome, Trouble> {
        if self.session.as_ref().is_none_or(|session| session.client.is_closed()) {
            self.session = None;
            let session = self.server.connect().await?;
            session.client.batch_execute(STEADY).await?;
            self.session = Some(session);
        }
        let session = self.session.as_mut().expect("it was just made");
        let operations: Vec<_> = batch.iter().map(|pending| &pending.operation).collect();
        let manner = Manner { alone: self.kind == Kind::Queue, name: &self.name };
        let doubts = &mut self.doubts;
        let work = async {
            if !doubts.is_empty() {
                lease::settle(session, doubts).await?;
                doubts.clear();
            }
            batch::perform(session, &manner, &operations, wishes).await
        };
        let late = |_| Trouble::passing("the database did not answer in time");
        let done = timeout(LIMIT, work).await.map_err(late).flatten();
        if done.is_ok()
            && let Some((since, _)) = self.away.take()
        {
            info!(away = ?since.elapsed(), "the database is back");
        }
        done
    }

    async fn answer(&mut self, batch: Vec<Pending>, waiters: Vec<Waiter>, outcome: Outcome) {
        if !outcome.claimed.is_empty() {
            (self.next_due, self.left) = (outcome.next_due, outcome.left);
            self.looked = Instant::now();
        }
        let session = self.session.as_mut().expect("it has just been used");
        let operations = batch.into_iter().map(|pending| pending.operation).collect();
        let (mut unclaimed, rest) = answers::answer(session, operations, outcome).await;
        let mut still = VecDeque::new();
        for (waiter, claimed) in waiters.into_iter().zip(rest) {
            match claimed {
                None => still.push_back(waiter),
                Some(claimed) => {
                    let claim = claimed.claim;
                    if waiter.reply.send(Ok(claimed)).is_err() {
                        unclaimed.push(claim);
                    }
                }
            }
        }
        still.append(&mut self.waiters);
        self.waiters = still;
        for claim in unclaimed {
            self.take_back(claim).await;
        }
    }

    /// Takes a task back from a worker that has gone before it heard of it.
    async fn take_back(&mut self, claim: Claim) {
        let Some(session) = self.session.as_mut() else { return };
        let now = SystemClock.now();
        let reason = "its worker stopped before it began".to_owned();
        let back = Release { reason, due: now, now, counts: false };
        if let Err(error) = lease::hand_back_alone(session, claim, &back).await {
            // The claim runs out by itself.
            warn!(task = %claim.task, ?error, "could not take back a task from a worker that is gone");
            self.session = None;
        }
        self.left = true;
    }

    /// Keeps what was not done for another time, and tells those who have waited long enough.
    async fn put_off(
        &mut self,
        batch: Vec<Pending>,
        waiters: Vec<Waiter>,
        wishes: &[Wish],
        reason: &(dyn std::error::Error + Send + Sync),
    ) {
        if self.session.take().is_some() {
            self.doubts.extend(wishes.iter().map(|wish| wish.token));
        }
        let (since, failures) = self.away.unwrap_or((Instant::now(), 0));
        self.away = Some((since, failures.saturating_add(1)));
        if failures == 0 {
            warn!(error = message_of(reason), "the database does not answer, trying again");
        }
        let now = Instant::now();
        let told = || StoreError::Unavailable(message_of(reason).into());
        let all = batch.into_iter().chain(std::mem::take(&mut self.pending));
        for mut pending in all {
            if pending.until <= now {
                pending.operation.fail(told());
                continue;
            }
            if let Operation::Claim(wish, _) = &mut pending.operation {
                wish.token = Uuid::now_v7();
            }
            self.pending.push_back(pending);
        }
        let waiting: Vec<_> =
            waiters.into_iter().chain(std::mem::take(&mut self.waiters)).collect();
        if now.duration_since(since) >= PATIENCE {
            for waiter in waiting {
                // It may have gone.
                let _ = waiter.reply.send(Err(told()));
            }
        } else {
            self.waiters.extend(waiting);
        }
        let (first, longest) = PAUSE;
        sleep(first.saturating_mul(1 << failures.min(6)).min(longest)).await;
    }
}

fn refuse(batch: Vec<Pending>, waiters: Vec<Waiter>, error: StoreError) {
    match (batch.into_iter().next(), waiters.into_iter().next()) {
        (Some(pending), _) => pending.operation.fail(error),
        (None, Some(waiter)) => drop(waiter.reply.send(Err(error))),
        (None, None) => warn!(error = message_of(&error), "could not settle claims in doubt"),
    }
}
