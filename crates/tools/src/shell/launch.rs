//! The start of a command as a job.
//!
//! [`Launch`] describes a command, [`Launch::start`] starts it, and the [`Shell`] that results is kept in the
//! [`ShellTable`](super::ShellTable) under its job's id. The runner's future is polled by the job's own task
//! from then on, so that a command goes on when the call that started it ends. It is killed when a lasting
//! session that started it ends.
//!
//! A command that no call waits for, and that of a call which became a task, has a record and a named log
//! ([`JobRecords`](super::JobRecords)) if the server keeps them.

use std::fs::File;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use carrel_domain::{ByteSize, Clock as _, Code, Failure, SystemClock, Timestamp, sync};
use carrel_exec::{
    Captured, Cursor, Job, JobError, JobId, JobStatus, LogFile, Outcome, Piece, Retention, Started,
};
use carrel_runner::{CommandForm, Completed, RunError, RunRequest};
use carrel_shell::Preset;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;

use super::job_records::{JobEnd, JobRecord, KeptJob};
use super::process_watcher::ProcessWatcher;
use crate::blocking::blocking;
use crate::snapshots;
use crate::tool_context::ToolContext;

/// Bounds the output of one command that is kept on disk.
const MAX_LOG: ByteSize = ByteSize::mib(64);

/// Bytes of each end of a stream that stay in memory after the output was parsed.
const SLIM_BYTES: usize = 50 * 1024;

/// The interval of progress notifications while a call waits.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

type Ended = Result<Completed, RunError>;

#[derive(Debug)]
pub(crate) struct Launch {
    /// Without a wall-clock limit the command runs in the background, and no call waits for it.
    pub(crate) request: RunRequest,
    /// The variables and the SSH key of the call are left out.
    pub(crate) own_environment: bool,
    /// The caller asks for a snapshot before the command.
    pub(crate) snapshot: bool,
    name: String,
}

#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) job: Job,
    /// The directory of its workspace.
    pub(super) directory: PathBuf,
    pub(crate) command: String,
    pub(crate) started: Timestamp,
    completed: Arc<OnceLock<Result<Completed, Failure>>>,
    /// The end of the output that `BashOutput` has returned.
    pub(crate) shown: Mutex<Cursor>,
    /// Set for commands of `watch_process`.
    pub(crate) watched: Option<Arc<ProcessWatcher>>,
    pub(super) cause: EndCause,
    /// The number of the snapshot before the command.
    pub(crate) snapshot: Option<String>,
}

/// The reason for which a job is ended from outside, known before it ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndCause(Arc<OnceLock<JobEnd>>);

impl EndCause {
    /// Sets the reason; the first one counts.
    pub(crate) fn set(&self, cause: JobEnd) {
        let _ = self.0.set(cause);
    }

    fn get(&self) -> Option<JobEnd> {
        self.0.get().copied()
    }
}

impl Launch {
    pub(crate) fn new(form: CommandForm, name: impl Into<String>) -> Self {
        let request = RunRequest { preset: Preset::Denylist, ..RunRequest::new(form) };
        Self { request, own_environment: false, snapshot: false, name: name.into() }
    }

    pub(crate) async fn start(self, context: &ToolContext) -> Result<Arc<Shell>, Failure> {
        self.start_with(context, None).await
    }

