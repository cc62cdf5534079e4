//! The server's handle to the spawner process.
//!
//! [`Spawner::spawn`] sends one packet with the command and its descriptors and waits for the init's
//! first report. Everything later goes over the init's own control socket, so commands do not wait for
//! each other. If the spawner does not respond within a limit, the start fails and the spawner is told
//! to kill the init should it still come up.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_sandbox::close_on_exec;
use rustix::process::{Pid, WaitOptions, waitpid};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::command_spec::{CommandSpec, Directory, Stdin};
use crate::error::SpawnError;
use crate::helper::{self, FIRST_DESCRIPTOR};
use crate::init_connection::InitConnection;
use crate::memory_file;
use crate::outcome::Outcome;
use crate::output_streams::{OutputStreams, OutputWriters};
use crate::preforked_cell::PreforkedCell;
use crate::protocol::{CellPath, Descriptors, Report, Request, Standard, Start, StartOptions};
use crate::running_command::{RunningCommand, STOP_TIMEOUT};
use crate::spawner_connection::SpawnerConnection;
use crate::terminal::TerminalConnection;

/// The longest time from the request to the execution of the program. Starting takes about a
/// millisecond; one that needs this long waits for a stopped spawner or a dead file system.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(30);

/// A handle to the spawner process. Clones share it.
///
/// When the last handle and the last [`RunningCommand`] command are dropped, the process kills everything
/// that still runs and ends.
#[derive(Clone, Debug)]
pub struct Spawner {
    pub(crate) link: Arc<SpawnerConnection>,
    pub(crate) program: Arc<Path>,
    pub(crate) gone: watch::Receiver<bool>,
}

impl Spawner {
    /// Starts the process, inside a tokio runtime. `program` must call [`crate::run_helper`] first thing
    /// in its `main`.
    pub fn start(program: &Path) -> io::Result<Self> {
        let program = std::path::absolute(program)?;
        let (link, far) = SpawnerConnection::open(None)?;
        let (mut child, life) = execute(&program, far)?;
        let gone = watch_exit(life, move || child.wait())?;
        Ok(Self { link: Arc::new(link), program: program.into(), gone })
    }

