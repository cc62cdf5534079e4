//! A process of an agent: what it is told, what it says, and its end.

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
use crate::failure::{AgentFailure, FailureKind};
use crate::line_splitter::{LineSplitter, OutputLine};

/// How many lines wait to be heard. Each may be long; an agent that talks faster waits.
const MAX_WAITING_LINES: usize = 4;

/// How many messages wait until the agent reads them.
const MAX_WAITING_MESSAGES: usize = 64;

/// How long the end of an agent that was told to end is waited for. The processes are killed after half a
/// second, and what starts them after five more; the rest is for a machine that is busy.
const KILL_PATIENCE: Duration = Duration::from_secs(20);

/// How much of stderr is kept for a message about a failure.
const KEPT_STDERR: CaptureLimits =
    CaptureLimits { head: carrel_domain::ByteSize::kib(2), tail: carrel_domain::ByteSize::kib(6) };

/// What is kept of stdout, which is heard line by line.
const KEPT_STDOUT: CaptureLimits =
    CaptureLimits { head: carrel_domain::ByteSize::kib(1), tail: carrel_domain::ByteSize::kib(1) };

/// Something that a process was heard to do.
#[derive(Debug)]
pub(crate) enum ProcessEvent {
    /// It wrote a line to stdout.
    Stdout(OutputLine),
    /// It wrote a line to stderr.
    Stderr(OutputLine),
    /// Nothing of it is left.
    Exited(ExitReport),
}

/// How a process ended.
#[derive(Clone, Debug)]
pub(crate) struct ExitReport {
    /// The status that it exited with, if it did so by itself.
    pub(crate) status: Option<i32>,
    /// Why, for people.
    pub(crate) account: String,
}

/// What a process reads.
#[derive(Debug)]
pub(crate) enum Input {
    /// This, and then the end.
    Text(String),
    /// What it is told while it runs.
    Pipe,
}

/// A process of an agent with everything that it starts. Dropping this ends it soon.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its number, if that means anything outside its walls.
    pub(crate) pid: Option<u32>,
    told: Option<mpsc::Sender<Vec<u8>>>,
    heard: mpsc::Receiver<ProcessEvent>,
    stop: DropGuard,
    over: JoinHandle<()>,
}

impl Process {
    /// Starts what is asked for, and returns when it runs.
    pub(crate) async fn start(
        runner: Arc<Runner>,
        desk: Arc<WorkspaceHandle>,
        mut request: RunRequest,
        input: Input,
    ) -> Result<Self, AgentFailure> {
        let (stdin, told) = input.open().map_err(|error| launch_failed(message_of(&error)))?;
        let (pieces, printed) = mpsc::channel(1);
        let (starting, started) = oneshot::channel();
        request.stdin = stdin;
        request.output = Output::Separate { stdout: KEPT_STDOUT, stderr: KEPT_STDERR };
        request.live = Some(pieces);
        request.started = Some(starting);
        let stop = CancellationToken::new();
        // Behind walls processes are numbered from one.
        let is_numbered = !runner.is_sandboxed();
        let running = tokio::spawn({
            let stop = stop.clone();
            async move { runner.run(&desk, request, &stop).await }
        });
        let stop = stop.drop_guard();
        let Ok(Started { pid, .. }) = started.await else {
            return Err(refusal(running.await));
        };
        let (hearing, heard) = mpsc::channel(MAX_WAITING_LINES);
        let over = tokio::spawn(hear(printed, running, hearing));
        let pid = u32::try_from(pid).ok().filter(|_| is_numbered);
        Ok(Self { pid, told, heard, stop, over })
    }

    /// Waits for what the process does next; nothing once it was heard to end. Nothing is lost if the
    /// wait is given up.
    pub(crate) async fn next(&mut self) -> Option<ProcessEvent> {
        self.heard.recv().await
    }

    /// Tells it something, a line as a rule. That it reads it is not waited for, unless it has not read
    /// much for long.
    pub(crate) async fn tell(
        &self,
        bytes: Vec<u8>,
        patience: Duration,
    ) -> Result<(), AgentFailure> {
        let Some(told) = &self.told else { return Ok(()) };
        match timeout(patience, told.send(bytes)).await {
            // It has closed its input; how it goes on is heard, not told.
            Ok(_) => Ok(()),
            Err(_) => Err(AgentFailure::new(
                FailureKind::ResponseTimeout,
                "the agent does not read what it is told",
            )),
        }
    }

