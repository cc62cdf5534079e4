//! Lanes: queues of operations that one connection executes, batch by batch.
//!
//! A round trip and a commit to a server cost far more than a row. A lane therefore collects the operations
//! that arrive while a transaction is under way and executes them together in the next one (`batch`): one
//! process completes 2,407 tasks a second and two complete 3,549, where procrastinate on the same server
//! completes 275 (docs/benchmarks.md).
//!
//! There are two lanes. Submissions, claims and ends move tasks through the queue. They take the advisory
//! lock of the database, because limits of the queue, turns and volumes are conditions over many rows: one
//! transaction at a time keeps them exact without serialisation failures. Heartbeats and events concern
//! the row of one running task, and run beside it in the other lane without that lock.
//!
//! When the connection breaks during a transaction, it is not known whether it was committed. Operations are
//! kept and executed again with the same values, which takes effect once. Claims are the exception, since
//! repeating one would claim a second task: each claim stores a random token with the task, and the tokens
//! of lost replies are released (`lease::release_unacknowledged`) before the next batch. Operations that have
//! waited for [`OUTAGE_LIMIT`] fail with `Unavailable`.
//!
//! A batch that fails permanently is executed again operation by operation, so that one that the database
//! rejects does not fail the others.

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

use super::batch::{self, BatchOptions, BatchOutcome};
use super::error::PgError;
use super::operation::{LaneOperation, PendingClaim, ReplySender};
use super::retry::timed_out;
use super::session::{PgSession, Server};
use super::{OUTAGE_LIMIT, batch_reply, lease};
use crate::error::StoreError;
use crate::lifecycle::WORKER_GONE;
use crate::{Claim, ClaimRequest, Claimed, Release};

/// Operations in the queue of a lane. Further callers wait before they are queued.
const MAX_QUEUED: usize = 4096;

/// Operations of one transaction. Bounds the time that the first waits for the last.
const MAX_BATCH: usize = 256;

const MAX_CLAIMS: usize = 128;

/// The time of one transaction, after which the connection is given up.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(4);

/// The interval at which waiting claims look for tasks whose notification was lost.
const POLL_EVERY: Duration = Duration::from_secs(1);

const RECONNECT_DELAY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Settings of a lane's session. The planner has to use the indexes: a plan that is made while the table is
/// empty would scan it when it has grown.
const LANE_SETTINGS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET statement_timeout = '4s'; SET plan_cache_mode = force_generic_plan";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Submissions, claims and ends, under the lock of the queue.
    Queue,
    ClaimWrites,
}

/// The handle of a lane, which ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    requests: UnboundedSender<Request>,
    capacity: Arc<Semaphore>,
    notifications: Arc<Notifications>,
    /// Identifies the notifications that this lane sends itself.
    name: Arc<str>,
}

/// Notifications of other processes that tasks were queued.
#[derive(Debug, Default)]
struct Notifications {
    pending: AtomicBool,
    wake: Notify,
}

enum Request {
    Operation(PendingOperation),
    Wait(WaitingClaim),
}

struct PendingOperation {
    operation: LaneOperation,
    /// The time at which it fails if the server is away.
    deadline: Instant,
    _permit: OwnedSemaphorePermit,
}

struct WaitingClaim {
    request: ClaimRequest,
    reply: ReplySender<Claimed>,
}

fn ended() -> StoreError {
    StoreError::Unavailable("the lane to the database has ended".into())
}

impl Lane {
    pub(super) fn open(kind: Kind, server: Server) -> Self {
        let (requests, queue) = unbounded_channel();
        let notifications = Arc::new(Notifications::default());
        let name: Arc<str> = Uuid::now_v7().to_string().into();
        let runner = Runner {
            kind,
            server,
            queue,
            notifications: Arc::clone(&notifications),
            session: None,
            pending: VecDeque::new(),
            claims: VecDeque::new(),
            unacknowledged: Vec::new(),
            name: Arc::clone(&name),
            next_due: None,
            may_have_tasks: true,
            last_claim: Instant::now(),
            outage: None,
        };
        tokio::spawn(runner.run());
        Self { requests, capacity: Arc::new(Semaphore::new(MAX_QUEUED)), notifications, name }
    }

