//! The process of a server in the sandbox, as a pair of streams.
//!
//! It sees the workspace read-only, has no network and writes to the home of the workspace's commands. It is a session
//! for the runner: more memory than a command, neither deadline nor limit of CPU time. Its output is read even
//! when the connection takes none, because a process with a full pipe cannot exit. Dropping a [`ServerProcess`] cancels its run, and
//! the runner kills the whole process tree.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{ByteSize, Network, NetworkRequest, WorkspaceAccess, message_of};
use carrel_exec::{CaptureLimits, ExitStatus, Output, Piece, Stdin, Stop, StreamName};
use carrel_runner::{
    ArtifactRequest, CommandClass, CommandForm, Completed, LimitReached, LimitRequest, RunError,
    RunRequest, Runner, WorkspaceHandle,
};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::unix::pipe::Sender;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::definition::{KEPT_CACHE, ServerDefinition};

/// Output that waits to be read by the connection. A server that writes faster is slowed down.
const MAX_UNREAD: usize = 1 << 20;

/// The time for a cancelled process to end. The runner kills the processes after half a second and their init after
/// five more; the rest is for a busy machine.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);

/// The part of stderr that is shown when the server ends.
const KEPT_STDERR: CaptureLimits =
    CaptureLimits { head: ByteSize::bytes(0), tail: ByteSize::kib(8) };

/// The part of stderr in a message.
const SHOWN_STDERR: usize = 2000;

/// The part of stdout that is captured; its messages are read as they arrive.
const KEPT_STDOUT: CaptureLimits =
    CaptureLimits { head: ByteSize::bytes(0), tail: ByteSize::bytes(0) };

/// Replaced by a directory of the command's own, which nothing uses.
const UNUSED: &str = "{carrel:artifacts}";

/// A running server with its descendants. Dropping it kills them in the background.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    stop: DropGuard,
    /// The reason of its end, once it has ended.
    end: watch::Receiver<Option<Arc<str>>>,
}

/// A server's program and the directory that it starts in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) definition: &'static ServerDefinition,
    /// The program as the sandbox finds it.
    pub(crate) program: PathBuf,
    /// The project's directory, relative to the workspace.
    pub(crate) root: PathBuf,
}

impl PartialEq for ServerDefinition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ServerDefinition {}

impl ServerProcess {
    /// Starts a server, and returns it with its output and its input. The error is the reason of its failure.
    pub(crate) async fn start(
        runner: Runner,
        workspace: Arc<WorkspaceHandle>,
        launch: &Launch,
    ) -> Result<(Self, DuplexStream, Sender), String> {
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| error.to_string())?;
        let input = non_blocking(ours).map_err(|error| error.to_string())?;
        let (output, printing) = duplex(MAX_UNREAD);
        let (pieces, printed) = mpsc::channel(1);
        let (starting, started) = oneshot::channel();
        let mut request = launch.request();
        request.stdin = Stdin::Opened(theirs);
        request.live = Some(pieces);
        request.started = Some(starting);
        let (ending, end) = watch::channel(None);
        let stop = CancellationToken::new();
        let memory = runner.policy().limits.session_memory;
        carrel_exec::spawn_task({
            let stop = stop.clone();
            let definition = launch.definition;
            async move {
                let copying = copy_stdout(printed, printing);
                let (ran, ()) = tokio::join!(runner.run(&workspace, request, &stop), copying);
                ending.send_replace(Some(describe(definition, memory, ran).into()));
            }
        });
        let process = Self { stop: stop.drop_guard(), end };
        if started.await.is_ok() {
            return Ok((process, output, input));
        }
        let reason = process.ended(KILL_TIMEOUT).await;
        Err(reason.map_or_else(|| "it never ran".to_owned(), |reason| reason.to_string()))
    }

    /// Waits for its end, and returns the reason; none if it has not ended in time.
    pub(crate) async fn ended(&self, limit: Duration) -> Option<Arc<str>> {
        let mut end = self.end.clone();
        let waiting = timeout(limit, end.wait_for(Option::is_some)).await;
        waiting.ok().and_then(Result::ok).and_then(|reason| reason.clone())
    }

    /// Waits for the end for `grace`, then kills the tree and waits until nothing is left of it. Returns the reason of
    /// its end.
    pub(crate) async fn close(self, grace: Duration) -> Arc<str> {
        let Self { stop, mut end } = self;
        let _ = timeout(grace, end.wait_for(Option::is_some)).await;
        drop(stop);
        let waiting = timeout(KILL_TIMEOUT, end.wait_for(Option::is_some)).await;
        let reason = waiting.ok().and_then(Result::ok).and_then(|reason| reason.clone());
        reason.unwrap_or_else(|| "it was killed and has not ended".into())
    }
}