    /// Ends the process and everything it started: its input ends, and when it is not gone after
    /// `patience` it is asked to end, and then killed.
    pub(crate) async fn close(self, patience: Duration) -> Teardown {
        let Self { told, heard, stop, mut over, .. } = self;
        drop((told, heard));
        if timeout(patience, &mut over).await.is_ok() {
            return Teardown::Complete;
        }
        drop(stop);
        match timeout(KILL_PATIENCE, over).await {
            Ok(Ok(())) => Teardown::Complete,
            Ok(Err(error)) => {
                debug!(%error, "could not wait for an agent");
                Teardown::Complete
            }
            Err(_) => {
                warn!("an agent was killed and is still there");
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
                let (far, near) = pipe_with(PipeFlags::CLOEXEC)?;
                let (sender, messages) = mpsc::channel(MAX_WAITING_MESSAGES);
                tokio::spawn(pass_on(messages, sender_of(near)?));
                Ok((Stdin::Opened(far), Some(sender)))
            }
        }
    }
}

/// The other end stays as it is: an agent need not expect a pipe that has nothing at the moment.
fn sender_of(near: OwnedFd) -> io::Result<Sender> {
    rustix::io::ioctl_fionbio(&near, true)?;
    Sender::from_owned_fd(near)
}

/// Writes messages until there are no more, or nobody reads them.
async fn pass_on(mut messages: mpsc::Receiver<Vec<u8>>, mut pipe: Sender) {
    while let Some(message) = messages.recv().await {
        if let Err(error) = pipe.write_all(&message).await {
            debug!(%error, "an agent does not read its input any more");
            return;
        }
    }
}

/// Makes lines of what is printed until the process is over, and says so.
async fn hear(
    mut printed: mpsc::Receiver<Piece>,
    running: JoinHandle<Result<Completed, RunError>>,
    hearing: mpsc::Sender<ProcessEvent>,
) {
    let (mut stdout, mut stderr) = (LineSplitter::default(), LineSplitter::default());
    // Nobody need listen: then what is printed is read all the same, so that the process can end.
    while let Some(Piece { stream, bytes }) = printed.recv().await {
        let (splitter, kind): (_, fn(OutputLine) -> ProcessEvent) = match stream {
            StreamName::Stdout => (&mut stdout, ProcessEvent::Stdout),
            StreamName::Stderr => (&mut stderr, ProcessEvent::Stderr),
        };
        for line in splitter.push(&bytes) {
            let _ = hearing.send(kind(line)).await;
        }
    }
    let last =
        [stdout.finish().map(ProcessEvent::Stdout), stderr.finish().map(ProcessEvent::Stderr)];
    for heard in last.into_iter().flatten() {
        let _ = hearing.send(heard).await;
    }
    let ending = match running.await {
        Ok(Ok(completed)) => ExitReport::of(&completed),
        Ok(Err(error)) => ExitReport { status: None, account: message_of(&error) },
        Err(error) => ExitReport { status: None, account: error.to_string() },
    };
    let _ = hearing.send(ProcessEvent::Exited(ending)).await;
}

impl ExitReport {
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
            (None, None, ExitStatus::Lost) => "nobody saw how".to_owned(),
        };
        let status = match (outcome.stop, outcome.end) {
            (None, ExitStatus::Exited(status)) => Some(status),
            (Some(_), _) | (None, ExitStatus::Signaled(_) | ExitStatus::Lost) => None,
        };
        let complaint = outcome.stderr.to_text(MAX_COMPLAINT_BYTES);
        let refused = completed.denials.iter().find_map(|denial| {
            let line = denial.allow.as_ref()?;
            let (rule, object) = (&denial.rule, &denial.object);
            Some(format!("; refused was {object} ({rule}), which `{line}` in policy.toml allows"))
        });
        let said = match complaint.trim() {
            "" => String::new(),
            complaint => format!(": {complaint}"),
        };
        Self { status, account: format!("{how}{}{said}", refused.unwrap_or_default()) }
    }
}

/// How much of stderr is in a message about a failure.
const MAX_COMPLAINT_BYTES: usize = 2000;

fn launch_failed(message: impl Into<String>) -> AgentFailure {
    AgentFailure::new(FailureKind::Launch, message)
}

/// Says why a process did not start.
fn refusal(ran: Result<Result<Completed, RunError>, tokio::task::JoinError>) -> AgentFailure {
    match ran {
        Ok(Err(RunError::Spawn(error @ SpawnError::NotFound { .. }))) => {
            AgentFailure::new(FailureKind::NotFound, message_of(&error))
        }
        Ok(Err(error)) => launch_failed(message_of(&error)),
        // It has run, and nobody was told that it had started.
        Ok(Ok(completed)) => launch_failed(ExitReport::of(&completed).account),
        Err(error) => launch_failed(error.to_string()),
    }
}