    /// Starts the command and sends its output to a watcher as well.
    pub(crate) async fn start_with(
        self,
        context: &ToolContext,
        watched: Option<(Arc<ProcessWatcher>, mpsc::Sender<Piece>)>,
    ) -> Result<Arc<Shell>, Failure> {
        let toolbox = Arc::clone(&context.toolbox);
        let owner = context.session.owner().clone();
        let is_awaited = self.request.limits.wall.is_some();
        let (reserved, kind) = if is_awaited {
            (toolbox.jobs.reserve_awaited(owner), Retention::EvictFirst)
        } else {
            (toolbox.jobs.reserve(owner), Retention::EvictLast)
        };
        let reserved = reserved.map_err(|error| too_many(context, error, kind))?;
        let snapshot = snapshots::before_command(context, self.snapshot).await?;
        let (asked, started) = oneshot::channel();
        let name = self.name.clone();
        let begun = SystemClock.now();
        let is_kept = !is_awaited || context.options.command_settings.keep_log;
        let (kept, log) = if is_kept {
            keep(context, reserved.id(), &name, begun).await?.unzip()
        } else {
            (None, None)
        };
        let mut request = self.complete(context);
        request.log = Some(LogFile { file: log, limit: MAX_LOG });
        request.limits.lifetime = (!is_awaited).then(|| reserved.lifetime());
        request.started = Some(asked);
        let (watched, live) = watched.unzip();
        request.live = live.or_else(|| context.options.command_settings.output.clone());
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let runner = toolbox.runner.clone();
        let handle = Arc::clone(context.workspace());
        let running = async move { runner.run(handle.handle(), request, &stop).await };
        let (started, running) = match started_of(running, started).await {
            Ok(started) => started,
            Err(failure) => {
                discard(kept).await;
                return Err(failure);
            }
        };
        let completed = Arc::new(OnceLock::new());
        let cause = EndCause::default();
        let waiting = remember(running, Arc::clone(&completed), cause.clone(), kept);
        let job = reserved.adopt(&name, started, cancel, waiting)?;
        let shell = Arc::new(Shell {
            job,
            directory: context.workspace().path().to_owned(),
            command: name,
            started: begun,
            completed,
            shown: Mutex::new(Cursor::START),
            watched,
            cause,
            snapshot,
        });
        context.session.add_job(&shell.job, &shell.cause);
        toolbox.shells.insert(&toolbox.jobs, Arc::clone(&shell));
        if let Some(started) = &context.options.command_settings.started {
            // The receiver wants the first job alone.
            let _ = started.try_send(shell.job.id());
        }
        Ok(shell)
    }

    /// Adds the settings of the call to the request.
    fn complete(self, context: &ToolContext) -> RunRequest {
        let settings = &context.options.command_settings;
        let mut request = self.request;
        if !self.own_environment {
            let given = settings.environment.iter().map(|(name, value)| (name, value.expose()));
            request.environment.extend(given.map(|(name, value)| (name.into(), value.into())));
            let author = settings.author_variables();
            request.environment.extend(author.map(|(name, value)| (name.into(), value.into())));
            request.ssh_key.clone_from(&settings.ssh_key);
        }
        request.network = request.network.within(settings.network).within(context.toolbox.network);
        request.audited_call = Some(context.audited_call());
        request.limits.wall = settings.timeout.or(request.limits.wall);
        request
    }
}

/// Adds to a refusal the jobs that the session can end. Jobs of other sessions are not named, even of the
/// same owner: only the client that started a job knows its id.
fn too_many(context: &ToolContext, error: JobError, kind: Retention) -> Failure {
    let failure = Failure::from(error);
    let running = context.session.running_jobs(kind);
    if failure.code != Code::TooManyJobs || running.is_empty() {
        return failure;
    }
    let ids: Vec<_> = running.iter().map(JobId::to_string).collect();
    let message = format!("{}; end one with KillShell: {}", failure.message, ids.join(", "));
    Failure { message, ..failure }.with("running", ids)
}

/// Begins the record of a job, if the server keeps records.
async fn keep(
    context: &ToolContext,
    id: JobId,
    name: &str,
    begun: Timestamp,
) -> Result<Option<(KeptJob, File)>, Failure> {
    let Some(records) = context.toolbox.job_records() else { return Ok(None) };
    let records = Arc::clone(records);
    let mut command = name.to_owned();
    context.toolbox.redactor().redact_text(&mut command);
    let directory = context.workspace().path();
    let record = JobRecord::new(context.session.owner(), directory, command, begun);
    blocking(move || Ok(records.begin(id, record))).await
}

/// Deletes the record of a command that did not start.
async fn discard(kept: Option<KeptJob>) {
    let Some(kept) = kept else { return };
    let discard = move || {
        kept.discard();
        Ok(())
    };
    // A record that stays is dropped when there are newer ones.
    let _ = blocking(discard).await;
}

async fn remember(
    running: impl Future<Output = Ended> + Send,
    completed: Arc<OnceLock<Result<Completed, Failure>>>,
    cause: EndCause,
    kept: Option<KeptJob>,
) -> Option<Outcome> {
    let ended = running.await;
    // The job does not need the output, which is stored with the result.
    let outcome = ended.as_ref().ok().map(|ended| Outcome {
        stdout: Captured::default(),
        stderr: Captured::default(),
        ..ended.outcome.clone()
    });
    // Nothing else sets it.
    let _ = completed.set(ended.map_err(Failure::from));
    if let Some(kept) = kept {
        let end = outcome.as_ref().map_or(JobEnd::Lost, |ended| JobEnd::of(ended, cause.get()));
        // A server that stops may no longer write it; the missing end then says so.
        let write = move || {
            kept.end(end);
            Ok(())
        };
        let _ = blocking(write).await;
    }
    outcome
}

