//! A background job, as its users see it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::JobError;
use super::id::{JobId, Owner};
use crate::log_reader::{Chunk, Cursor, LogReader, ReadError};
use crate::outcome::Outcome;
use crate::running_command::Started;
use crate::terminal::Terminal;

/// A handle to a background job. No handle keeps the job alive: it ends with its registry. Its output can
/// be read as long as there is a handle.
#[derive(Clone, Debug)]
pub struct Job(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    identity: Identity,
    pid: i32,
    begun: Instant,
    cancel: CancellationToken,
    log: LogReader,
    terminal: Option<Terminal>,
    /// The task that awaits the command drops the sender when it ends, also by a panic or an abort.
    ended: watch::Receiver<Option<Ended>>,
}

#[derive(Clone, Debug)]
struct Ended {
    outcome: Arc<Outcome>,
    at: Instant,
}

/// The status of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum JobStatus {
    /// The command runs.
    Running,
    /// The command has ended.
    Ended(Arc<Outcome>),
    /// The command was killed together with its task, and its outcome is unknown.
    Lost,
}

/// The order in which ended jobs are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Retention {
    /// Before all others: a caller waited for it and has its outcome.
    EvictFirst,
    /// After all others: its outcome may not have been read yet.
    EvictLast,
}

/// The reason for which a wait for a job returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// There is something to read.
    Output,
    /// The job has ended and everything was read.
    Ended,
    /// The timeout passed.
    Timeout,
}

#[derive(Debug)]
pub(super) struct Identity {
    pub(super) id: JobId,
    /// Counts the jobs of the registry in the order of their reservation.
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) owner: Owner,
    pub(super) keep: Retention,
}

impl Job {
    /// Returns the handle and the future that runs the job, for a task of the registry.
    pub(super) fn new<W: Future<Output = Option<Outcome>> + Send + 'static>(
        identity: Identity,
        Started { pid, begun, log, terminal }: Started,
        cancel: CancellationToken,
        waiting: W,
    ) -> Result<(Self, impl Future<Output = ()> + Send + use<W>), JobError> {
        let log = log.ok_or(JobError::NoLog)?;
        let (sender, ended) = watch::channel(None);
        let inner = Inner { identity, pid, begun, cancel, log, terminal, ended };
        let task = async move {
            let outcome = waiting.await.map(Arc::new);
            sender.send_replace(outcome.map(|outcome| Ended { outcome, at: Instant::now() }));
        };
        Ok((Self(Arc::new(inner)), task))
    }

    /// Returns the id.
    pub fn id(&self) -> JobId {
        self.0.identity.id
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.0.identity.name
    }

    /// Returns the owner.
    pub fn owner(&self) -> &Owner {
        &self.0.identity.owner
    }

    pub(super) fn number(&self) -> u64 {
        self.0.identity.number
    }

    /// Returns the process id of its main process.
    pub fn pid(&self) -> i32 {
        self.0.pid
    }

    /// Returns its place in the order of eviction, which tells whether a caller waits for it.
    pub fn keep(&self) -> Retention {
        self.0.identity.keep
    }

    /// Returns the terminal, if there is one. It ends with the job.
    pub fn terminal(&self) -> Option<&Terminal> {
        self.0.terminal.as_ref()
    }

    /// Returns the time since the request, up to the end of the job.
    pub fn elapsed(&self) -> Duration {
        match self.status() {
            JobStatus::Ended(outcome) => outcome.wall,
            JobStatus::Running | JobStatus::Lost => self.0.begun.elapsed(),
        }
    }

    /// Returns the status.
    pub fn status(&self) -> JobStatus {
        // Checked before the value: the sender sets the outcome before it is dropped.
        let gone = self.0.ended.has_changed().is_err();
        match &*self.0.ended.borrow() {
            Some(ended) => JobStatus::Ended(Arc::clone(&ended.outcome)),
            None if gone => JobStatus::Lost,
            None => JobStatus::Running,
        }
    }

    /// Returns the time of the end; for a lost job that of its request, so that it is evicted early.
    pub(super) fn ended_at(&self) -> Option<Instant> {
        let gone = self.0.ended.has_changed().is_err();
        match &*self.0.ended.borrow() {
            Some(ended) => Some(ended.at),
            None => gone.then_some(self.0.begun),
        }
    }

    /// Returns the end of the log at this moment.
    pub fn log_end(&self) -> Cursor {
        self.0.log.end()
    }

    /// Reads at most `at_most` bytes of the log, without waiting for more output. After the last part
    /// [`Job::status`] has the outcome.
    pub async fn read(&self, from: Cursor, at_most: usize) -> Result<Chunk, ReadError> {
        // Checked first: the log ends a moment before the outcome is set.
        let over = self.status() != JobStatus::Running;
        let chunk = self.0.log.read(from, at_most).await?;
        Ok(Chunk { end: chunk.end && over, ..chunk })
    }

    /// Waits until there is output beyond `from`, the job has ended, or the timeout passes. Output beyond
    /// the limit of the log does not wake.
    pub async fn wait(&self, from: Cursor, at_most: Duration) -> Result<WakeReason, ReadError> {
        let output_or_end = async {
            if self.0.log.reaches_beyond(from).await? {
                return Ok(WakeReason::Output);
            }
            self.ended().await;
            Ok(WakeReason::Ended)
        };
        tokio::time::timeout(at_most, output_or_end).await.unwrap_or(Ok(WakeReason::Timeout))
    }

    /// Waits for the end of the job, and returns its status.
    pub async fn ended(&self) -> JobStatus {
        let mut ended = self.0.ended.clone();
        // An error means that the task has ended, which the status shows.
        let _ = ended.wait_for(Option::is_some).await;
        self.status()
    }

    /// Ends the job with everything it started: `SIGTERM`, the grace period, `SIGKILL`. Returns its
    /// status, also if it had ended before.
    pub async fn kill(&self) -> JobStatus {
        self.stop();
        self.ended().await
    }

    pub(super) fn stop(&self) {
        self.0.cancel.cancel();
    }
}
