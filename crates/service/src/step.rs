//! The steps of a task.

use std::fmt;

use carrel_domain::Network;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::limits::{MAX_COMMAND_BYTES, MAX_TEXT_BYTES};
use crate::repository::{Address, check_branch, check_name};
use crate::request::InvalidRequest;

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

/// What becomes of a task when a step fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The task fails, and later steps are skipped.
    #[default]
    Stop,
    /// The next step runs.
    Continue,
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
    /// The credentials that it needs, by name.
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
            Action::GitClone { repo, branch, .. } => {
                Address::parse(repo, hosts)?;
                branch.as_deref().map_or(Ok(()), check_branch)
            }
            Action::GitPull { repo_name, branch } => {
                check_name(repo_name)?;
                branch.as_deref().map_or(Ok(()), check_branch)
            }
            Action::Command { .. }
            | Action::ReadFile { .. }
            | Action::WriteFile { .. }
            | Action::ListDirectory { .. }
            | Action::CreateDirectory { .. }
            | Action::Tool { .. } => Ok(()),
        }
    }
}

/// A step as it is written in a request and kept in the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawStep {
    action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shallow: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_error: Option<OnError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Network>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    credentials: Vec<String>,
}

/// Reads steps that are written as objects. A list would fill the fields one after the other.
pub(crate) fn objects<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<RawStep>, D::Error> {
    let steps = Vec::<Object>::deserialize(reader)?;
    Ok(steps.into_iter().map(|Object(step)| step).collect())
}

struct Object(RawStep);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct AnObject;

        impl<'de> Visitor<'de> for AnObject {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object, A::Error> {
                RawStep::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }

        reader.deserialize_map(AnObject)
    }
}

/// The words for actions.
const ACTIONS: [&str; 9] = [
    "execute_command",
    "shell",
    "git_clone",
    "git_pull",
    "read_file",
    "write_file",
    "list_directory",
    "create_directory",
    "tool",
];

impl RawStep {
    /// Returns the step that this means. The number is its place in the task, counted from 0.
    pub(crate) fn step(&self, index: usize) -> Result<Step, InvalidRequest> {
        let at = |field: &str| format!("steps[{index}].{field}");
        let text = |field: &str, value: &Option<String>, longest: usize| {
            let value = value.clone().filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| {
                InvalidRequest::new(at(field), format!("is required for `{}`", self.action))
            })?;
            if value.len() > longest {
                return Err(InvalidRequest::new(
                    at(field),
                    format!("is longer than {longest} bytes"),
                ));
            }
            if value.contains('\0') {
                return Err(InvalidRequest::new(at(field), "holds a NUL byte"));
            }
            Ok(value)
        };
        let path = || text("path", &self.path, MAX_TEXT_BYTES);
        let branch = || self.branch.clone().filter(|branch| !branch.trim().is_empty());
        let action = match self.action.as_str() {
            "execute_command" | "shell" => {
                Action::Command { command: text("command", &self.command, MAX_COMMAND_BYTES)? }
            }
            "git_clone" => Action::GitClone {
                repo: text("repo", &self.repo, MAX_TEXT_BYTES)?,
                branch: branch(),
                shallow: self.shallow.unwrap_or(true),
            },
            "git_pull" => Action::GitPull {
                repo_name: text("repo_name", &self.repo_name, MAX_TEXT_BYTES)?,
                branch: branch(),
            },
            "read_file" => Action::ReadFile { path: path()? },
            "write_file" => {
                let content = self.content.clone();
                let missing = || InvalidRequest::new(at("content"), "is required for `write_file`");
                Action::WriteFile { path: path()?, content: content.ok_or_else(missing)? }
            }
            "list_directory" => {
                let path = self.path.clone().filter(|path| !path.is_empty());
                Action::ListDirectory { path: path.unwrap_or_else(|| ".".to_owned()) }
            }
            "create_directory" => Action::CreateDirectory { path: path()? },
            "tool" => Action::Tool {
                name: text("tool", &self.tool, MAX_TEXT_BYTES)?,
                arguments: self.arguments.clone().unwrap_or_default(),
            },
            _ => {
                let known = ACTIONS.join(", ");
                let word: String = self.action.chars().take(40).collect();
                return Err(InvalidRequest::new(
                    at("action"),
                    format!("is unknown: {word:?}; known are {known}"),
                ));
            }
        };
        if self.timeout == Some(0) {
            return Err(InvalidRequest::new(at("timeout"), "is a number of seconds above 0"));
        }
        Ok(Step {
            action,
            word: self.action.clone(),
            cwd: self.cwd.clone(),
            timeout: self.timeout,
            description: self.description.clone(),
            on_error: self.on_error.unwrap_or_default(),
            network: self.network,
            credentials: self.credentials.clone(),
        })
    }
}
