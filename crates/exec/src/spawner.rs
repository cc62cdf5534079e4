//! The handle to the process that starts commands.

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

use crate::control::Control;
use crate::error::SpawnError;
use crate::helper::{self, FIRST_DESCRIPTOR};
use crate::link::Link;
use crate::memory_file;
use crate::outcome::Outcome;
use crate::preforked_cell::PreforkedCell;
use crate::protocol::{Descriptors, Inside, Report, Request, Standard, Start, Terms};
use crate::running::{PATIENCE, Running};
use crate::spec::{CommandSpec, Directory, Stdin};
use crate::streams::{Streams, Writers};
use crate::terminal::Screen;

/// How long a command may take from the request to the execution of its program. Starting takes
/// about a millisecond; one that needs this long waits for a stopped spawner or a dead file system.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(30);

/// A handle to the process that starts commands. Cloning gives another handle to the same one.
///
/// When the last handle and the last [`Running`] command are dropped, the process kills everything
/// that still runs and ends.
#[derive(Clone, Debug)]
pub struct Spawner {
    pub(crate) link: Arc<Link>,
    pub(crate) program: Arc<Path>,
    pub(crate) gone: watch::Receiver<bool>,
}

impl Spawner {
    /// Starts the process, inside a tokio runtime. `program` calls [`crate::run_helper`] first
    /// thing in its `main`.
    pub fn start(program: &Path) -> io::Result<Self> {
        let program = std::path::absolute(program)?;
        let (link, far) = Link::open(None)?;
        let (mut child, life) = execute(&program, far)?;
        let gone = watch_over(life, move || child.wait())?;
        Ok(Self { link: Arc::new(link), program: program.into(), gone })
    }

    /// Takes a process that was started before, inside a tokio runtime. `program` has the other helpers.
    pub fn from_preforked(seed: PreforkedCell, program: &Path) -> io::Result<Self> {
        let program = std::path::absolute(program)?;
        let PreforkedCell { child, requests, life } = seed;
        let link = Link::over(requests)?;
        let gone = watch_over(life, move || wait_for(child))?;
        Ok(Self { link: Arc::new(link), program: program.into(), gone })
    }

    /// Returns the program that was started, which also has the other helpers.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Tells whether the process is gone, so that another has to be started.
    pub fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    /// Waits until the process and every command are gone, for whatever reason. The future does not
    /// keep them alive.
    pub fn gone(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut gone = self.gone.clone();
        async move {
            // An error means that the watching task went with its runtime; nobody watches then.
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    /// Runs a command until nothing of it is left. Cancelling stops it as its deadline does.
    pub async fn run(
        &self,
        spec: CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<Outcome, SpawnError> {
        Ok(self.spawn(spec).await?.wait(cancel).await)
    }

    /// Starts a command and returns when its program runs.
    pub async fn spawn(&self, mut spec: CommandSpec) -> Result<Running, SpawnError> {
        let begun = Instant::now();
        spec.check()?;
        let (mut streams, writers) =
            Streams::open(spec.output, spec.log.take()).map_err(SpawnError::Resources)?;
        let (control, far) = Control::open().map_err(SpawnError::Resources)?;
        let (deadline, grace, program) = (spec.deadline, spec.grace, spec.program());
        let number = self.link.number();
        let starting = async {
            self.request(number, spec, far, writers).await?;
            started(&control, &program).await
        };
        // One that starts after its deadline is stopped at once, as one that ran too long.
        let patient = |deadline: Duration| deadline.saturating_add(PATIENCE).min(START_LIMIT);
        let limit = deadline.map_or(START_LIMIT, patient);
        let Ok(begun_to_run) = timeout(limit, starting).await else {
            // It must not run when whatever held it up is over.
            self.link.end(number);
            return Err(SpawnError::Unresponsive);
        };
        let (pid, screen) = begun_to_run?;
        if let Some(screen) = screen {
            streams.show(screen);
        }
        let link = Arc::clone(&self.link);
        let control = Arc::new(control);
        Ok(Running { link, control, streams, number, pid, begun, deadline, grace })
    }

    /// Sends the request. The command's ends of sockets and pipes are closed here on return.
    async fn request(
        &self,
        number: u64,
        spec: CommandSpec,
        control: OwnedFd,
        writers: Option<Writers>,
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
            (Directory::Inside(path), true) => (None, Some(Inside(path))),
            // A directory of the host would be a way out of a cell.
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
            groups: spec.groups.iter().map(AsFd::as_fd).collect(),
            held: spec.held.iter().map(AsFd::as_fd).collect(),
        };
        let terms = Terms {
            number,
            inside,
            grace: spec.grace,
            limits: spec.limits,
            watch: spec.watch,
            terminal: spec.output.terminal(),
            held: spec.held.len(),
            groups: spec.groups.len(),
        };
        let start = Start { argv: spec.argv, environment: spec.environment, terms };
        self.link.send(Request::Start(Box::new(start)), descriptors.in_order()).await
    }
}

/// Waits until the program runs, and returns its process id and its terminal, if it has one.
async fn started(control: &Control, program: &str) -> Result<(i32, Option<Screen>), SpawnError> {
    let (report, descriptors) =
        control.report_with_descriptors().await.ok_or(SpawnError::SpawnerGone)?;
    match report {
        Report::Started { pid } => Ok((pid, screen(descriptors).map_err(SpawnError::Terminal)?)),
        Report::Failed { step, errno } => Err(SpawnError::reported(program, step, errno)),
        Report::Ended { .. } | Report::CellReady | Report::CellFailed(_) => {
            Err(SpawnError::SpawnerGone)
        }
    }
}

/// Takes the terminal that an init has opened.
fn screen(descriptors: Vec<OwnedFd>) -> io::Result<Option<Screen>> {
    match <[OwnedFd; 2]>::try_from(descriptors) {
        Ok([near, far]) => Screen::new(near, far).map(Some),
        Err(_) => Ok(None),
    }
}

/// Starts the process with nothing of the server but the socket. It leaves the server's directory by
/// itself: with one to enter here, the standard library would copy this process to start another.
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

/// Takes the status of a child that has ended.
fn wait_for(child: Pid) -> io::Result<ExitStatus> {
    let ended = waitpid(Some(child), WaitOptions::empty())?;
    Ok(ExitStatus::from_raw(ended.map_or(0, |(_, status)| status.as_raw())))
}

/// Watches the process from a task that ends with it, and takes its status so that no zombie stays.
///
/// Its stdout, which nobody writes to, closes when the spawner and every init are gone. If the
/// runtime stops before, they still end: the server's sockets close.
fn watch_over(
    stdout: OwnedFd,
    wait: impl FnOnce() -> io::Result<ExitStatus> + Send + 'static,
) -> io::Result<watch::Receiver<bool>> {
    let mut life = Receiver::from_owned_fd(stdout)?;
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        // An error says the same as the end.
        let _ = life.read_u8().await;
        // The process has closed its descriptors, so it needs no waiting for.
        match wait() {
            Ok(status) if status.success() => {}
            Ok(status) => warn!(%status, "the spawner ended unexpectedly"),
            Err(error) => warn!(%error, "could not wait for the spawner"),
        }
        sender.send_replace(true);
    });
    Ok(receiver)
}
