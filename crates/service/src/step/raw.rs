//! Steps as they are written in a request and kept in the store.

use std::fmt;

use carrel_domain::{Network, json_integer};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::schema::by_action;
use super::{Action, OnError, Step};
use crate::credentials::{CREDENTIAL_NAME, check_credential_name};
use crate::limits::{MAX_COMMAND_BYTES, MAX_TEXT_BYTES};
use crate::repository::{BRANCH_PATTERN, MAX_BRANCH, check_branch};
use crate::request::InvalidRequest;

/// One action of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Step", transform = by_action)]
pub(crate) struct RawStep {
    /// What is to be done.
    #[schemars(extend("enum" = ACTIONS))]
    action: String,
    /// The command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_COMMAND_BYTES), regex(pattern = NO_NUL))]
    command: Option<String>,
    /// The address of a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_BYTES), regex(pattern = NO_NUL))]
    repo: Option<String>,
    /// The name of a repository in `repos/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_BYTES), regex(pattern = NO_NUL))]
    repo_name: Option<String>,
    /// The branch; the usual one if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_BRANCH), regex(pattern = BRANCH_PATTERN))]
    branch: Option<String>,
    /// A clone without history, as is usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    shallow: Option<bool>,
    /// A file or directory, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_BYTES), regex(pattern = NO_NUL))]
    path: Option<String>,
    /// All of the text of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// The name of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_BYTES), regex(pattern = NO_NUL))]
    tool: Option<String>,
    /// The arguments of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Map<String, Value>>,
    /// Where the command starts, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_BYTES), regex(pattern = NO_NUL))]
    cwd: Option<String>,
    /// How many seconds the step may take, if the task leaves it that much.
    #[serde(deserialize_with = "json_integer::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = u64::MAX))]
    timeout: Option<u64>,
    /// What the step is, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// What becomes of the task when the step fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_error: Option<OnError>,
    /// The network of the step's commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Network>,
    /// Credentials of the workspace that the step gets, by their names; of two that say the same, the
    /// later one counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_NAMED), inner(regex(pattern = CREDENTIAL_NAME)))]
    credentials: Vec<String>,
}

/// Credentials of one step.
const MAX_NAMED: usize = 10;

/// Text without a NUL byte, for schemas.
const NO_NUL: &str = r"^[^\u0000]*$";

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
pub(super) const ACTIONS: [&str; 9] = [
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
    /// Checks every text, whether the action has a use for it or not.
    fn check_texts(&self) -> Result<(), InvalidRequest> {
        for (field, value, longest) in [
            ("command", &self.command, MAX_COMMAND_BYTES),
            ("repo", &self.repo, MAX_TEXT_BYTES),
            ("repo_name", &self.repo_name, MAX_TEXT_BYTES),
            ("path", &self.path, MAX_TEXT_BYTES),
            ("tool", &self.tool, MAX_TEXT_BYTES),
            ("cwd", &self.cwd, MAX_TEXT_BYTES),
        ] {
            let Some(value) = value else { continue };
            if value.len() > longest {
                let rule = format!("is longer than {longest} bytes");
                return Err(InvalidRequest::new(field, rule));
            }
            if value.contains('\0') {
                return Err(InvalidRequest::new(field, "holds a NUL byte"));
            }
        }
        if self.credentials.len() > MAX_NAMED {
            let rule = format!("are at most {MAX_NAMED}");
            return Err(InvalidRequest::new("credentials", rule));
        }
        for (index, name) in self.credentials.iter().enumerate() {
            check_credential_name(&format!("credentials[{index}]"), name)?;
        }
        let branch = self.branch.as_deref().filter(|branch| !branch.trim().is_empty());
        branch.map_or(Ok(()), check_branch)
    }

    /// Returns the credentials that it names.
    pub(crate) fn credentials(&self) -> &[String] {
        &self.credentials
    }

    /// Returns the step that this means. The number is its place in the task, counted from 0.
    pub(crate) fn step(&self, index: usize) -> Result<Step, InvalidRequest> {
        let at = |field: &str| format!("steps[{index}].{field}");
        let text = |field: &str, value: &Option<String>| {
            let value = value.clone().filter(|value| !value.is_empty());
            value.ok_or_else(|| {
                InvalidRequest::new(at(field), format!("is required for `{}`", self.action))
            })
        };
        self.check_texts().map_err(|error| InvalidRequest { field: at(&error.field), ..error })?;
        let path = || text("path", &self.path);
        let branch = || self.branch.clone().filter(|branch| !branch.trim().is_empty());
        let action = match self.action.as_str() {
            "execute_command" | "shell" => {
                Action::Command { command: text("command", &self.command)? }
            }
            "git_clone" => Action::GitClone {
                repo: text("repo", &self.repo)?,
                branch: branch(),
                shallow: self.shallow.unwrap_or(true),
            },
            "git_pull" => {
                Action::GitPull { repo_name: text("repo_name", &self.repo_name)?, branch: branch() }
            }
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
                name: text("tool", &self.tool)?,
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
