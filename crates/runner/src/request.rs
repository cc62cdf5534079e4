//! The request for a command, and its check before anything starts.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use carrel_audit::AuditedCall;
use carrel_config::{OperatorPolicy, Trust};
use carrel_domain::{NetworkRequest, ResourceLimits, Secret, WorkspaceAccess};
use carrel_exec::{CaptureLimits, LogFile, Outcome, Output, Piece, RunningCommand, Started, Stdin};
use carrel_fsroot::Root;
use carrel_shell::{Context, Preset, arguments, judge};
use carrel_traces::TraceParent;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::artifacts::ArtifactRequest;
use crate::error::RunError;
use crate::workspace_handle::WorkspaceHandle;

/// A command as an argument list or as a shell line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandForm {
    /// A program and its arguments, used as they are.
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

    /// Returns the shell line of the same effect, which presets judge.
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

/// The output of a command in which messages about denials are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageSource {
    /// The error stream, or all output where the two are one.
    #[default]
    Stderr,
    /// Both streams, and the artifacts if those say nothing, for programs that report errors there, such as
    /// test runners.
    AllOutput,
}

/// A request to run a command.
#[derive(Debug)]
pub struct RunRequest {
    /// The command.
    pub form: CommandForm,
    /// The rules that its text is judged by.
    pub preset: Preset,
    /// The working directory, relative to the workspace.
    pub directory: PathBuf,
    /// The network that it asks for, and the caps of the layers above it.
    pub network: NetworkRequest,
    /// Access to the files of the workspace.
    pub access: WorkspaceAccess,
    /// Paths of the host in addition to the policy's, which every command sees.
    pub grants: Grants,
    /// Limits below those of the policy.
    pub limits: LimitRequest,
    /// Variables in addition to the standard ones.
    pub environment: Vec<(OsString, OsString)>,
    /// Standard input.
    pub stdin: Stdin,
    /// Further descriptors, numbered from [`carrel_exec::CommandSpec::FIRST_INHERITED`].
    pub inherited: Vec<OwnedFd>,
    /// An SSH key that the command can use and not read.
    pub ssh_key: Option<Secret>,
    /// The capture of its output.
    pub output: Output,
    /// The output in which messages about denials are looked for.
    pub messages: MessageSource,
    /// Receives the output while the command runs. A slow receiver slows the command down.
    pub live: Option<mpsc::Sender<Piece>>,
    /// A file that receives the whole output.
    pub log: Option<LogFile>,
    /// The treatment of changed files that would run later; the policy's if absent.
    pub trust: Option<Trust>,
    /// Files to collect after it has ended.
    pub artifacts: Option<ArtifactRequest>,
    /// Notified when the program runs.
    pub started: Option<oneshot::Sender<Started>>,
    /// The call that it belongs to, for audit events.
    pub audited_call: Option<AuditedCall>,
    /// The parent of its trace span; the caller's by default.
    pub under: Option<TraceParent>,
}

/// The links of a workspace, as they are before a command starts.
struct WorkspaceLinks<'a, F> {
    directory: &'a Root,
    may_run: F,
}

impl<F: Fn(&Path) -> bool> arguments::LinkTargets for WorkspaceLinks<'_, F> {
    fn outside(&self, path: &Path) -> Option<PathBuf> {
        self.directory.outside_target(path).ok().flatten()
    }

    fn may_run(&self, program: &Path) -> bool {
        (self.may_run)(program)
    }
}

/// Paths of the host that a command sees. They come from the operator's side, never from a tenant. Paths
/// that do not exist are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grants {
    /// Readable paths.
    pub readable: Vec<PathBuf>,
    /// Writable paths.
    pub writable: Vec<PathBuf>,
}

/// The duration for which a command is meant to run, which decides the policy's limits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandClass {
    /// A command that ends when its work is done.
    #[default]
    Once,
    /// A process that serves its workspace until it is stopped, such as a language server: more memory, and
    /// neither a deadline nor a limit of CPU time.
    Session,
}

/// Limits of a request. Each is capped by the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitRequest {
    /// The class, whose limits the others lower.
    pub class: CommandClass,
    /// Wall-clock time.
    pub wall: Option<Duration>,
    /// Wall-clock time of a background command, instead of `wall` and without the policy's cap for
    /// requests.
    pub lifetime: Option<Duration>,
    /// Memory.
    pub memory: Option<carrel_domain::ByteSize>,
    /// Processes.
    pub processes: Option<u64>,
}

