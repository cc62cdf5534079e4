//! The writer thread and its group commit.
//!
//! SQLite allows one writer at a time, and a durable commit waits for the disk. All writes therefore go
//! to one thread, which takes the queued operations, up to 256, runs them in one transaction and
//! replies to all of them after one commit. Under load many callers share one sync: 8 submitters complete
//! 7,612 tasks a second, where appending to a file with one fdatasync for each of a task's two writes
//! reaches 3,155 (docs/benchmarks.md). A single caller pays for one sync and no delay, since the thread
//! never waits for more operations.
//!
//! Each operation runs in a savepoint, so that one that fails is rolled back alone. If the commit itself
//! fails, every operation of the transaction fails with `Unavailable` and none has taken effect.
//!
//! Claims that wait are kept by the thread. After the operations of a transaction it tries to claim tasks
//! for them, in the same transaction: a task that is submitted while a worker waits is committed once, as
//! queued and running, and reaches the worker without a further write. A claim whose worker has gone
//! meanwhile is released at once.
//!
//! A crash loses the operations that were not committed, none of which was replied to.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use carrel_domain::{Clock, SystemClock};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::warn;

use super::{claim, lease};
use crate::error::StoreError;
use crate::lifecycle::WORKER_GONE;
use crate::{ClaimRequest, Claimed, Release};

/// Operations in the queue. Further callers wait before they are queued.
const MAX_QUEUED: usize = 4096;

/// Operations of one transaction. Bounds the time that the first waits for the last.
const MAX_BATCH: usize = 256;

/// The interval at which waiting claims look for tasks that another process has submitted.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The handle of the writer thread, which ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    requests: Sender<Request>,
    capacity: Arc<Semaphore>,
}

enum Request {
    /// With its permit, held until the operation ran.
    Operation(Operation, OwnedSemaphorePermit),
    Claim(PendingClaim),
}

struct PendingClaim {
    request: ClaimRequest,
    reply: oneshot::Sender<Result<Claimed, StoreError>>,
}

/// Runs an operation, unless its transaction has failed and there is no connection to run it on. Returns
/// whether it succeeded; an error rolls back this operation and no other.
type Operation = Box<dyn FnOnce(Option<&Connection>) -> (bool, Reply) + Send>;

/// Replies to the caller after the commit, or with the reason for which it failed.
type Reply = Box<dyn FnOnce(Option<&str>)>;

fn ended() -> StoreError {
    StoreError::Unavailable("the writer thread has ended".into())
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let (requests, queue) = channel();
        let thread = Thread { connection, queue, claims: VecDeque::new(), turn: 0 };
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || thread.run())
            .map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Self { requests, capacity: Arc::new(Semaphore::new(MAX_QUEUED)) })
    }

    /// Runs an operation in a transaction and returns after the commit.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, replied) = oneshot::channel();
        let capacity = Arc::clone(&self.capacity);
        let permit = capacity.acquire_owned().await.map_err(|_| ended())?;
        let operation: Operation = Box::new(move |connection| {
            let outcome = connection.map_or_else(|| Err(ended()), work);
            let succeeded = outcome.is_ok();
            let answer: Reply = Box::new(move |failure| {
                let unavailable = |reason: &str| StoreError::Unavailable(reason.to_owned().into());
                // The caller may have gone; the operation is committed all the same.
                let _ = reply.send(failure.map_or(outcome, |reason| Err(unavailable(reason))));
            });
            (succeeded, answer)
        });
        self.requests.send(Request::Operation(operation, permit)).map_err(|_| ended())?;
        replied.await.map_err(|_| ended())?
    }

    pub(super) async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        let (reply, replied) = oneshot::channel();
        self.requests.send(Request::Claim(PendingClaim { request, reply })).map_err(|_| ended())?;
        replied.await.map_err(|_| ended())?
    }
}

struct Thread {
    connection: Connection,
    queue: Receiver<Request>,
    claims: VecDeque<PendingClaim>,
    turn: i64,
}

impl Thread {
    fn run(mut self) {
        loop {
            let first = match self.queue.recv_timeout(self.next_poll()) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut operations = Vec::new();
            let mut next = first;
            while let Some(request) = next {
                match request {
                    Request::Operation(operation, permit) => operations.push((operation, permit)),
                    Request::Claim(claim) => self.claims.push_back(claim),
                }
                next = (operations.len() < MAX_BATCH).then(|| self.queue.try_recv().ok()).flatten();
            }
            self.claims.retain(|claim| !claim.reply.is_closed());
            if !operations.is_empty() || self.may_claim() {
                self.commit(operations);
            }
        }
    }

