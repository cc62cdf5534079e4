//! A running agent process: its stdin, its lines of output and its exit.
//!
//! Two tasks surround the process. One writes queued messages to its stdin, so that an agent that does not read
//! blocks its sender only after [`MAX_QUEUED_MESSAGES`]; the other splits stdout and stderr into lines and
//! reports the exit. Output is read even when the events are not, since a process with a full pipe cannot
//! exit. Dropping a [`Process`] cancels its run, and the runner kills the whole process tree.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::message_of;
use carrel_exec::{
    CaptureLimits, ExitStatus, Output, Piece, SpawnError, Started, Stdin, Stop, StreamName,
};
use carrel_runner::{Completed, LimitReached, RunError, RunRequest, Runner, WorkspaceHandle};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, warn};

use crate::Teardown;
use crate::failure::{AgentFailure, FailureKind, Result};
use crate::line_splitter::{LineSplitter, OutputLine};

/// Lines that wait to be read. Each may have 10 MiB; an agent that writes faster is slowed down.
const MAX_QUEUED_LINES: usize = 4;

/// Messages that wait for the agent to read them.
const MAX_QUEUED_MESSAGES: usize = 64;

/// The time for a cancelled process to end. The runner kills the processes after half a second and their
/// init after five more; the rest is for a busy machine.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);

/// The part of stderr that is captured for the message of a failure.
const KEPT_STDERR: CaptureLimits =
    CaptureLimits { head: carrel_domain::ByteSize::kib(2), tail: carrel_domain::ByteSize::kib(6) };

/// The part of stdout that is captured; its lines are read as they arrive.
const KEPT_STDOUT: CaptureLimits =
    CaptureLimits { head: carrel_domain::ByteSize::kib(1), tail: carrel_domain::ByteSize::kib(1) };

/// The exit status of a shell that did not find the program.
const NOT_FOUND: i32 = 127;

#[derive(Debug)]
pub(crate) enum ProcessEvent {
    Stdout(OutputLine),
    Stderr(OutputLine),
    Exited(ExitReport),
}

#[derive(Clone, Debug)]
pub(crate) struct ExitReport {
    /// The exit status; `None` if it was killed or stopped.
    pub(crate) status: Option<i32>,
    /// The cause for error messages: status, limit, denial and stderr.
    pub(crate) description: String,
}

#[derive(Debug)]
pub(crate) enum Input {
    Text(String),
    Pipe,
}

/// A running agent process with its descendants. Dropping it kills them in the background.
#[derive(Debug)]
pub(crate) struct Process {
    /// The process id; `None` inside a pid namespace, where it means nothing outside.
    pub(crate) pid: Option<u32>,
    stdin_messages: Option<mpsc::Sender<Vec<u8>>>,
    events: mpsc::Receiver<ProcessEvent>,
    stop: DropGuard,
    exited: JoinHandle<()>,
}

impl Process {
    /// Starts a process, and returns when it has been executed.
    pub(crate) async fn start(
        runner: Arc<Runner>,
        workspace: Arc<WorkspaceHandle>,
        mut request: RunRequest,
        input: Input,
    ) -> Result<Self> {
        let (stdin, stdin_messages) =
            input.open().map_err(|error| launch_failed(message_of(&error)))?;
        let (pieces, printed) = mpsc::channel(1);
        let (starting, started) = oneshot::channel();
        request.stdin = stdin;
        request.output = Output::Separate { stdout: KEPT_STDOUT, stderr: KEPT_STDERR };
        request.live = Some(pieces);
        request.started = Some(starting);
        let stop = CancellationToken::new();
        // In the sandbox's pid namespace processes are numbered from one.
        let is_numbered = !runner.is_sandboxed();
        let running = carrel_exec::spawn_task({
            let stop = stop.clone();
            async move { runner.run(&workspace, request, &stop).await }
        });
        let stop = stop.drop_guard();
        let Ok(Started { pid, .. }) = started.await else {
            return Err(start_failure(running.await));
        };
        let (sender, events) = mpsc::channel(MAX_QUEUED_LINES);
        let exited = carrel_exec::spawn_task(read_output(printed, running, sender));
        let pid = u32::try_from(pid).ok().filter(|_| is_numbered);
        Ok(Self { pid, stdin_messages, events, stop, exited })
    }

    /// Returns the next event; `None` after [`ProcessEvent::Exited`]. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<ProcessEvent> {
        self.events.recv().await
    }

    /// Queues bytes for stdin. Fails if the queue stays full for `limit`.
    pub(crate) async fn write(&self, bytes: Vec<u8>, limit: Duration) -> Result<()> {
        let Some(stdin_messages) = &self.stdin_messages else { return Ok(()) };
        match timeout(limit, stdin_messages.send(bytes)).await {
            // An error means that it has closed its stdin; its exit is reported as an event.
            Ok(_) => Ok(()),
            Err(_) => FailureKind::ResponseTimeout.err("the agent does not read its stdin"),
        }
    }

    /// Ends the process and its descendants: closes stdin, waits for `limit`, then cancels the run, which
    /// sends SIGTERM and SIGKILL.
    pub(crate) async fn close(self, limit: Duration) -> Teardown {
        let Self { stdin_messages, events, stop, mut exited, .. } = self;
        drop((stdin_messages, events));
        if timeout(limit, &mut exited).await.is_ok() {
            return Teardown::Complete;
        }
        drop(stop);
        match timeout(KILL_TIMEOUT, exited).await {
            Ok(Ok(())) => Teardown::Complete,
            Ok(Err(error)) => {
                debug!(%error, "could not wait for an agent");
                Teardown::Complete
            }
            Err(_) => {
                warn!("an agent was killed and has not ended");
                Teardown::Incomplete
            }
        }
    }
}

