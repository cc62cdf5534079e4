//! The one thread that writes.
//!
//! Operations that wait together are done in one transaction and answered after one commit, so that
//! many callers share the cost of reaching the disk. A worker that found nothing to do waits here: what
//! is submitted is claimed in the same transaction, if somebody waits for it.

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
use crate::model::{ClaimRequest, Claimed, Release};

/// Operations that may wait. More callers than that wait before they ask.
const MAX_WAITING: usize = 4096;

/// Operations of one commit, so that the first is not kept waiting by the last.
const MAX_BATCH: usize = 256;

/// How often waiting workers look for what another process has submitted.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The way to the thread that writes.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    requests: Sender<Request>,
    room: Arc<Semaphore>,
}

enum Request {
    /// The permit is held until it is done.
    Operation(Box<dyn Operation>, OwnedSemaphorePermit),
    Wait(QueuedTask),
}

/// A worker that waits for a task.
struct QueuedTask {
    request: ClaimRequest,
    reply: oneshot::Sender<Result<Claimed, StoreError>>,
}

/// A piece of work that is done in a transaction and answered after the commit.
trait Operation: Send {
    /// Does it. An error takes back what it did, and nothing else.
    fn perform(&mut self, connection: &Connection) -> Result<(), ()>;

    /// Answers whoever asked.
    fn answer(self: Box<Self>, committed: Result<(), &CommitFailure>);
}

/// Why a whole transaction was lost. Each of its operations is told.
struct CommitFailure(String);

impl CommitFailure {
    fn to_error(&self) -> StoreError {
        StoreError::Unavailable(self.0.clone().into())
    }
}

struct Single<F, T> {
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Operation for Single<F, T>
where
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn perform(&mut self, connection: &Connection) -> Result<(), ()> {
        let work = self.work.take().expect("an operation is performed once");
        let outcome = work(connection);
        let performed = outcome.as_ref().map(|_| ()).map_err(|_| ());
        self.outcome = Some(outcome);
        performed
    }

    fn answer(self: Box<Self>, committed: Result<(), &CommitFailure>) {
        let outcome = match committed {
            Ok(()) => self.outcome.unwrap_or_else(|| Err(gone())),
            Err(failure) => Err(failure.to_error()),
        };
        // Whoever asked may have given up; what is done is done.
        let _ = self.reply.send(outcome);
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable("the thread that writes has ended".into())
}

impl Writer {
    /// Starts the thread. It ends when the last handle is dropped.
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let (requests, queue) = channel();
        let thread = Thread { connection, queue, waiting: VecDeque::new(), turn: 0 };
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || thread.run())
            .map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Self { requests, room: Arc::new(Semaphore::new(MAX_WAITING)) })
    }

    /// Does something in a transaction, and returns when that is on the disk.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let room = Arc::clone(&self.room);
        let permit = room.acquire_owned().await.map_err(|_| gone())?;
        let operation = Box::new(Single { work: Some(work), outcome: None, reply });
        self.requests.send(Request::Operation(operation, permit)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Waits for a task.
    pub(super) async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::Wait(QueuedTask { request, reply })).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

struct Thread {
    connection: Connection,
    queue: Receiver<Request>,
    waiting: VecDeque<QueuedTask>,
    /// The last turn that was given to a workspace.
    turn: i64,
}

impl Thread {
    fn run(mut self) {
        loop {
            let first = match self.queue.recv_timeout(self.patience()) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut operations = Vec::new();
            let mut next = first;
            while let Some(request) = next {
                match request {
                    Request::Operation(operation, permit) => operations.push((operation, permit)),
                    Request::Wait(waiting) => self.waiting.push_back(waiting),
                }
                next = (operations.len() < MAX_BATCH).then(|| self.queue.try_recv().ok()).flatten();
            }
            self.waiting.retain(|waiting| !waiting.reply.is_closed());
            if !operations.is_empty() || self.may_claim() {
                self.commit(operations);
            }
        }
    }

