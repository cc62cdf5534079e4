//! One call, as a tool sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Network, Secret};
use carrel_exec::Piece;
use carrel_git::CredentialSource;
use carrel_traces::TraceParent;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::interface::Interface;
use crate::named_workspace::{NamedWorkspace, Workspaces};
use crate::redaction::Redactor;
use crate::session::Session;
use crate::toolbox::Toolbox;

/// Takes news about a long call.
pub trait Progress: Send + Sync + 'static {
    /// Says how far the work is, and what it is doing.
    fn report(&self, done: f64, total: Option<f64>, message: &str);
}

/// What a door adds to a call.
#[derive(Clone)]
pub struct CallOptions {
    /// Which door it came through.
    pub interface: Interface,
    /// Ends the work when the caller gives up.
    pub cancel: CancellationToken,
    /// Who wants to know how far the work is.
    pub progress: Option<Arc<dyn Progress>>,
    /// What else commands of this call get.
    pub command_settings: CommandSettings,
    /// The span that it is a part of: that of whoever calls, as a rule.
    pub under: Option<TraceParent>,
}

/// What a door decides for the commands of a call, beside what the call itself may ask for.
#[derive(Clone, Debug, Default)]
pub struct CommandSettings {
    /// The network of commands that do not say.
    pub network: Option<Network>,
    /// The most of the network that any command gets, git included; what the policy allows if none.
    pub network_limit: Option<Network>,
    /// More variables. Their values are masked in the answer. Git itself gets none of them.
    pub environment: Vec<(String, Secret)>,
    /// A key that commands may use over SSH and not read. Git itself does not get it.
    pub ssh_key: Option<Secret>,
    /// Who commits, by name and mail address, where the call does not say.
    pub author: (Option<String>, Option<String>),
    /// Knows what machines are told when git asks there, before the toolbox does.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// What else is masked in the answer, with the names that stand for it.
    pub masked: Vec<(String, Secret)>,
    /// How long a command may take, whatever the tool would allow.
    pub timeout: Option<Duration>,
    /// Who gets what a command prints, while it does.
    pub output: Option<mpsc::Sender<Piece>>,
}

impl CommandSettings {
    pub(crate) fn redactor(&self) -> Redactor {
        let all = self.environment.iter().chain(&self.masked);
        Redactor::new(all.map(|(name, value)| (name.as_str(), value)))
    }

    /// Returns what commands are told about who commits.
    pub(crate) fn author_variables(&self) -> impl Iterator<Item = (String, &str)> {
        let parts = [("NAME", &self.author.0), ("EMAIL", &self.author.1)];
        let known = parts.into_iter().filter_map(|(part, value)| Some((part, value.as_deref()?)));
        known.flat_map(|(part, value)| {
            ["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_{part}"), value))
        })
    }
}

impl CallOptions {
    /// Makes options for a call that nobody watches.
    pub fn new(interface: Interface) -> Self {
        Self {
            interface,
            cancel: CancellationToken::new(),
            progress: None,
            command_settings: CommandSettings::default(),
            under: carrel_traces::current_context(),
        }
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions").field("interface", &self.interface).finish_non_exhaustive()
    }
}

/// One call, as a tool sees it.
#[derive(Debug)]
pub struct ToolContext {
    /// What all calls share.
    pub toolbox: Arc<Toolbox>,
    /// Whose call it is.
    pub session: Arc<Session>,
    /// The tool's name.
    pub tool: &'static str,
    /// What the door added.
    pub options: CallOptions,
    /// The workspace; none if the tool needs none and the call named none of several.
    pub(crate) workspace: Option<Arc<NamedWorkspace>>,
}

impl ToolContext {
    /// Returns the workspace of a tool that needs one.
    ///
    /// # Panics
    ///
    /// If the tool said in [`crate::About`] that it can do without.
    pub fn workspace(&self) -> &Arc<NamedWorkspace> {
        self.workspace.as_ref().expect("the registry gives a place to every tool that needs one")
    }

    /// Returns the workspace, if the call is about a certain one.
    pub fn optional_workspace(&self) -> Option<&Arc<NamedWorkspace>> {
        self.workspace.as_ref()
    }

    /// Returns the workspaces that the caller may see.
    pub fn workspaces(&self) -> Arc<Workspaces> {
        self.toolbox.workspaces_of(&self.session)
    }

    /// Returns what ends the work when the caller gives up.
    pub fn cancel(&self) -> &CancellationToken {
        &self.options.cancel
    }

    /// Says how far the work is.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        if let Some(progress) = &self.options.progress {
            progress.report(done, total, message);
        }
    }
}