    /// Returns a spawner of one cell, over a process forked ahead, inside a tokio runtime. `program` has
    /// the other helpers.
    pub fn from_preforked(seed: PreforkedCell, program: &Path) -> io::Result<Self> {
        let program = std::path::absolute(program)?;
        let PreforkedCell { child, requests, life } = seed;
        let link = SpawnerConnection::over(requests)?;
        let gone = watch_exit(life, move || wait_for(child))?;
        Ok(Self { link: Arc::new(link), program: program.into(), gone })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns whether the process has ended, so that another has to be started.
    pub fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    /// Waits until the process and every command have ended. The future does not keep them alive.
    pub fn gone(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut gone = self.gone.clone();
        async move {
            // An error means that the watching task ended with its runtime.
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    /// Runs a command until its last process has ended. Cancelling stops it as its deadline does.
    pub async fn run(
        &self,
        spec: CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<Outcome, SpawnError> {
        Ok(self.spawn(spec).await?.wait(cancel).await)
    }

    /// Starts a command and returns when its program runs.
    pub async fn spawn(&self, mut spec: CommandSpec) -> Result<RunningCommand, SpawnError> {
        let begun = Instant::now();
        spec.check()?;
        let (mut streams, writers) =
            OutputStreams::open(spec.output, spec.log.take()).map_err(SpawnError::Resources)?;
        let (control, far) = InitConnection::open().map_err(SpawnError::Resources)?;
        let deadline = spec.deadline;
        let grace = spec.grace;
        let program = spec.program();
        let number = self.link.number();
        let starting = async {
            self.request(number, spec, far, writers).await?;
            started(&control, &program).await
        };
        // A command that starts after its deadline is stopped at once, as one that ran too long.
        let start_limit =
            |deadline: Duration| deadline.saturating_add(STOP_TIMEOUT).min(START_LIMIT);
        let limit = deadline.map_or(START_LIMIT, start_limit);
        let Ok(begun_to_run) = timeout(limit, starting).await else {
            // It must not run later, when the obstacle is gone.
            self.link.kill(number);
            return Err(SpawnError::Unresponsive);
        };
        let (pid, screen) = begun_to_run?;
        if let Some(screen) = screen {
            streams.attach_terminal(screen);
        }
        let link = Arc::clone(&self.link);
        let control = Arc::new(control);
        Ok(RunningCommand { link, control, streams, number, pid, begun, deadline, grace })
    }

    /// Sends the request. The command's ends of sockets and pipes are closed on return.
    async fn request(
        &self,
        number: u64,
        spec: CommandSpec,
        control: OwnedFd,
        writers: Option<OutputWriters>,
    ) -> Result<(), SpawnError> {
        let input = match spec.stdin {
            Stdin::Empty => None,
            Stdin::Bytes(bytes) => {
                Some(memory_file::holding(&bytes).map_err(SpawnError::Resources)?)
            }
            Stdin::Opened(descriptor) => Some(descriptor),
        };
        let (directory, inside) = match (spec.directory, self.link.is_cell()) {
            (Directory::Opened(directory), false) => (Some(directory), None),
            (Directory::Inside(path), true) => (None, Some(CellPath(path))),
            // A directory of the host would be an escape from a cell.
            (Directory::Opened(_), true) | (Directory::Inside(_), false) => {
                return Err(SpawnError::WrongSide);
            }
        };
        let descriptors = Descriptors {
            control: control.as_fd(),
            standard: writers.as_ref().map(|writers| Standard {
                stdin: input.as_ref().map_or(self.link.null(), AsFd::as_fd),
                stdout: writers.stdout(),
                stderr: writers.stderr(),
            }),
            directory: directory.as_ref().map(AsFd::as_fd),
            inherited: spec.inherited.iter().map(AsFd::as_fd).collect(),
            cgroups: spec.cgroups.iter().map(AsFd::as_fd).collect(),
            held: spec.held.iter().map(AsFd::as_fd).collect(),
        };
        let options = StartOptions {
            number,
            inside,
            grace: spec.grace,
            limits: spec.limits,
            sampled: spec.sampled,
            terminal: spec.output.terminal(),
            held: spec.held.len(),
            cgroups: spec.cgroups.len(),
        };
        let start = Start { argv: spec.argv, environment: spec.environment, options };
        self.link.send(Request::Start(Box::new(start)), descriptors.in_order()).await
    }
}

/// Waits for the init's first report. Returns the process id, and the terminal if there is one.
async fn started(
    control: &InitConnection,
    program: &str,
) -> Result<(i32, Option<TerminalConnection>), SpawnError> {
    let (report, descriptors) =
        control.report_with_descriptors().await.ok_or(SpawnError::SpawnerGone)?;
    match report {
        Report::Started { pid } => Ok((pid, screen(descriptors).map_err(SpawnError::Terminal)?)),
        Report::Failed { step, errno } => Err(SpawnError::reported(program, step, errno)),
        Report::Ended { .. }
        | Report::CellReady
        | Report::CellFailed(_)
        | Report::OverlayMounted
        | Report::OverlayFailed(_) => Err(SpawnError::SpawnerGone),
    }
}

fn screen(descriptors: Vec<OwnedFd>) -> io::Result<Option<TerminalConnection>> {
    match <[OwnedFd; 2]>::try_from(descriptors) {
        Ok([near, far]) => TerminalConnection::new(near, far).map(Some),
        Err(_) => Ok(None),
    }
}

/// Starts the process with nothing of the server but the socket. It changes its directory by itself: with
/// `current_dir` the standard library would fork the server instead of `posix_spawn`.
#[expect(clippy::disallowed_methods, reason = "this starts the spawner itself")]
fn execute(program: &Path, requests: OwnedFd) -> io::Result<(Child, OwnedFd)> {
    close_on_exec(FIRST_DESCRIPTOR..=u32::MAX)?;
    let mut child = Command::new(program)
        .arg(helper::SPAWNER)
        .env_clear()
        .stdin(Stdio::from(requests))
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().expect("stdout is piped");
    Ok((child, stdout.into()))
}

fn wait_for(child: Pid) -> io::Result<ExitStatus> {
    let ended = waitpid(Some(child), WaitOptions::empty())?;
    Ok(ExitStatus::from_raw(ended.map_or(0, |(_, status)| status.as_raw())))
}

/// Returns a flag that turns true when the process has ended, and reaps it.
///
/// Its stdout, to which nothing is written, closes when the spawner and every init have ended. If the
/// runtime stops before, they still end: the server's sockets close.
fn watch_exit(
    stdout: OwnedFd,
    wait: impl FnOnce() -> io::Result<ExitStatus> + Send + 'static,
) -> io::Result<watch::Receiver<bool>> {
    let mut life = Receiver::from_owned_fd(stdout)?;
    let (sender, receiver) = watch::channel(false);
    crate::tasks::spawn_task(async move {
        // An error means the same as end of file.
        let _ = life.read_u8().await;
        // The process has closed its descriptors, so this does not block.
        match wait() {
            Ok(status) if status.success() => {}
            Ok(status) => warn!(%status, "the spawner ended unexpectedly"),
            Err(error) => warn!(%error, "could not wait for the spawner"),
        }
        sender.send_replace(true);
    });
    Ok(receiver)
}
