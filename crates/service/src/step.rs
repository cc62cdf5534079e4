//! The steps of a task.

mod parse;

use carrel_domain::Network;
use carrel_wire::OnError;
use serde_json::{Map, Value};

use crate::repository::{Address, check_name};
use crate::request::InvalidRequest;

pub(crate) use self::parse::parse_step;

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Runs a command line.
    Command {
        /// The line.
        command: String,
    },
    /// Brings a repository into `repos/`, or up to date if it is there.
    GitClone {
        /// Its address.
        repo: String,
        /// The branch; the usual one if none.
        branch: Option<String>,
        /// Without history.
        shallow: bool,
    },
    /// Brings a repository in `repos/` up to date.
    GitPull {
        /// Its name there.
        repo_name: String,
        /// The branch; the current one if none.
        branch: Option<String>,
    },
    /// Reads a file.
    ReadFile {
        /// Where it is.
        path: String,
    },
    /// Writes a file.
    WriteFile {
        /// Where it is.
        path: String,
        /// All of its text.
        content: String,
    },
    /// Lists a directory.
    ListDirectory {
        /// Where it is.
        path: String,
    },
    /// Makes a directory, and those above it.
    CreateDirectory {
        /// Where it is.
        path: String,
    },
    /// Calls any tool.
    Tool {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
}

impl Action {
    /// Tells whether it may leave more in the workspace than there was.
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

/// A step that makes sense.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// The word for that in the request.
    pub word: String,
    /// Where commands start, relative to the workspace.
    pub cwd: Option<String>,
    /// How many seconds it may take.
    pub timeout: Option<u64>,
    /// What it is, for people.
    pub description: Option<String>,
    /// What becomes of the task when it fails.
    pub on_error: OnError,
    /// The network of its commands.
    pub network: Option<Network>,
    /// Credentials that it gets, by their names.
    pub credentials: Vec<String>,
}

impl Step {
    /// Returns the network that the arguments of a tool ask for. What the tool will not take counts
    /// as the largest.
    pub(crate) fn tool_network(&self) -> Option<Network> {
        let Action::Tool { arguments, .. } = &self.action else { return None };
        let asked = arguments.get("network").filter(|asked| !asked.is_null())?;
        Some(asked.as_str().and_then(|word| word.parse().ok()).unwrap_or(Network::Full))
    }

    /// Checks where a repository comes from, if the step brings one.
    pub(crate) fn check_repository(&self, hosts: &[String]) -> Result<(), InvalidRequest> {
        match &self.action {
            Action::GitClone { repo, .. } => Address::parse(repo, hosts).map(|_| ()),
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