    /// Queues an operation and returns its reply after the commit.
    pub(super) async fn submit<T>(
        &self,
        operation: impl FnOnce(ReplySender<T>) -> LaneOperation,
    ) -> Result<T, StoreError> {
        let (reply, replied) = oneshot::channel();
        let deadline = Instant::now() + OUTAGE_LIMIT;
        let overloaded =
            |_| StoreError::Unavailable("too many operations wait for the database".into());
        let permit = Arc::clone(&self.capacity).acquire_owned();
        let permit = timeout(OUTAGE_LIMIT, permit).await.map_err(overloaded)?;
        let permit = permit.map_err(|_| ended())?;
        let pending = PendingOperation { operation: operation(reply), deadline, _permit: permit };
        self.requests.send(Request::Operation(pending)).map_err(|_| ended())?;
        replied.await.map_err(|_| ended())?
    }

    pub(super) async fn wait_for_task(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        let (reply, replied) = oneshot::channel();
        self.requests.send(Request::Wait(WaitingClaim { request, reply })).map_err(|_| ended())?;
        replied.await.map_err(|_| ended())?
    }

    /// Makes waiting claims look for tasks, unless the notification is this lane's own: it has looked
    /// after its own submissions.
    pub(super) fn wake(&self, sender: &str) {
        if sender != &*self.name {
            self.notifications.pending.store(true, Ordering::Relaxed);
            self.notifications.wake.notify_one();
        }
    }
}

struct Runner {
    kind: Kind,
    server: Server,
    queue: UnboundedReceiver<Request>,
    notifications: Arc<Notifications>,
    session: Option<PgSession>,
    pending: VecDeque<PendingOperation>,
    claims: VecDeque<WaitingClaim>,
    /// Tokens of claims whose reply was lost, and which may own a task.
    unacknowledged: Vec<Uuid>,
    name: Arc<str>,
    /// The due time of the earliest released task, as of the last claim.
    next_due: Option<Timestamp>,
    /// Unclaimed tasks may be queued, so that waiting claims are worth a query.
    may_have_tasks: bool,
    last_claim: Instant,
    /// The start of an outage of the server, and the failures since.
    outage: Option<(Instant, u32)>,
}

impl Runner {
    async fn run(mut self) {
        while self.collect().await {
            let batch = self.take_batch();
            let claims = self.take_claims(&batch);
            if !batch.is_empty() || !claims.is_empty() || !self.unacknowledged.is_empty() {
                self.serve(batch, claims).await;
            }
        }
    }

    /// Returns the waiting claims for the next transaction; none if no task can be queued for them.
    fn take_claims(&mut self, batch: &[PendingOperation]) -> Vec<WaitingClaim> {
        self.claims.retain(|claim| !claim.reply.is_closed());
        let due = self.next_due.is_some_and(|due| due <= SystemClock.now());
        let notified = self.notifications.pending.swap(false, Ordering::Relaxed);
        let submits =
            |pending: &PendingOperation| matches!(pending.operation, LaneOperation::Submit(..));
        self.may_have_tasks |= due || notified || self.last_claim.elapsed() >= POLL_EVERY;
        self.may_have_tasks |= batch.iter().any(submits);
        if !self.may_have_tasks {
            return Vec::new();
        }
        let count = self.claims.len().min(MAX_CLAIMS);
        self.claims.drain(..count).collect()
    }

    /// Waits until there is something to do. Returns false when all handles are dropped.
    async fn collect(&mut self) -> bool {
        if self.pending.is_empty() {
            let next_poll = self.next_poll();
            let polls = !self.claims.is_empty() || !self.unacknowledged.is_empty();
            let request = tokio::select! {
                request = self.queue.recv() => match request {
                    Some(request) => Some(request),
                    None => return false,
                },
                () = self.notifications.wake.notified(), if !self.claims.is_empty() => None,
                () = sleep(next_poll), if polls => None,
            };
            if let Some(request) = request {
                self.accept(request);
            }
        }
        while self.pending.len() < MAX_BATCH {
            match self.queue.try_recv() {
                Ok(request) => self.accept(request),
                Err(_) => break,
            }
        }
        true
    }

