//! One background job, as its users see it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::JobError;
use super::id::{JobId, Owner};
use crate::outcome::Outcome;
use crate::reader::{Chunk, Cursor, LogReader, ReadError};
use crate::running::Started;
use crate::terminal::Terminal;

/// A handle to a background job. Clones are handles to the same job, and none keeps it alive: it
/// ends with its registry. What it has printed can be read as long as there is a handle.
#[derive(Clone, Debug)]
pub struct Job(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: JobId,
    name: String,
    owner: Owner,
    pid: i32,
    begun: Instant,
    cancel: CancellationToken,
    log: LogReader,
    terminal: Option<Terminal>,
    keep: Keep,
    /// The task that awaits the command drops its end of this when it is over, whatever the cause.
    ended: watch::Receiver<Option<Ended>>,
}

/// How a job ended, and when.
#[derive(Clone, Debug)]
struct Ended {
    outcome: Arc<Outcome>,
    at: Instant,
}

/// What a job is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum JobStatus {
    /// It runs.
    Running,
    /// It is over.
    Ended(Arc<Outcome>),
    /// It was killed because its registry is gone, so nobody saw how it ended.
    Lost,
}

/// How long a job that is over can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// Until there is no room: somebody waited for it and has its outcome.
    WhileThereIsRoom,
    /// After all others: nobody may have seen yet how it ended.
    First,
}

/// Why a wait for a job returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// There is something to read.
    Output,
    /// The job is over and everything was read.
    Ended,
    /// The time has passed.
    Timeout,
}

/// Who a job is.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) id: JobId,
    pub(super) name: String,
    pub(super) owner: Owner,
    pub(super) keep: Keep,
}

impl Job {
    /// Returns the handle and what runs the job, to be awaited by a task of the registry.
    pub(super) fn new<W: Future<Output = Option<Outcome>> + Send + 'static>(
        Identity { id, name, owner, keep }: Identity,
        Started { pid, begun, log, terminal }: Started,
        cancel: CancellationToken,
        waiting: W,
    ) -> Result<(Self, impl Future<Output = ()> + Send + use<W>), JobError> {
        let log = log.ok_or(JobError::NoLog)?;
        let (sender, ended) = watch::channel(None);
        let inner = Inner { id, name, owner, pid, begun, cancel, log, terminal, keep, ended };
        let task = async move {
            let outcome = waiting.await.map(Arc::new);
            sender.send_replace(outcome.map(|outcome| Ended { outcome, at: Instant::now() }));
        };
        Ok((Self(Arc::new(inner)), task))
    }

    /// Returns the id.
    pub fn id(&self) -> JobId {
        self.0.id
    }

    /// Returns the name that it was given.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns whom it belongs to.
    pub fn owner(&self) -> &Owner {
        &self.0.owner
    }

    /// Returns the process id of its main process.
    pub fn pid(&self) -> i32 {
        self.0.pid
    }

    /// Returns how long it can be read when it is over.
    pub(super) fn keep(&self) -> Keep {
        self.0.keep
    }

    /// Returns its terminal, if it has one. It ends with the job.
    pub fn terminal(&self) -> Option<&Terminal> {
        self.0.terminal.as_ref()
    }

    /// Returns how long it has run.
    pub fn elapsed(&self) -> Duration {
        match self.status() {
            JobStatus::Ended(outcome) => outcome.wall,
            JobStatus::Running | JobStatus::Lost => self.0.begun.elapsed(),
        }
    }

    /// Returns what it is doing.
    pub fn status(&self) -> JobStatus {
        // In this order: the sender says how the job ended before it goes.
        let gone = self.0.ended.has_changed().is_err();
        match &*self.0.ended.borrow() {
            Some(ended) => JobStatus::Ended(Arc::clone(&ended.outcome)),
            None if gone => JobStatus::Lost,
            None => JobStatus::Running,
        }
    }

    /// Returns when it ended; none while it runs.
    pub(super) fn ended_at(&self) -> Option<Instant> {
        let gone = self.0.ended.has_changed().is_err();
        match &*self.0.ended.borrow() {
            Some(ended) => Some(ended.at),
            None => gone.then_some(self.0.begun),
        }
    }

    /// Returns the last place in its log at this moment.
    pub fn log_end(&self) -> Cursor {
        self.0.log.end()
    }

    /// Reads at most `at_most` bytes of its log, without waiting for more output. When the part is
    /// the last, [`Job::status`] says how the job ended.
    pub async fn read(&self, from: Cursor, at_most: usize) -> Result<Chunk, ReadError> {
        // Asked first: the log ends a moment before the outcome is known.
        let over = self.status() != JobStatus::Running;
        let chunk = self.0.log.read(from, at_most).await?;
        Ok(Chunk { end: chunk.end && over, ..chunk })
    }

    /// Waits until there is output beyond `from`, the job is over, or the time has passed.
    ///
    /// Output that the log has no room for wakes nobody.
    pub async fn wait(&self, from: Cursor, at_most: Duration) -> Result<Wake, ReadError> {
        let output_or_end = async {
            if self.0.log.reaches_beyond(from).await? {
                return Ok(Wake::Output);
            }
            self.over().await;
            Ok(Wake::Ended)
        };
        tokio::time::timeout(at_most, output_or_end).await.unwrap_or(Ok(Wake::Timeout))
    }

    /// Waits until the job is over, and returns how.
    pub async fn over(&self) -> JobStatus {
        let mut ended = self.0.ended.clone();
        // An error means that the task is gone, which the status says as well.
        let _ = ended.wait_for(Option::is_some).await;
        self.status()
    }

    /// Ends the job with everything it started: asks, waits for its grace, kills. Returns how it
    /// ended, which may have been before.
    pub async fn kill(&self) -> JobStatus {
        self.stop();
        self.over().await
    }

    /// Asks for the end and does not wait for it.
    pub(super) fn stop(&self) {
        self.0.cancel.cancel();
    }
}
