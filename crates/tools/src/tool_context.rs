//! Tool contexts: one call with its workspace, session and settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Code, Failure, NetworkRequest, Secret, TokenScope, WorkspaceAccess};
use carrel_exec::{JobId, Piece};
use carrel_git::CredentialSource;
use carrel_traces::TraceParent;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::named_workspace::{NamedWorkspace, Workspaces};
use crate::redaction::{CutGuard, Redactor};
use crate::reply_limit::MaxBytes;
use crate::session::Session;
use crate::snapshots::CallChanges;
use crate::toolbox::Toolbox;
use carrel_audit::{AuditedCall, Interface};

/// Receives progress of a long call.
pub trait Progress: Send + Sync + 'static {
    /// Reports progress; `total` is unknown for most tools.
    fn report(&self, done: f64, total: Option<f64>, message: &str);
}

/// The part of a call that its interface adds.
#[derive(Clone)]
pub struct CallOptions {
    /// The interface of the call.
    pub interface: Interface,
    /// Cancelled when the caller gives up.
    pub cancel: CancellationToken,
    /// Receiver of progress, if the client asked for it.
    pub progress: Option<Arc<dyn Progress>>,
    /// Settings for the commands of the call.
    pub command_settings: CommandSettings,
    /// The right to have programs started that help with the call.
    pub helper_programs: HelperPrograms,
    /// The parent of the call's span.
    pub under: Option<TraceParent>,
}

/// A caller's right to have programs started that help with a call and are not its purpose, such as language servers.
/// They may come from the project, and some run code of it. Tools whose purpose is a program have a class and a scope
/// that say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelperPrograms {
    /// They are started, unless the workspace is read-only.
    Allowed,
    /// The caller's token lacks the scope `exec`.
    Denied,
}

/// Settings that an interface gives to the commands of a call.
#[derive(Clone, Debug, Default)]
pub struct CommandSettings {
    /// The network that the call asks for, and the caps that its interface adds.
    pub network: NetworkRequest,
    /// Additional variables, whose values are masked in the reply. The git tools do not get them.
    pub environment: Vec<(String, Secret)>,
    /// A key that commands can use through an SSH agent and cannot read. The git tools do not get it.
    pub ssh_key: Option<Secret>,
    /// Default name and mail address of commits.
    pub author: (Option<String>, Option<String>),
    /// Credentials for git, asked before those of the toolbox.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// Further secrets to mask in the reply, by name.
    pub masked: Vec<(String, Secret)>,
    /// Overrides the timeouts of tools.
    pub timeout: Option<Duration>,
    /// Receives the output of commands while they run.
    pub output: Option<mpsc::Sender<Piece>>,
    /// The logs of commands outlive the server, if it keeps records of jobs; background commands always do.
    pub keep_log: bool,
    /// Receives the ids of the jobs that the call starts, as far as there is room.
    pub started: Option<mpsc::Sender<JobId>>,
}

impl CommandSettings {
    pub(crate) fn redactor(&self) -> Redactor {
        let all = self.environment.iter().chain(&self.masked);
        Redactor::new(all.map(|(name, value)| (name.as_str(), value)))
    }

    pub(crate) fn author_variables(&self) -> impl Iterator<Item = (String, &str)> {
        let parts = [("NAME", &self.author.0), ("EMAIL", &self.author.1)];
        let known = parts.into_iter().filter_map(|(part, value)| Some((part, value.as_deref()?)));
        known.flat_map(|(part, value)| {
            ["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_{part}"), value))
        })
    }
}

impl CallOptions {
    /// Makes options without progress and cancellation, below the current span, for a caller that may run programs.
    pub fn new(interface: Interface) -> Self {
        Self {
            interface,
            cancel: CancellationToken::new(),
            progress: None,
            command_settings: CommandSettings::default(),
            helper_programs: HelperPrograms::Allowed,
            under: carrel_traces::current_context(),
        }
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions").field("interface", &self.interface).finish_non_exhaustive()
    }
}

/// One tool call: workspace, session, caller's settings and cancellation.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// State that all sessions share.
    pub toolbox: Arc<Toolbox>,
    /// The caller's state.
    pub session: Arc<Session>,
    /// The name of the tool.
    pub tool: &'static str,
    /// The part that the interface added.
    pub options: CallOptions,
    /// The workspaces that the session had when the call began.
    pub(crate) workspaces: Arc<Workspaces>,
    /// None if the tool needs none and the call named none of several.
    pub(crate) workspace: Option<Arc<NamedWorkspace>>,
    /// The changes that the call has made to files so far.
    pub(crate) changes: Arc<CallChanges>,
}

impl ToolContext {
    /// Returns the workspace of a tool that needs one.
    ///
    /// # Panics
    ///
    /// If the tool's [`crate::About`] makes the workspace optional and the call named none.
    pub fn workspace(&self) -> &Arc<NamedWorkspace> {
        self.workspace
            .as_ref()
            .expect("the registry chooses a workspace for every tool that needs one")
    }

    /// Returns the workspace, if the call is about one.
    pub fn optional_workspace(&self) -> Option<&Arc<NamedWorkspace>> {
        self.workspace.as_ref()
    }

    /// Fails while the workspace is frozen for forks, for tools whose commands change files. The commands themselves
    /// would only find that they cannot write.
    pub(crate) async fn refuse_frozen(&self) -> Result<(), Failure> {
        let workspace = Arc::clone(self.workspace());
        blocking(move || Ok(workspace.handle().refuse_frozen()?)).await
    }

    /// Returns the workspaces of the session.
    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// Returns the caller, for audit events.
    pub(crate) fn audited_call(&self) -> AuditedCall {
        AuditedCall {
            session: self.session.id().to_owned(),
            interface: self.options.interface,
            tool: self.tool.to_owned(),
            workspace: self.workspace.as_ref().map(|workspace| workspace.name().to_owned()),
            mask: self.toolbox.event_mask(&self.options.command_settings),
        }
    }

    /// Returns the refusal to start a program that helps with the call, such as a language server; none if it may be
    /// started.
    pub(crate) fn helper_refusal(&self, program: &str) -> Option<Failure> {
        let access = [self.toolbox.access, self.workspace().access()];
        if access.contains(&WorkspaceAccess::ReadOnly) {
            let name = self.workspace().name();
            let message = format!("no {program} is started in a read-only workspace");
            return Some(Failure::new(Code::ReadOnly, message).with("workspace", name));
        }
        match self.options.helper_programs {
            HelperPrograms::Allowed => None,
            HelperPrograms::Denied => {
                let scope = TokenScope::Exec.as_str();
                let message =
                    format!("no {program} is started for a token without the scope `{scope}`");
                Some(Failure::new(Code::Forbidden, message).with("scope", scope))
            }
        }
    }

    /// Returns the guard for texts that are cut before the reply is masked.
    pub(crate) fn cut_guard(&self) -> CutGuard {
        let own = Arc::new(self.options.command_settings.redactor());
        CutGuard::new([self.toolbox.redactor(), own])
    }

    /// Returns the bytes of text that the reply may have.
    pub(crate) fn reply_limit(&self, asked: Option<MaxBytes>) -> usize {
        MaxBytes::or_default(asked, self.toolbox.reply_bytes)
    }

    /// Returns the token that is cancelled when the caller gives up.
    pub fn cancel(&self) -> &CancellationToken {
        &self.options.cancel
    }

    /// Reports progress to the client, if it asked for it.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        if let Some(progress) = &self.options.progress {
            progress.report(done, total, message);
        }
    }
}
