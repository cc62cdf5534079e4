//! The execution of a planned command, up to the outcome that a parser reads.

use std::io::Read;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use carrel_domain::{ByteSize, Code, Failure, Network, NetworkRequest, WorkspaceAccess};
use carrel_exec::{CaptureLimits, Captured, ExitStatus, Output};
use carrel_runner::{ArtifactRequest, CommandForm, Completed, MessageSource};
use carrel_sandbox::Denial;
use carrel_shell::Preset;
use carrel_verify::parse::{ArtifactFile, DROPPED_OUTPUT, Outcome, Termination, project_artifacts};
use carrel_verify::plan::{
    ARTIFACTS, Artifact, CACHE, COVERAGE_PIECES, Invocation, KEPT_CACHE, TreeAccess,
};

use crate::blocking::blocking;
use crate::shell::{
    CommandFacts, Launch, NetworkChoice, NoteReader, Shell, add_note_lines, exit_code, notes,
    timeout_seconds,
};
use crate::tool_context::ToolContext;

/// Bounds each end of the output; parsers need all of it.
const KEPT: CaptureLimits = CaptureLimits { head: ByteSize::mib(8), tail: ByteSize::mib(8) };

/// Bounds the first line of a script, as the kernel does.
const MAX_SHEBANG: u64 = 256;

/// Python uses stale byte code if a source file changes within the same second and keeps its length, so it
/// is told to write none.
const NO_BYTE_CODE: (&str, &str) = ("PYTHONDONTWRITEBYTECODE", "1");

#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) timeout: Duration,
    pub(super) network: NetworkRequest,
}

/// A command that has ended, or could not start.
#[derive(Debug)]
pub(super) struct FinishedCommand {
    pub(super) argv: Vec<String>,
    /// For `BashOutput`.
    pub(super) shell_id: Option<String>,
    pub(super) exit: i32,
    pub(super) facts: Option<CommandFacts>,
    /// Limits, denials and restored files, one line each.
    notes: Vec<String>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    cut: bool,
    ended: Termination,
    artifacts: Vec<ArtifactFile>,
    /// Pieces of a recording of coverage, which are no report.
    pub(super) recording: Vec<ArtifactFile>,
    workspace: String,
}

impl Bounds {
    /// Bounds of tests: 300 seconds by default, at most 1800, and the sandbox's own loopback.
    pub(super) fn of_tests(timeout: Option<u64>, network: Option<NetworkChoice>) -> Self {
        let network = NetworkRequest::of_tests(network.map(Network::from));
        Self { network, ..Self::of_scripts(timeout, None) }
    }

    /// Bounds of scripts: 300 seconds by default, at most 1800.
    pub(super) fn of_scripts(timeout: Option<u64>, network: Option<NetworkChoice>) -> Self {
        let timeout = Duration::from_secs(timeout_seconds(timeout, 300, 1800));
        Self { timeout, network: NetworkRequest::of(network.map(Network::from)) }
    }

    /// Bounds of linters and type checkers: 120 seconds by default, at most 600.
    pub(super) fn of_checks(timeout: Option<u64>, network: Option<NetworkChoice>) -> Self {
        let timeout = Duration::from_secs(timeout_seconds(timeout, 120, 600));
        Self { timeout, network: NetworkRequest::of(network.map(Network::from)) }
    }

    /// Bounds of installations: 600 seconds by default, at most 1800, and the network that the cap allows.
    pub(super) fn of_installations(timeout: Option<u64>) -> Self {
        let timeout = Duration::from_secs(timeout_seconds(timeout, 600, 1800));
        Self { timeout, network: NetworkRequest::of_install(None) }
    }

    /// Bounds of formatters: those of checks, without network.
    pub(super) fn of_formatters(timeout: Option<u64>) -> Self {
        Self { network: NetworkRequest::fixed(Network::None), ..Self::of_checks(timeout, None) }
    }
}