impl Launch {
    fn request(&self) -> RunRequest {
        let arguments = self.definition.arguments.iter().map(OsString::from);
        let argv = std::iter::once(self.program.clone().into_os_string()).chain(arguments);
        let variables = self.definition.environment.iter();
        RunRequest {
            directory: self.root.clone(),
            network: NetworkRequest::fixed(Network::None),
            access: WorkspaceAccess::ReadOnly,
            limits: LimitRequest { class: CommandClass::Session, ..LimitRequest::default() },
            environment: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            output: Output::Separate { stdout: KEPT_STDOUT, stderr: KEPT_STDERR },
            artifacts: Some(ArtifactRequest {
                placeholder: UNUSED,
                kept_cache_placeholder: Some(KEPT_CACHE),
                ..ArtifactRequest::default()
            }),
            ..RunRequest::new(CommandForm::Argv(argv.collect()))
        }
    }
}

/// Makes our end of the pipe non-blocking. The server's end stays blocking, as programs expect it.
fn non_blocking(ours: std::os::fd::OwnedFd) -> io::Result<Sender> {
    rustix::io::ioctl_fionbio(&ours, true)?;
    Sender::from_owned_fd(ours)
}

/// Copies stdout until it ends. What nothing reads any more is dropped, so that the process can exit.
async fn copy_stdout(mut printed: mpsc::Receiver<Piece>, mut output: DuplexStream) {
    let mut has_reader = true;
    while let Some(Piece { stream, bytes }) = printed.recv().await {
        if stream == StreamName::Stdout && has_reader {
            has_reader = output.write_all(&bytes).await.is_ok();
        }
    }
}

/// Says why a server has ended, for error messages.
fn describe(
    definition: &ServerDefinition,
    memory: ByteSize,
    ran: Result<Completed, RunError>,
) -> String {
    let completed = match ran {
        Ok(completed) => completed,
        Err(error) => return message_of(&error),
    };
    let outcome = &completed.outcome;
    let reason = match (completed.limit, outcome.stop, outcome.end) {
        (Some(LimitReached::Memory), ..) => format!(
            "{} reached its memory limit of {memory}; raise limits.session_memory in policy.toml",
            definition.name
        ),
        (Some(LimitReached::Quota), ..) => {
            "the quota of the workspace is used up; remove what is not needed, or raise it"
                .to_owned()
        }
        (Some(limit), ..) => {
            let limit = serde_json::to_value(limit).unwrap_or_default();
            let limit = limit.as_str().unwrap_or_default();
            format!("it reached the limit for {limit}, which policy.toml sets")
        }
        (None, Some(Stop::Cancelled | Stop::Deadline), _) => "it was stopped".to_owned(),
        (None, None, ExitStatus::Exited(status)) => format!("it exited with status {status}"),
        (None, None, ExitStatus::Signaled(signal)) => format!("it was ended by signal {signal}"),
        (None, None, ExitStatus::Lost) => "its exit status is unknown".to_owned(),
    };
    let stderr = outcome.stderr.to_text(SHOWN_STDERR);
    match stderr.trim() {
        "" => reason,
        stderr => format!("{reason}; its last output: {stderr}"),
    }
}