    /// Returns how long nothing has to be done unless somebody asks.
    fn patience(&self) -> Duration {
        if self.waiting.is_empty() {
            return Duration::MAX;
        }
        let now = SystemClock.now();
        let due = claim::next_due(&self.connection).ok().flatten();
        due.map_or(LOOK_AGAIN, |due| now.age(due).clamp(Duration::from_millis(1), LOOK_AGAIN))
    }

    fn may_claim(&self) -> bool {
        !self.waiting.is_empty() && claim::is_any_queued(&self.connection).unwrap_or(true)
    }

    /// Does everything in one transaction.
    fn commit(&mut self, operations: Vec<(Box<dyn Operation>, OwnedSemaphorePermit)>) {
        let mut done = Vec::with_capacity(operations.len());
        let mut claimed = Vec::new();
        let outcome = self.in_transaction(operations, &mut done, &mut claimed);
        let failure = outcome.err().map(|error| CommitFailure(carrel_domain::message_of(&error)));
        if let Some(CommitFailure(reason)) = &failure {
            warn!(%reason, "a transaction was lost");
        }
        for operation in done {
            operation.answer(failure.as_ref().map_or(Ok(()), Err));
        }
        for (waiting, claimed) in claimed {
            match &failure {
                None => self.hand_over(waiting, claimed),
                Some(_) => self.waiting.push_front(waiting),
            }
        }
    }

    fn in_transaction(
        &mut self,
        operations: Vec<(Box<dyn Operation>, OwnedSemaphorePermit)>,
        done: &mut Vec<Box<dyn Operation>>,
        claimed: &mut Vec<(QueuedTask, Claimed)>,
    ) -> Result<(), StoreError> {
        let begun = self.execute("BEGIN IMMEDIATE");
        let mut failed = begun.err();
        for (mut operation, _permit) in operations {
            if failed.is_none() {
                failed = self.perform(operation.as_mut()).err();
            }
            done.push(operation);
        }
        if failed.is_none() {
            failed = self.serve(claimed).err();
        }
        match failed {
            None => self.execute("COMMIT").inspect_err(|_| self.roll_back()),
            Some(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    /// Does one operation, so that its failure leaves the others alone.
    fn perform(&self, operation: &mut dyn Operation) -> Result<(), StoreError> {
        self.execute("SAVEPOINT one")?;
        if operation.perform(&self.connection).is_err() {
            self.execute("ROLLBACK TO one")?;
        }
        self.execute("RELEASE one")
    }

    /// Gives tasks to those who wait, in the order in which they came.
    fn serve(&mut self, claimed: &mut Vec<(QueuedTask, Claimed)>) -> Result<(), StoreError> {
        let mut still = VecDeque::new();
        let mut served = Ok(());
        while let Some(waiting) = self.waiting.pop_front() {
            let wants = |other: &QueuedTask| other.request.volume == waiting.request.volume;
            // There was nothing for one that came before with the same wish.
            if served.is_err() || still.iter().any(wants) {
                still.push_back(waiting);
                continue;
            }
            let now = SystemClock.now();
            self.turn = claim::next_turn(self.turn, now);
            match claim::claim(&self.connection, &waiting.request, self.turn, now) {
                Ok(Some(task)) => claimed.push((waiting, task)),
                Ok(None) => still.push_back(waiting),
                Err(error) => {
                    still.push_back(waiting);
                    served = Err(error);
                }
            }
        }
        self.waiting = still;
        served
    }

    /// Gives a task to its worker, and takes it back if that one has gone.
    fn hand_over(&self, waiting: QueuedTask, claimed: Claimed) {
        let claim = claimed.claim;
        if waiting.reply.send(Ok(claimed)).is_ok() {
            return;
        }
        let now = SystemClock.now();
        let reason = "its worker stopped before it began".to_owned();
        let back = Release { reason, due: now, now, counts: false };
        let taken = self.connection.unchecked_transaction().map_err(StoreError::from);
        let taken = taken.and_then(|transaction| {
            lease::release(&transaction, claim, &back)?;
            Ok(transaction.commit()?)
        });
        if let Err(error) = taken {
            // The claim runs out by itself.
            warn!(task = %claim.task, %error, "could not take back a task from a worker that is gone");
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
            warn!(%error, "could not take back a transaction");
        }
    }
}
