//! The steps of a task, checked and typed.

mod parse;

use std::time::Duration;

use carrel_domain::Network;
use carrel_wire::OnError;
use serde_json::{Map, Value};

use crate::repository::{RepositoryUrl, check_name};
use crate::request::InvalidRequest;

pub(crate) use self::parse::parse_step;

/// The action of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Runs a command line in the workspace's shell.
    Command {
        /// The command line.
        command: String,
    },
    /// Clones a repository into `repos/`, or pulls it if it is there.
    GitClone {
        /// The URL.
        repo: String,
        /// The branch; the default branch of the repository if absent.
        branch: Option<String>,
        /// Fetches the last commit alone.
        shallow: bool,
    },
    /// Pulls a repository in `repos/`.
    GitPull {
        /// The directory name.
        repo_name: String,
        /// The branch; the checked-out one if absent.
        branch: Option<String>,
    },
    /// Reads a file.
    ReadFile {
        /// The path relative to the workspace.
        path: String,
    },
    /// Creates or replaces a file.
    WriteFile {
        /// The path relative to the workspace.
        path: String,
        /// The whole new content.
        content: String,
    },
    /// Lists a directory.
    ListDirectory {
        /// The path relative to the workspace.
        path: String,
    },
    /// Creates a directory and its parents.
    CreateDirectory {
        /// The path relative to the workspace.
        path: String,
    },
    /// Calls a tool of any group.
    Tool {
        /// The name of the tool.
        name: String,
        /// The arguments, checked by the tool when the step runs.
        arguments: Map<String, Value>,
    },
}

impl Action {
    /// Returns whether the action may use more of the quota.
    pub(crate) fn may_write(&self) -> bool {
        match self {
            Self::ReadFile { .. } | Self::ListDirectory { .. } => false,
            Self::Command { .. }
            | Self::GitClone { .. }
            | Self::GitPull { .. }
            | Self::WriteFile { .. }
            | Self::CreateDirectory { .. }
            | Self::Tool { .. } => true,
        }
    }
}

/// A checked step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The action with its arguments.
    pub action: Action,
    /// The name of the action in the request: `shell` and `execute_command` are the same action.
    pub action_name: String,
    /// The working directory of commands, relative to the workspace.
    pub cwd: Option<String>,
    /// The timeout in seconds; what is left to the task if absent.
    pub timeout: Option<u64>,
    /// A description for progress events.
    pub description: Option<String>,
    /// The consequence of a failure for the task.
    pub on_error: OnError,
    /// The network of its commands and the cap of its tool's; that of the workspace if absent.
    pub network: Option<Network>,
    /// The names of the credentials that it gets; later ones replace values of earlier ones.
    pub credentials: Vec<String>,
}

impl Step {
    /// Returns the time that it may take of what is left to its task.
    pub(crate) fn time_within(&self, left: Duration) -> Duration {
        self.timeout.map_or(left, |own| left.min(Duration::from_secs(own)))
    }

    /// Returns the network in the arguments of a tool. A value that the tool will not understand counts as
    /// full network access, so that no token without that scope can submit it.
    pub(crate) fn tool_network(&self) -> Option<Network> {
        let Action::Tool { arguments, .. } = &self.action else { return None };
        let network = arguments.get("network").filter(|network| !network.is_null())?;
        Some(network.as_str().and_then(|word| word.parse().ok()).unwrap_or(Network::Full))
    }

    /// Checks the URL or the name of a git step's repository.
    pub(crate) fn check_repository(&self, hosts: &[String]) -> Result<(), InvalidRequest> {
        match &self.action {
            Action::GitClone { repo, .. } => RepositoryUrl::parse(repo, hosts).map(|_| ()),
            Action::GitPull { repo_name, .. } => check_name(repo_name),
            Action::Command { .. }
            | Action::ReadFile { .. }
            | Action::WriteFile { .. }
            | Action::ListDirectory { .. }
            | Action::CreateDirectory { .. }
            | Action::Tool { .. } => Ok(()),
        }
    }
}
