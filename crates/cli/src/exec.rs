//! `carrel exec`

mod answer;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use carrel_config::{Environment, TierChoice};
use carrel_domain::WorkspaceAccess;
use carrel_exec::{Piece, Stdin, StreamName};
use carrel_runner::{
    CommandForm, Completed, LimitRequest, Prefork, RunRequest, RunnerMode, SandboxMode,
};
use rustix::fs::FileType;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::arguments::{BoundaryArguments, ExecArguments};
use crate::boundary;
use crate::failure::Failure;
use crate::output::Format;

/// The status when the command did not run.
const DID_NOT_RUN: u8 = 125;

/// How many pieces of output wait for stdout.
const WAITING_PIECES: usize = 4;

/// The options after which it is not known yet what is to be begun.
const ABOUT_WALLS: [&str; 5] = ["--tier", "--sandbox", "--without", "--help", "-h"];

/// Begins even before the arguments are understood, which takes a while, if none of them is about walls.
pub(crate) fn begin_at_once(arguments: &[OsString]) -> Option<Prefork> {
    let mut own = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    let is_exec = own.next()? == "exec";
    let is_about_walls = |argument: &OsString| {
        let bytes = argument.as_encoded_bytes();
        ABOUT_WALLS.iter().any(|option| bytes.starts_with(option.as_bytes()))
    };
    let begins = is_exec && !own.any(is_about_walls);
    begins.then(|| Prefork::begin(SandboxMode::Enforced(TierChoice::Auto), &[]))
}

/// Begins what has to come before anything is read, the operator's policy and environment included.
pub(crate) fn begin(arguments: &ExecArguments) -> Prefork {
    let BoundaryArguments { without, .. } = &arguments.boundary;
    Prefork::begin(boundary::asked_for(&arguments.boundary, TierChoice::Auto), without)
}

/// Runs a command and ends as it does.
pub(crate) fn run(
    arguments: ExecArguments,
    early: Prefork,
    format: Format,
    environment: &Environment,
) -> ExitCode {
    match execute(arguments, early, format, environment) {
        Ok(code) => code,
        Err(failure) => {
            failure.report(format);
            ExitCode::from(DID_NOT_RUN)
        }
    }
}

fn execute(
    arguments: ExecArguments,
    early: Prefork,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    // Everything is waited for, and the process ends right after; to take this apart takes longer.
    let runtime = ManuallyDrop::new(crate::runtime()?);
    let completed = runtime.block_on(work(arguments, early, format, environment))?;
    answer::give(&completed, format)
}

async fn work(
    arguments: ExecArguments,
    early: Prefork,
    format: Format,
    environment: &Environment,
) -> Result<Completed, Failure> {
    let loaded = boundary::policy(&arguments.boundary, environment)?;
    let (policy, purpose) = (loaded.policy.clone(), RunnerMode::SingleCommand(early));
    let runner = boundary::runner(&arguments.boundary, policy, environment, purpose)?;
    let desk = boundary::desk(arguments.workspace.as_deref(), &loaded, environment).await?;
    let mut request = request(arguments)?;
    let cancel = CancellationToken::new();
    let stopped = cancel_on_signal(&cancel)?;
    let completed = match format {
        Format::Json => runner.run(&desk, request, &cancel).await?,
        Format::Text => {
            let (sender, receiver) = mpsc::channel(WAITING_PIECES);
            request.live = Some(sender);
            let running = runner.run(&desk, request, &cancel);
            let (completed, shown) = tokio::join!(running, show(receiver));
            shown.map_err(|error| Failure::Output(io::Error::other(error)))?;
            completed?
        }
    };
    stopped.abort();
    Ok(completed)
}

fn request(arguments: ExecArguments) -> Result<RunRequest, Failure> {
    let form = match arguments.line {
        Some(line) => CommandForm::Line(line),
        None => CommandForm::Argv(arguments.argv),
    };
    let access =
        if arguments.read_only { WorkspaceAccess::ReadOnly } else { WorkspaceAccess::ReadWrite };
    let pairs = arguments.environment.into_iter();
    Ok(RunRequest {
        preset: arguments.preset,
        directory: arguments.cwd.unwrap_or_default(),
        network: arguments.network,
        access,
        limits: LimitRequest {
            wall: arguments.timeout.map(Duration::from_secs),
            memory: arguments.memory,
            processes: arguments.processes,
            lifetime: None,
        },
        environment: pairs.map(|(name, value)| (name.into(), value.into())).collect(),
        stdin: input()?,
        ..RunRequest::new(form)
    })
}

/// Hands a pipe on, and the contents of anything else. A terminal stays outside: it is the
/// operator's, and a file has an owner, a mode and times that are none of the command's business.
fn input() -> Result<Stdin, Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(Stdin::Empty);
    }
    let failed = |source| Failure::Start { doing: "reading stdin", source };
    let copy = stdin.as_fd().try_clone_to_owned().map_err(failed)?;
    let status = rustix::fs::fstat(&copy).map_err(|errno| failed(errno.into()))?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Fifo => return Ok(Stdin::Opened(copy)),
        FileType::Directory => return Err(failed(io::ErrorKind::IsADirectory.into())),
        FileType::CharacterDevice if status.st_rdev == null_device() => return Ok(Stdin::Empty),
        _ => {}
    }
    let (reader, mut writer) = io::pipe().map_err(failed)?;
    std::thread::spawn(move || {
        // A command that does not read to the end is no error.
        let _ = io::copy(&mut std::fs::File::from(copy), &mut writer);
    });
    Ok(Stdin::Opened(reader.into()))
}

/// Returns the number of `/dev/null`, which never changes.
fn null_device() -> u64 {
    rustix::fs::makedev(1, 3)
}

/// Shows output while it arrives, if there is any.
async fn show(mut pieces: mpsc::Receiver<Piece>) -> Result<(), tokio::task::JoinError> {
    let Some(first) = pieces.recv().await else { return Ok(()) };
    // On a thread of its own: a reader that does not read must not stop the clock.
    tokio::task::spawn_blocking(move || show_from(first, pieces)).await
}

fn show_from(first: Piece, mut pieces: mpsc::Receiver<Piece>) {
    let mut next = Some(first);
    while let Some(piece) = next {
        // A reader that has gone away is no reason to end the command.
        let _ = match piece.stream {
            StreamName::Stdout => write_all(io::stdout().lock(), &piece.bytes),
            StreamName::Stderr => write_all(io::stderr().lock(), &piece.bytes),
        };
        next = pieces.blocking_recv();
    }
}

fn write_all(mut stream: impl io::Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

/// Ends the command in an orderly way when this process is asked to end.
pub(crate) fn cancel_on_signal(
    cancel: &CancellationToken,
) -> Result<tokio::task::JoinHandle<()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |source| Failure::Start { doing: "waiting for signals", source };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    let mut quit = signal(SignalKind::quit()).map_err(failed)?;
    let cancel = cancel.clone();
    Ok(tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = quit.recv() => {}
        }
        cancel.cancel();
    }))
}
