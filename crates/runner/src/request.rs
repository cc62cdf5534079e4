//! What is asked to be run.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Component, PathBuf};
use std::time::Duration;

use carrel_config::OperatorPolicy;
use carrel_domain::{Network, ResourceLimits, Secret, WorkspaceAccess};
use carrel_exec::{CaptureLimits, LogFile, Outcome, Output, Piece, Running, Started, Stdin};
use carrel_shell::{Context, Preset, arguments, judge};
use carrel_traces::TraceParent;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::artifacts::ArtifactRequest;
use crate::error::RunError;
use crate::trust::OnChange;
use crate::workspace_handle::WorkspaceHandle;

/// A program with its arguments, or a line for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandForm {
    /// A program and its arguments, taken as they are.
    Argv(Vec<OsString>),
    /// A line for `bash`.
    Line(String),
}

impl CommandForm {
    pub(crate) fn argv(&self) -> Vec<OsString> {
        match self {
            Self::Argv(argv) => argv.clone(),
            Self::Line(line) => vec!["bash".into(), "-c".into(), "--".into(), line.into()],
        }
    }

    /// Returns the line that a shell would need to be given for the same effect.
    fn line(&self) -> String {
        match self {
            Self::Line(line) => line.clone(),
            Self::Argv(argv) => {
                let words = argv.iter().map(|word| quoted(&word.to_string_lossy()));
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// What is asked to be run.
#[derive(Debug)]
pub struct RunRequest {
    /// The command.
    pub form: CommandForm,
    /// What its text is held against before it starts.
    pub preset: Preset,
    /// Where it starts, relative to the workspace.
    pub directory: PathBuf,
    /// The network it wants; the policy's if it does not say.
    pub network: Option<Network>,
    /// What it may do with the files of the workspace.
    pub access: WorkspaceAccess,
    /// What it sees of the host besides what the policy grants to every command.
    pub grants: Grants,
    /// Limits that differ from the policy's. None may be more than the policy allows.
    pub limits: LimitRequest,
    /// More variables.
    pub environment: Vec<(OsString, OsString)>,
    /// What it reads.
    pub stdin: Stdin,
    /// More descriptors for it, numbered from [`carrel_exec::CommandSpec::FIRST_INHERITED`].
    pub inherited: Vec<OwnedFd>,
    /// A key that it may use over SSH and not read.
    pub ssh_key: Option<Secret>,
    /// How much of what it writes is kept.
    pub output: Output,
    /// Where its output goes while it runs.
    pub live: Option<mpsc::Sender<Piece>>,
    /// Where all its output goes as well.
    pub log: Option<LogFile>,
    /// What becomes of changes to what would run later outside; the policy's if it does not say.
    pub trust: Option<OnChange>,
    /// Files that it is to leave for the caller.
    pub artifacts: Option<ArtifactRequest>,
    /// Who wants to know when it has started.
    pub started: Option<oneshot::Sender<Started>>,
    /// The span that it is a part of: that of whoever asks, as a rule.
    pub under: Option<TraceParent>,
}

/// Paths of the host that a command sees, by the word of whoever runs Carrel and never of a tenant. What
/// does not exist is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grants {
    /// What it may read.
    pub readable: Vec<PathBuf>,
    /// What it may change.
    pub writable: Vec<PathBuf>,
}

/// Limits that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitRequest {
    /// Time from start to end.
    pub wall: Option<Duration>,
    /// Time from start to end for a command that nobody waits for, which the policy's limit for
    /// requests does not hold for.
    pub lifetime: Option<Duration>,
    /// Memory.
    pub memory: Option<carrel_domain::ByteSize>,
    /// Processes.
    pub processes: Option<u64>,
}

impl RunRequest {
    /// Asks for a command on the policy's terms, with no input and the usual output.
    pub fn new(form: CommandForm) -> Self {
        Self {
            form,
            preset: Preset::Open,
            directory: PathBuf::new(),
            network: None,
            access: WorkspaceAccess::ReadWrite,
            grants: Grants::default(),
            limits: LimitRequest::default(),
            environment: Vec::new(),
            stdin: Stdin::Empty,
            inherited: Vec::new(),
            ssh_key: None,
            output: Output::Separate {
                stdout: CaptureLimits::STDOUT,
                stderr: CaptureLimits::STDERR,
            },
            live: None,
            log: None,
            trust: None,
            artifacts: None,
            started: None,
            under: carrel_traces::current_context(),
        }
    }

    /// Holds the request against its preset and the workspace, before anything is started.
    pub(crate) fn check(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        self.check_directory(workspace)?;
        if self.preset == Preset::Open {
            return Ok(());
        }
        let context = Context { workspace: Some(workspace.path()) };
        let verdict = judge(&self.form.line(), self.preset, &context);
        if let Some(refusal) = verdict.refusal() {
            return Err(RunError::Refused(refusal.clone()));
        }
        if let CommandForm::Argv(argv) = &self.form {
            let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
            let place = arguments::WorkingDirectory {
                workspace: workspace.path(),
                directory: &self.directory,
            };
            arguments::check(&words, &place)?;
        }
        Ok(())
    }

    /// Returns where it starts, without links.
    pub(crate) fn real_directory(&self, workspace: &WorkspaceHandle) -> Option<PathBuf> {
        if self.starts_at_the_top() {
            return Some(workspace.path().to_owned());
        }
        Some(workspace.directory.open_root(&self.directory).ok()?.path().to_owned())
    }

    fn starts_at_the_top(&self) -> bool {
        self.directory.as_os_str().is_empty() || self.directory == Component::CurDir.as_os_str()
    }

    fn check_directory(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        if self.starts_at_the_top() {
            return Ok(());
        }
        workspace.directory.open_root(&self.directory).map(drop).map_err(RunError::Directory)
    }

    pub(crate) fn limits(&self, policy: &OperatorPolicy) -> ResourceLimits {
        let allowed = policy.limits;
        let LimitRequest { wall, lifetime, memory, processes } = self.limits;
        let wall = wall.unwrap_or(allowed.wall).min(policy.wall_limit);
        ResourceLimits {
            wall: lifetime.unwrap_or(wall),
            memory: memory.unwrap_or(allowed.memory).min(allowed.memory),
            processes: processes.unwrap_or(allowed.processes).min(allowed.processes),
            ..allowed
        }
    }

    /// Waits for the command, and hands on what it prints.
    pub(crate) async fn wait(&self, mut running: Running, stop: &CancellationToken) -> Outcome {
        let Some(sender) = &self.live else { return running.wait(stop).await };
        let mut live = running.live_patiently();
        let sender = sender.clone();
        let passing = async move {
            while let Some(piece) = live.next().await {
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
        };
        tokio::join!(running.wait(stop), passing).0
    }
}