    fn accept(&mut self, request: Request) {
        match request {
            Request::Operation(pending) => self.pending.push_back(pending),
            Request::Wait(claim) => self.claims.push_back(claim),
        }
    }

    /// Returns the time until waiting claims have to look for due tasks.
    fn next_poll(&self) -> Duration {
        let now = SystemClock.now();
        let due = self.next_due.filter(|due| *due > now);
        due.map_or(POLL_EVERY, |due| now.age(due).clamp(Duration::from_millis(1), POLL_EVERY))
    }

    /// Returns operations for one transaction. Of operations that conflict, the later ones stay for the next,
    /// in their order.
    fn take_batch(&mut self) -> Vec<PendingOperation> {
        let mut taken = HashSet::new();
        let mut batch = Vec::new();
        let mut later = VecDeque::new();
        for pending in self.pending.drain(..) {
            let keys = pending.operation.conflict_keys();
            if batch.len() < MAX_BATCH && keys.iter().all(|key| !taken.contains(key)) {
                batch.push(pending);
            } else {
                later.push_back(pending);
            }
            taken.extend(keys);
        }
        self.pending = later;
        batch
    }

    async fn serve(&mut self, batch: Vec<PendingOperation>, waiting: Vec<WaitingClaim>) {
        let now = SystemClock.now();
        let tried = batch.iter().filter_map(|pending| match &pending.operation {
            LaneOperation::Claim(claim, _) => Some(claim.clone()),
            _ => None,
        });
        let waited = waiting.iter().map(|claim| PendingClaim::new(claim.request.clone(), now));
        let claims: Vec<PendingClaim> = tried.chain(waited).collect();
        match self.execute(&batch, &claims).await {
            Ok(outcome) => self.reply(batch, waiting, outcome).await,
            Err(PgError::Transient(reason)) => {
                self.postpone(batch, waiting, &claims, &*reason).await;
            }
            Err(PgError::Permanent(error)) if batch.len() + waiting.len() > 1 => {
                warn!(error = message_of(&error), "a batch failed, executing each operation alone");
                self.serve_one_by_one(batch, waiting).await;
            }
            Err(PgError::Permanent(error)) => fail(batch, waiting, error),
        }
    }

    async fn serve_one_by_one(&mut self, batch: Vec<PendingOperation>, waiting: Vec<WaitingClaim>) {
        for pending in batch {
            Box::pin(self.serve(vec![pending], Vec::new())).await;
        }
        for claim in waiting {
            Box::pin(self.serve(Vec::new(), vec![claim])).await;
        }
    }

    /// Executes one transaction, on a new session if there is none.
    async fn execute(
        &mut self,
        batch: &[PendingOperation],
        claims: &[PendingClaim],
    ) -> Result<BatchOutcome, PgError> {
        if self.session.as_ref().is_none_or(|session| session.client.is_closed()) {
            self.session = None;
            let session = self.server.connect().await?;
            session.client.batch_execute(LANE_SETTINGS).await?;
            self.session = Some(session);
        }
        let session = self.session.as_mut().expect("it was just made");
        let operations: Vec<_> = batch.iter().map(|pending| &pending.operation).collect();
        let options = BatchOptions { locks_queue: self.kind == Kind::Queue, sender: &self.name };
        let unacknowledged = &mut self.unacknowledged;
        let work = async {
            if !unacknowledged.is_empty() {
                lease::release_unacknowledged(session, unacknowledged).await?;
                unacknowledged.clear();
            }
            batch::execute(session, &options, &operations, claims).await
        };
        let outcome = timeout(TRANSACTION_TIMEOUT, work).await.map_err(timed_out).flatten();
        if outcome.is_ok()
            && let Some((since, _)) = self.outage.take()
        {
            info!(outage = ?since.elapsed(), "the database is available again");
        }
        outcome
    }