impl RunRequest {
    /// Returns a request with the policy's defaults, no input and separate output.
    pub fn new(form: CommandForm) -> Self {
        Self {
            form,
            preset: Preset::Open,
            directory: PathBuf::new(),
            network: NetworkRequest::default(),
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
            messages: MessageSource::Stderr,
            live: None,
            log: None,
            trust: None,
            artifacts: None,
            started: None,
            audited_call: None,
            under: carrel_traces::current_context(),
        }
    }

    /// Checks working directory, command line and arguments. `may_run` tells the programs of the host that
    /// commands find by their names.
    pub(crate) fn check(
        &self,
        workspace: &WorkspaceHandle,
        may_run: impl Fn(&Path) -> bool,
    ) -> Result<(), RunError> {
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
            let working_directory = arguments::WorkingDirectory {
                workspace: workspace.path(),
                directory: &self.directory,
            };
            arguments::check(&words, &working_directory)?;
            let targets = WorkspaceLinks { directory: &workspace.directory, may_run };
            arguments::check_links(&words, &working_directory, &targets)?;
        }
        Ok(())
    }

    pub(crate) fn real_directory(&self, workspace: &WorkspaceHandle) -> Option<PathBuf> {
        if self.starts_at_top() {
            return Some(workspace.path().to_owned());
        }
        Some(workspace.directory.open_root(&self.directory).ok()?.path().to_owned())
    }

    fn starts_at_top(&self) -> bool {
        self.directory.as_os_str().is_empty() || self.directory == Component::CurDir.as_os_str()
    }

    fn check_directory(&self, workspace: &WorkspaceHandle) -> Result<(), RunError> {
        if self.starts_at_top() {
            return Ok(());
        }
        workspace.directory.open_root(&self.directory).map(drop).map_err(RunError::Directory)
    }

    pub(crate) fn limits(&self, policy: &OperatorPolicy) -> ResourceLimits {
        let allowed = policy.limits;
        let LimitRequest { class, wall, lifetime, memory, processes } = self.limits;
        let (usual, limit, cpu, most) = match class {
            CommandClass::Once => (allowed.wall, policy.wall_limit, allowed.cpu, allowed.memory),
            CommandClass::Session => {
                (Duration::MAX, Duration::MAX, Duration::MAX, allowed.session_memory)
            }
        };
        ResourceLimits {
            wall: lifetime.unwrap_or(wall.unwrap_or(usual).min(limit)),
            cpu,
            memory: memory.unwrap_or(most).min(most),
            processes: processes.unwrap_or(allowed.processes).min(allowed.processes),
            ..allowed
        }
    }

    /// Waits for the command, and forwards its output.
    pub(crate) async fn wait(
        &self,
        mut running: RunningCommand,
        stop: &CancellationToken,
    ) -> Outcome {
        let Some(sender) = &self.live else { return running.wait(stop).await };
        let mut live = running.live();
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

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_domain::ByteSize;

    fn limits(limits: LimitRequest) -> ResourceLimits {
        let mut request = RunRequest::new(CommandForm::Line(String::new()));
        request.limits = limits;
        request.limits(&OperatorPolicy::default())
    }

    #[test]
    fn a_session_has_its_own_memory_and_no_time_limits() {
        let class = CommandClass::Session;
        let session = limits(LimitRequest { class, ..LimitRequest::default() });
        let expected = ResourceLimits {
            wall: Duration::MAX,
            cpu: Duration::MAX,
            memory: ByteSize::gib(3),
            ..ResourceLimits::default()
        };
        assert_eq!(session, expected);
        let memory =
            |size| limits(LimitRequest { class, memory: Some(size), ..LimitRequest::default() });
        assert_eq!(memory(ByteSize::gib(1)).memory, ByteSize::gib(1));
        assert_eq!(memory(ByteSize::gib(4)).memory, ByteSize::gib(3), "a request only lowers it");
    }

    #[test]
    fn a_command_has_the_limits_of_the_policy() {
        assert_eq!(limits(LimitRequest::default()), ResourceLimits::default());
        let long = LimitRequest { wall: Some(Duration::MAX), ..LimitRequest::default() };
        assert_eq!(limits(long).wall, OperatorPolicy::default().wall_limit);
        let background = LimitRequest { lifetime: Some(Duration::MAX), ..LimitRequest::default() };
        assert_eq!(limits(background).wall, Duration::MAX);
    }
}