    /// Returns the time until a waiting claim has to look for due tasks.
    fn next_poll(&self) -> Duration {
        if self.claims.is_empty() {
            return Duration::MAX;
        }
        let now = SystemClock.now();
        let due = claim::next_due(&self.connection).ok().flatten();
        due.map_or(POLL_EVERY, |due| now.age(due).clamp(Duration::from_millis(1), POLL_EVERY))
    }

    fn may_claim(&self) -> bool {
        !self.claims.is_empty() && claim::is_any_queued(&self.connection).unwrap_or(true)
    }

    /// Runs operations and waiting claims in one transaction, and replies to all of them.
    fn commit(&mut self, operations: Vec<(Operation, OwnedSemaphorePermit)>) {
        let mut replies = Vec::with_capacity(operations.len());
        let mut claimed = Vec::new();
        let outcome = self.in_transaction(operations, &mut replies, &mut claimed);
        let failure = outcome.err().map(|error| carrel_domain::message_of(&error));
        if let Some(reason) = &failure {
            warn!(%reason, "could not commit a transaction");
        }
        for reply in replies {
            reply(failure.as_deref());
        }
        for (pending, claimed) in claimed {
            match &failure {
                None => self.hand_over(pending, claimed),
                Some(_) => self.claims.push_front(pending),
            }
        }
    }

    fn in_transaction(
        &mut self,
        operations: Vec<(Operation, OwnedSemaphorePermit)>,
        replies: &mut Vec<Reply>,
        claimed: &mut Vec<(PendingClaim, Claimed)>,
    ) -> Result<(), StoreError> {
        let mut failed = self.execute("BEGIN IMMEDIATE").err();
        for (operation, _permit) in operations {
            let begun = failed.is_none().then(|| self.execute("SAVEPOINT one"));
            let connection = matches!(begun, Some(Ok(()))).then_some(&self.connection);
            let (succeeded, reply) = operation(connection);
            replies.push(reply);
            failed = failed.or_else(|| begun?.and_then(|()| self.end_savepoint(succeeded)).err());
        }
        if failed.is_none() {
            failed = self.serve_claims(claimed).err();
        }
        match failed {
            None => self.execute("COMMIT").inspect_err(|_| self.roll_back()),
            Some(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    fn end_savepoint(&self, succeeded: bool) -> Result<(), StoreError> {
        if !succeeded {
            self.execute("ROLLBACK TO one")?;
        }
        self.execute("RELEASE one")
    }

    /// Claims tasks for waiting claims, in the order in which they came.
    fn serve_claims(
        &mut self,
        claimed: &mut Vec<(PendingClaim, Claimed)>,
    ) -> Result<(), StoreError> {
        let mut unserved: VecDeque<PendingClaim> = VecDeque::new();
        let mut served = Ok(());
        while let Some(pending) = self.claims.pop_front() {
            let is_alike = |other: &PendingClaim| other.request.volume == pending.request.volume;
            // An earlier claim for the same volume found nothing.
            if served.is_err() || unserved.iter().any(is_alike) {
                unserved.push_back(pending);
                continue;
            }
            let now = SystemClock.now();
            self.turn = claim::next_turn(self.turn, now);
            match claim::claim(&self.connection, &pending.request, self.turn, now) {
                Ok(Some(task)) => claimed.push((pending, task)),
                Ok(None) => unserved.push_back(pending),
                Err(error) => {
                    unserved.push_back(pending);
                    served = Err(error);
                }
            }
        }
        self.claims = unserved;
        served
    }

    /// Sends a claimed task to its worker, or releases it if the worker has gone.
    fn hand_over(&self, pending: PendingClaim, claimed: Claimed) {
        let claim = claimed.claim;
        if pending.reply.send(Ok(claimed)).is_ok() {
            return;
        }
        let release = Release::unused(WORKER_GONE);
        let transaction = self.connection.unchecked_transaction().map_err(StoreError::from);
        let released = transaction.and_then(|transaction| {
            lease::release(&transaction, claim, &release)?;
            Ok(transaction.commit()?)
        });
        if let Err(error) = released {
            // The lease expires and the sweep releases the task.
            warn!(task = %claim.task, %error, "could not release a task of a worker that is gone");
        }
    }

    fn execute(&self, statement: &str) -> Result<(), StoreError> {
        self.connection.prepare_cached(statement)?.execute([])?;
        Ok(())
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            warn!(%error, "could not roll back a transaction");
        }
    }
}