impl FinishedCommand {
    pub(super) fn denials(&self) -> &[Denial] {
        self.facts.as_ref().map_or(&[], |facts| &facts.denials)
    }

    /// Appends the limits, denials and restored files to the text of a reply.
    pub(super) fn add_notes(&self, text: &mut String) {
        add_note_lines(text, &self.notes);
    }

    pub(super) fn outcome(&self) -> Outcome<'_> {
        Outcome {
            termination: self.ended.clone(),
            stdout: &self.stdout,
            stderr: &self.stderr,
            truncated: self.cut,
            artifacts: &self.artifacts,
            workspace: &self.workspace,
        }
    }
}

pub(super) async fn run(
    context: &ToolContext,
    invocation: &Invocation,
    bounds: Bounds,
) -> Result<FinishedCommand, Failure> {
    let name = shown(invocation, None).join(" ");
    run_named(context, invocation, bounds, name).await
}

/// Runs a command that lists of jobs show by a name instead of its arguments.
pub(super) async fn run_named(
    context: &ToolContext,
    invocation: &Invocation,
    bounds: Bounds,
    name: String,
) -> Result<FinishedCommand, Failure> {
    let began = SystemTime::now();
    let started = launch(invocation, bounds, name).start(context).await;
    let workspace = context.workspace().path().to_string_lossy().into_owned();
    let shell = match started {
        Ok(shell) => shell,
        Err(failure) if failure.code == Code::SpawnFailed || is_missing(&failure) => {
            let broken = broken_program(context, invocation).await;
            return Ok(not_started(invocation, &failure, broken, workspace));
        }
        Err(failure) => return Err(failure),
    };
    let completed = shell.wait(context).await?;
    let private = completed.artifacts.files.iter().map(|artifact| ArtifactFile {
        name: artifact.name.clone(),
        contents: artifact.contents.clone(),
    });
    let mut artifacts: Vec<_> = private.collect();
    let project = Arc::clone(context.workspace());
    let planned = invocation.clone();
    let find = move || Ok(project_artifacts(project.files(), &planned, began));
    artifacts.extend(blocking(find).await?);
    let ran = ran(invocation, &shell, completed, bounds, artifacts, workspace);
    shell.release_output(context);
    Ok(ran)
}

fn launch(invocation: &Invocation, bounds: Bounds, name: String) -> Launch {
    let names = invocation.artifacts.iter().filter_map(|artifact| match artifact {
        Artifact::Private { name } => Some(name.clone()),
        Artifact::Project { .. } => None,
    });
    let argv = invocation.argv.iter().map(Into::into).collect();
    let directory = invocation.directory.strip_prefix("./").unwrap_or(&invocation.directory);
    let directory = if directory == "." { PathBuf::new() } else { PathBuf::from(directory) };
    let (byte_code, value) = NO_BYTE_CODE;
    let own = invocation.environment.iter().map(|(name, value)| (name.into(), value.into()));
    let mut launch = Launch::new(CommandForm::Argv(argv), name);
    let request = &mut launch.request;
    // The command comes from the project's files; the sandbox is what bounds it.
    request.preset = Preset::Open;
    request.directory = directory;
    request.network = bounds.network;
    request.messages = MessageSource::AllOutput;
    request.limits.wall = Some(bounds.timeout);
    request.environment = iter::once((byte_code.into(), value.into())).chain(own).collect();
    request.access = match invocation.access {
        TreeAccess::ReadOnly => WorkspaceAccess::ReadOnly,
        TreeAccess::ReadWrite => WorkspaceAccess::ReadWrite,
    };
    request.artifacts = Some(ArtifactRequest {
        placeholder: ARTIFACTS,
        names: names.collect(),
        cache_placeholder: Some(CACHE),
        kept_cache_placeholder: Some(KEPT_CACHE),
    });
    request.output = Output::Separate { stdout: KEPT, stderr: KEPT };
    launch
}

