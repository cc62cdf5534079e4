//! `carrel exec`: one command in a sandbox, and its exit status.
//!
//! This is the one command whose own start is part of a budget, so the order is unusual: the process that
//! becomes the cell is forked first (see [`prefork_before_parsing`]), then arguments, policy and environment
//! are read while it makes its namespaces. Output is passed on byte for byte; Carrel's own lines go to
//! stderr and begin with `carrel:`.

mod report;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use carrel_config::TierChoice;
use carrel_domain::{Network, NetworkRequest};
use carrel_exec::{Piece, Stdin, StreamName};
use carrel_runner::{
    CommandForm, Completed, LimitRequest, Prefork, RunRequest, RunnerMode, SandboxMode,
};
use carrel_tools::{AuditedCall, NoteReader};
use rustix::fs::FileType;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::arguments::{ExecArguments, SandboxArguments};
use crate::error::{CliError, Result};
use crate::output::{self, Format, Invocation};
use crate::sandbox::{self, OverQuota};
use crate::signals::cancel_on_signal;

/// The name in audit events.
pub(crate) const NAME: &str = "exec";

const DID_NOT_RUN: u8 = 125;

/// Chunks of output that may wait for stdout; more make the command wait.
const QUEUED_CHUNKS: usize = 4;

/// Options that change which cell is needed, or need none.
const SANDBOX_OPTIONS: [&str; 5] = ["--tier", "--sandbox", "--without", "--help", "-h"];

/// Forks the process that becomes the cell before the arguments are parsed, which takes about as long as
/// making its namespaces, unless an option selects the sandbox.
pub(crate) fn prefork_before_parsing(arguments: &[OsString]) -> Option<Prefork> {
    let mut own = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    let is_exec = own.next()? == "exec";
    let selects_sandbox = |argument: &OsString| {
        let bytes = argument.as_encoded_bytes();
        SANDBOX_OPTIONS.iter().any(|option| bytes.starts_with(option.as_bytes()))
    };
    let preforks = is_exec && !own.any(selects_sandbox);
    preforks.then(|| Prefork::start(SandboxMode::Enforced(TierChoice::Auto), &[]))
}

/// Forks the process that becomes the cell, before policy and environment are read: its memory holds
/// neither.
pub(crate) fn prefork(arguments: &ExecArguments) -> Prefork {
    let SandboxArguments { without, .. } = &arguments.sandbox;
    Prefork::start(sandbox::requested_mode(&arguments.sandbox, TierChoice::Auto), without)
}

pub(crate) fn run(arguments: ExecArguments, early: Prefork, cli: &Invocation) -> ExitCode {
    let ended = crate::runtime().and_then(|runtime| {
        // Nothing is left to wait for and the process exits next; dropping the runtime would only take time.
        let runtime = ManuallyDrop::new(runtime);
        let (completed, reader) = runtime.block_on(execute(arguments, early, cli))?;
        report::print(&completed, reader, cli.format)
    });
    ended.unwrap_or_else(|error| {
        error.audit(NAME, &cli.environment);
        error.report(cli.format);
        ExitCode::from(DID_NOT_RUN)
    })
}

async fn execute(
    arguments: ExecArguments,
    early: Prefork,
    cli: &Invocation,
) -> Result<(Completed, NoteReader)> {
    let environment = &cli.environment;
    let loaded = sandbox::policy(&arguments.sandbox, environment)?;
    // Who types the option is the operator.
    let network_limit = loaded.policy.network_limit.unwrap_or(Network::Full);
    let (policy, purpose) = (loaded.policy.clone(), RunnerMode::SingleCommand(early));
    let events = sandbox::direct_events(environment);
    let runner = sandbox::runner(&arguments.sandbox, policy, environment, purpose, events)?;
    let workspace = sandbox::workspace(
        arguments.workspace.as_deref(),
        &loaded,
        &runner,
        environment,
        OverQuota::Refused,
    )
    .await?;
    let named = arguments.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    let mut request = request(arguments)?;
    if request.directory.is_absolute() {
        let named = sandbox::named_path(&named, workspace.path(), environment);
        let mut tops = [workspace.path(), &named].into_iter();
        let below = tops.find_map(|top| request.directory.strip_prefix(top).ok());
        request.directory = below.unwrap_or(&request.directory).to_owned();
    }
    let cancel = CancellationToken::new();
    let stopped = cancel_on_signal(&cancel)?;
    let completed = match cli.format {
        Format::Json => runner.run(&workspace, request, &cancel).await?,
        Format::Text => {
            let (sender, receiver) = mpsc::channel(QUEUED_CHUNKS);
            request.live = Some(sender);
            let running = runner.run(&workspace, request, &cancel);
            let (completed, shown) = tokio::join!(running, show(receiver));
            shown.map_err(|error| output::unwritten(&io::Error::other(error)))?;
            completed?
        }
    };
    stopped.abort();
    Ok((completed, NoteReader::Operator { network_limit }))
}

fn request(arguments: ExecArguments) -> Result<RunRequest> {
    let form = match arguments.line {
        Some(line) => CommandForm::Line(line),
        None => CommandForm::Argv(arguments.argv),
    };
    let pairs = arguments.environment.into_iter();
    Ok(RunRequest {
        preset: arguments.preset,
        directory: arguments.cwd.unwrap_or_default(),
        network: NetworkRequest::of_operator(arguments.network),
        access: sandbox::access(arguments.read_only),
        limits: LimitRequest {
            wall: arguments.timeout.map(Duration::from_secs),
            memory: arguments.memory,
            processes: arguments.processes,
            ..LimitRequest::default()
        },
        environment: pairs.map(|(name, value)| (name.into(), value.into())).collect(),
        stdin: input()?,
        audited_call: Some(AuditedCall::of_command_line(NAME)),
        ..RunRequest::new(form)
    })
}

/// Passes a pipe on as it is, and the contents of anything else through a pipe. A terminal stays outside,
/// since input could be injected into it; a file would carry its owner, mode and times inside.
fn input() -> Result<Stdin> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(Stdin::Empty);
    }
    let failed = CliError::start("reading stdin");
    let copy = stdin.as_fd().try_clone_to_owned().map_err(failed)?;
    let status = rustix::fs::fstat(&copy).map_err(|errno| failed(errno.into()))?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Fifo => return Ok(Stdin::Opened(copy)),
        FileType::Directory => return Err(failed(io::ErrorKind::IsADirectory.into())),
        // The number of /dev/null never changes.
        FileType::CharacterDevice if status.st_rdev == rustix::fs::makedev(1, 3) => {
            return Ok(Stdin::Empty);
        }
        _ => {}
    }
    let (reader, mut writer) = io::pipe().map_err(failed)?;
    std::thread::spawn(move || {
        // A command that does not read to the end is no error.
        let _ = io::copy(&mut std::fs::File::from(copy), &mut writer);
    });
    Ok(Stdin::Opened(reader.into()))
}

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