impl Input {
    fn open(self) -> io::Result<(Stdin, Option<mpsc::Sender<Vec<u8>>>)> {
        match self {
            Self::Text(text) => Ok((Stdin::Bytes(text.into_bytes()), None)),
            Self::Pipe => {
                let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
                let (sender, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
                carrel_exec::spawn_task(write_messages(messages, non_blocking(ours)?));
                Ok((Stdin::Opened(theirs), Some(sender)))
            }
        }
    }
}

/// Makes our end of the pipe non-blocking. The agent's end stays blocking, as programs expect it.
fn non_blocking(ours: OwnedFd) -> io::Result<Sender> {
    rustix::io::ioctl_fionbio(&ours, true)?;
    Sender::from_owned_fd(ours)
}

/// Writes queued messages until the queue or the pipe is closed.
async fn write_messages(mut messages: mpsc::Receiver<Vec<u8>>, mut pipe: Sender) {
    while let Some(message) = messages.recv().await {
        if let Err(error) = pipe.write_all(&message).await {
            debug!(%error, "an agent has closed its stdin");
            return;
        }
    }
}

/// Splits the output into lines until it ends, and reports the exit.
async fn read_output(
    mut printed: mpsc::Receiver<Piece>,
    running: JoinHandle<Result<Completed, RunError>>,
    sender: mpsc::Sender<ProcessEvent>,
) {
    let (mut stdout, mut stderr) = (LineSplitter::default(), LineSplitter::default());
    // Events may have no reader; the output is read all the same, so that the process can exit.
    while let Some(Piece { stream, bytes }) = printed.recv().await {
        let (splitter, kind): (_, fn(OutputLine) -> ProcessEvent) = match stream {
            StreamName::Stdout => (&mut stdout, ProcessEvent::Stdout),
            StreamName::Stderr => (&mut stderr, ProcessEvent::Stderr),
        };
        for line in splitter.push(&bytes) {
            let _ = sender.send(kind(line)).await;
        }
    }
    let last =
        [stdout.finish().map(ProcessEvent::Stdout), stderr.finish().map(ProcessEvent::Stderr)];
    for events in last.into_iter().flatten() {
        let _ = sender.send(events).await;
    }
    let ending = match running.await {
        Ok(Ok(completed)) => ExitReport::of(&completed),
        Ok(Err(error)) => ExitReport { status: None, description: message_of(&error) },
        Err(error) => ExitReport { status: None, description: error.to_string() },
    };
    let _ = sender.send(ProcessEvent::Exited(ending)).await;
}

impl ExitReport {
    pub(crate) fn failure_kind(&self) -> FailureKind {
        if self.status == Some(NOT_FOUND) { FailureKind::NotFound } else { FailureKind::Exited }
    }

    fn of(completed: &Completed) -> Self {
        let outcome = &completed.outcome;
        let how = match (outcome.stop, completed.limit, outcome.end) {
            (Some(Stop::Cancelled | Stop::Deadline), _, _) => "it was stopped".to_owned(),
            (None, Some(LimitReached::Quota), _) => "it reached the quota of its workspace, which \
                 workspace.quota_gb and workspace.quota_files set"
                .to_owned(),
            (None, Some(limit), _) => {
                let limit = serde_json::to_value(limit).unwrap_or_default();
                let limit = limit.as_str().unwrap_or_default();
                format!("it reached the limit for {limit}, which policy.toml sets")
            }
            (None, None, ExitStatus::Exited(status)) => format!("it exited with status {status}"),
            (None, None, ExitStatus::Signaled(signal)) => {
                format!("it was ended by signal {signal}")
            }
            (None, None, ExitStatus::Lost) => "its exit status is unknown".to_owned(),
        };
        let status = match (outcome.stop, outcome.end) {
            (None, ExitStatus::Exited(status)) => Some(status),
            (Some(_), _) | (None, ExitStatus::Signaled(_) | ExitStatus::Lost) => None,
        };
        let stderr = outcome.stderr.to_text(MAX_STDERR_BYTES);
        let denial = completed.denials.iter().find_map(|denial| {
            let line = denial.allow.as_ref()?;
            let (rule, object) = (&denial.rule, &denial.object);
            Some(format!("; {object} was denied ({rule}); `{line}` in policy.toml allows it"))
        });
        let said = match stderr.trim() {
            "" => String::new(),
            stderr => format!(": {stderr}"),
        };
        Self { status, description: format!("{how}{}{said}", denial.unwrap_or_default()) }
    }
}

/// The part of stderr in the message of a failure.
const MAX_STDERR_BYTES: usize = 2000;

fn launch_failed(message: impl Into<String>) -> AgentFailure {
    AgentFailure::new(FailureKind::Launch, message)
}

/// Returns the failure of a process that did not start.
fn start_failure(ran: Result<Result<Completed, RunError>, tokio::task::JoinError>) -> AgentFailure {
    match ran {
        Ok(Err(RunError::Spawn(error @ SpawnError::NotFound { .. }))) => {
            AgentFailure::new(FailureKind::NotFound, message_of(&error))
        }
        Ok(Err(error)) => launch_failed(message_of(&error)),
        // It ran and exited without a start report.
        Ok(Ok(completed)) => launch_failed(ExitReport::of(&completed).description),
        Err(error) => launch_failed(error.to_string()),
    }
}