    async fn reply(
        &mut self,
        batch: Vec<PendingOperation>,
        waiting: Vec<WaitingClaim>,
        outcome: BatchOutcome,
    ) {
        if !outcome.claimed.is_empty() {
            self.next_due = outcome.next_due;
            self.may_have_tasks = outcome.tasks_left;
            self.last_claim = Instant::now();
        }
        let session = self.session.as_mut().expect("it has just been used");
        let operations = batch.into_iter().map(|pending| pending.operation).collect();
        let (mut abandoned, rest) = batch_reply::reply(session, operations, outcome).await;
        let mut unserved = VecDeque::new();
        for (waiting, claimed) in waiting.into_iter().zip(rest) {
            match claimed {
                None => unserved.push_back(waiting),
                Some(claimed) => {
                    let claim = claimed.claim;
                    if waiting.reply.send(Ok(claimed)).is_err() {
                        abandoned.push(claim);
                    }
                }
            }
        }
        unserved.append(&mut self.claims);
        self.claims = unserved;
        for claim in abandoned {
            self.release_abandoned(claim).await;
        }
    }

    /// Releases a task whose worker has gone before it got the reply.
    async fn release_abandoned(&mut self, claim: Claim) {
        let Some(session) = self.session.as_mut() else { return };
        let release = Release::unused(WORKER_GONE);
        if let Err(error) = lease::release_in_transaction(session, claim, &release).await {
            // The lease expires and the sweep releases the task.
            warn!(task = %claim.task, ?error, "could not release a task of a worker that is gone");
            self.session = None;
        }
        self.may_have_tasks = true;
    }

    /// Keeps operations for the next transaction, and fails those whose deadline has passed.
    async fn postpone(
        &mut self,
        batch: Vec<PendingOperation>,
        waiting: Vec<WaitingClaim>,
        claims: &[PendingClaim],
        reason: &(dyn std::error::Error + Send + Sync),
    ) {
        if self.session.take().is_some() {
            self.unacknowledged.extend(claims.iter().map(|claim| claim.token));
        }
        let (since, failures) = self.outage.unwrap_or((Instant::now(), 0));
        self.outage = Some((since, failures.saturating_add(1)));
        if failures == 0 {
            warn!(error = message_of(reason), "the database is not available, trying again");
        }
        let now = Instant::now();
        let unavailable = || StoreError::Unavailable(message_of(reason).into());
        let all = batch.into_iter().chain(std::mem::take(&mut self.pending));
        for mut pending in all {
            if pending.deadline <= now {
                pending.operation.fail(unavailable());
                continue;
            }
            // The old token is released, so that a repeated claim needs another.
            if let LaneOperation::Claim(claim, _) = &mut pending.operation {
                claim.token = Uuid::now_v7();
            }
            self.pending.push_back(pending);
        }
        let waiting: Vec<_> = waiting.into_iter().chain(std::mem::take(&mut self.claims)).collect();
        if now.duration_since(since) >= OUTAGE_LIMIT {
            for claim in waiting {
                // The caller may have gone.
                let _ = claim.reply.send(Err(unavailable()));
            }
        } else {
            self.claims.extend(waiting);
        }
        let (first, longest) = RECONNECT_DELAY;
        sleep(first.saturating_mul(1 << failures.min(6)).min(longest)).await;
    }
}

/// Fails the one operation or claim of a transaction.
fn fail(batch: Vec<PendingOperation>, waiting: Vec<WaitingClaim>, error: StoreError) {
    match (batch.into_iter().next(), waiting.into_iter().next()) {
        (Some(pending), _) => pending.operation.fail(error),
        (None, Some(claim)) => drop(claim.reply.send(Err(error))),
        (None, None) => warn!(error = message_of(&error), "could not release lost claims"),
    }
}