fn ran(
    invocation: &Invocation,
    shell: &Shell,
    completed: &Completed,
    bounds: Bounds,
    artifacts: Vec<ArtifactFile>,
    workspace: String,
) -> FinishedCommand {
    let outcome = &completed.outcome;
    let is_piece = |artifact: &ArtifactFile| COVERAGE_PIECES.contains(&artifact.name.as_str());
    let (recording, artifacts) = artifacts.into_iter().partition(is_piece);
    let ended = match outcome.end {
        _ if outcome.timed_out() => Termination::TimedOut(bounds.timeout),
        ExitStatus::Exited(code) => Termination::Exited(code),
        ExitStatus::Signaled(signal) => Termination::Signal(signal),
        ExitStatus::Lost => Termination::NotStarted("it was ended with the server".into()),
    };
    FinishedCommand {
        argv: shown(invocation, completed.artifacts.directory.as_deref()),
        shell_id: Some(shell.job.id().to_string()),
        exit: exit_code(completed),
        facts: Some(CommandFacts::of(completed)),
        notes: notes(completed, NoteReader::Caller),
        stdout: whole(&outcome.stdout),
        stderr: whole(&outcome.stderr),
        cut: outcome.stdout.truncated()
            || outcome.stderr.truncated()
            || completed.artifacts.files.iter().any(|artifact| artifact.truncated),
        ended,
        artifacts,
        recording,
        workspace,
    }
}

/// Returns the command line, with the directory of report files if it is known.
fn shown(invocation: &Invocation, artifacts: Option<&Path>) -> Vec<String> {
    let directory = artifacts.map_or("…".into(), Path::to_string_lossy);
    let argv = invocation.clone().with_artifacts(&directory).argv;
    argv.into_iter().map(|word| word.replace(CACHE, "…").replace(KEPT_CACHE, "…")).collect()
}

/// Returns the kept output, with a line of its own for a middle that was dropped.
fn whole(captured: &Captured) -> Vec<u8> {
    let dropped = format!("\n{DROPPED_OUTPUT}\n");
    let middle = if captured.truncated() { dropped.as_bytes() } else { &[] };
    [captured.head.as_slice(), middle, &captured.tail].concat()
}

fn is_missing(failure: &Failure) -> bool {
    failure.message.starts_with("no such program")
}

/// Returns why a program of the project that exists cannot be started: its first line names an interpreter
/// that is missing, as in an environment that was moved, or it is a link that leads nowhere.
async fn broken_program(context: &ToolContext, invocation: &Invocation) -> Option<String> {
    let program = invocation.argv.first().filter(|program| program.contains('/'))?;
    let path = Path::new(&invocation.directory).join(program);
    let workspace = Arc::clone(context.workspace());
    let found = blocking(move || {
        let files = workspace.files();
        files.link_metadata(&path)?;
        let Ok((file, _)) = files.open_file(&path) else {
            return Ok(Some("it is a link to a file that does not exist here".to_owned()));
        };
        let mut start = Vec::new();
        file.take(MAX_SHEBANG)
            .read_to_end(&mut start)
            .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        let start = String::from_utf8_lossy(&start).into_owned();
        let interpreter = start.strip_prefix("#!").and_then(|rest| rest.lines().next());
        Ok(interpreter.map(|interpreter| {
            format!(
                "its first line names {}, which does not exist here; install the dependencies again",
                interpreter.trim()
            )
        }))
    });
    found.await.ok().flatten()
}

fn not_started(
    invocation: &Invocation,
    failure: &Failure,
    broken: Option<String>,
    workspace: String,
) -> FinishedCommand {
    let missing = is_missing(failure) && broken.is_none();
    let ended = if missing {
        Termination::NotFound
    } else {
        Termination::NotStarted(broken.unwrap_or_else(|| failure.message.clone()))
    };
    FinishedCommand {
        argv: shown(invocation, None),
        shell_id: None,
        exit: if missing { 127 } else { 126 },
        facts: None,
        notes: Vec::new(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        cut: false,
        ended,
        artifacts: Vec::new(),
        recording: Vec::new(),
        workspace,
    }
}