/// Polls a command until it has started, and returns the future of its end.
async fn started_of(
    running: impl Future<Output = Ended> + Send + 'static,
    mut started: oneshot::Receiver<Started>,
) -> Result<(Started, Pin<Box<dyn Future<Output = Ended> + Send>>), Failure> {
    let mut running: Pin<Box<dyn Future<Output = Ended> + Send>> = Box::pin(running);
    let start = tokio::select! {
        biased;
        start = &mut started => start.ok(),
        // A short command can end before the message about its start is read.
        ended = &mut running => {
            running = Box::pin(std::future::ready(ended));
            started.try_recv().ok()
        }
    };
    match start {
        Some(started) => Ok((started, running)),
        None => Err(running.await.err().map_or_else(
            || Failure::new(Code::Internal, "a command ended without having started"),
            Failure::from,
        )),
    }
}

impl Shell {
    /// Waits for the end. Cancellation of the call kills the command.
    pub(crate) async fn wait(&self, context: &ToolContext) -> Result<&Completed, Failure> {
        let mut progress = interval_at(Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
        loop {
            tokio::select! {
                biased;
                _ = self.job.ended() => return self.result(),
                () = context.cancel().cancelled() => {
                    self.job.kill().await;
                    return self.result();
                }
                _ = progress.tick() => self.report_progress(context),
            }
        }
    }

    fn report_progress(&self, context: &ToolContext) {
        let seconds = self.job.elapsed().as_secs();
        let bytes = self.job.log_end();
        let message = format!("running for {seconds} s, {bytes} bytes of output");
        #[expect(clippy::cast_precision_loss, reason = "seconds since the start")]
        context.progress(seconds as f64, None, &message);
    }

    /// Returns the result of a command that has ended.
    pub(super) fn result(&self) -> Result<&Completed, Failure> {
        match self.completed.get() {
            Some(Ok(completed)) => Ok(completed),
            Some(Err(failure)) => Err(failure.clone()),
            None => Err(Failure::new(Code::Cancelled, "the command was ended with the server")),
        }
    }

    pub(crate) fn completed(&self) -> Option<&Completed> {
        self.completed.get().and_then(|ended| ended.as_ref().ok())
    }

    /// Drops output that was kept in memory for a parser; the log still has all of it.
    pub(crate) fn release_output(&self, context: &ToolContext) {
        let Some(completed) = self.completed() else { return };
        let mut released = completed.clone();
        released.artifacts.files.clear();
        for stream in [&mut released.outcome.stdout, &mut released.outcome.stderr] {
            stream.head.truncate(SLIM_BYTES);
            let surplus = stream.tail.len().saturating_sub(SLIM_BYTES);
            stream.tail.drain(..surplus);
        }
        let shell = Self {
            job: self.job.clone(),
            directory: self.directory.clone(),
            command: self.command.clone(),
            started: self.started,
            completed: Arc::new(OnceLock::from(Ok(released))),
            shown: Mutex::new(self.shown()),
            watched: None,
            cause: self.cause.clone(),
            snapshot: self.snapshot.clone(),
        };
        context.toolbox.shells.insert(&context.toolbox.jobs, Arc::new(shell));
    }

    /// Drops the command from memory, and its record.
    pub(crate) async fn forget(&self, context: &ToolContext) -> Result<(), Failure> {
        let id = self.job.id();
        context.toolbox.shells.remove(id);
        let Some(records) = context.toolbox.job_records() else { return Ok(()) };
        let records = Arc::clone(records);
        let remove = move || {
            records.remove(id);
            Ok(())
        };
        blocking(remove).await
    }

    pub(crate) fn shown(&self) -> Cursor {
        *sync::lock(&self.shown)
    }

    pub(crate) fn show_to(&self, cursor: Cursor) {
        *sync::lock(&self.shown) = cursor;
    }

    /// Returns the state as tools show it: `running`, `completed (exit 0)`, `lost`.
    pub(crate) fn status(&self) -> String {
        match self.job.status() {
            JobStatus::Running => "running".into(),
            JobStatus::Lost => "lost".into(),
            JobStatus::Ended(outcome) => JobEnd::of(&outcome, self.cause.get()).status(),
        }
    }

    pub(super) fn end(&self) -> Option<JobEnd> {
        match self.job.status() {
            JobStatus::Running => None,
            JobStatus::Lost => Some(JobEnd::Lost),
            JobStatus::Ended(outcome) => Some(JobEnd::of(&outcome, self.cause.get())),
        }
    }
}
