//! The body of `POST /api/tasks/submit`.
//!
//! A step is one flat object whose `action` decides which of its other fields are needed. The schema says so
//! with one alternative for each action; the struct holds the fields of all of them, so that a step is stored as
//! it was submitted. The service checks a request and turns each step into a value that cannot be wrong
//! (`service::Step`).

use std::fmt;

use carrel_domain::{Network, Priority, WorkspaceId, json_integer};
use schemars::{JsonSchema, Schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::limits::{
    DEFAULT_TASK_SECONDS, MAX_ATTEMPTS, MAX_BRANCH_CHARS, MAX_LABEL_CHARS, MAX_STEP_COMMAND_BYTES,
    MAX_STEP_CREDENTIALS, MAX_STEP_TEXT_BYTES, MAX_STEPS, MAX_TASK_SECONDS, MIN_TASK_SECONDS,
};
use crate::pattern::{
    BRANCH, CREDENTIAL_NAME, NO_CONTROL, NO_NUL, REPOSITORY_NAME, REPOSITORY_URL,
};

/// A task to queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRequest {
    /// The steps, in the order in which they run.
    #[serde(deserialize_with = "objects")]
    #[schemars(length(min = 1, max = MAX_STEPS))]
    pub steps: Vec<StepRequest>,
    /// The priority.
    #[serde(default = "normal")]
    pub priority: Priority,
    /// Seconds that one attempt may take.
    #[schemars(range(min = MIN_TASK_SECONDS, max = MAX_TASK_SECONDS))]
    #[serde(default = "default_seconds", deserialize_with = "json_integer::number")]
    pub timeout_seconds: u64,
    /// A type of the submitter's choice, to filter lists by.
    #[schemars(length(min = 1, max = MAX_LABEL_CHARS), regex(pattern = NO_CONTROL))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// The submitter's reference.
    #[schemars(length(min = 1, max = MAX_LABEL_CHARS), regex(pattern = NO_CONTROL))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The most attempts, counting attempts whose worker was lost.
    #[schemars(range(min = 1, max = MAX_ATTEMPTS))]
    #[serde(
        default,
        deserialize_with = "json_integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_attempts: Option<u32>,
    /// `true` if a failed step starts another attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry_failed: bool,
    /// The idempotency key: a second request with the same key and body gets the first task.
    #[schemars(length(min = 1, max = MAX_LABEL_CHARS), regex(pattern = NO_CONTROL))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The workspace, if the token covers several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
}

fn normal() -> Priority {
    Priority::Normal
}

fn default_seconds() -> u64 {
    DEFAULT_TASK_SECONDS
}

impl TaskRequest {
    /// Returns a request with these steps and the defaults of the service.
    pub fn new(steps: Vec<StepRequest>) -> Self {
        Self {
            steps,
            priority: normal(),
            timeout_seconds: default_seconds(),
            task_type: None,
            correlation_id: None,
            max_attempts: None,
            retry_failed: false,
            idempotency_key: None,
            workspace_id: None,
        }
    }
}

/// The consequence of a failed step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The task fails, and later steps are skipped.
    #[default]
    Stop,
    /// The next step runs.
    Continue,
}

/// A step of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Step", transform = by_action)]
pub struct StepRequest {
    /// The action.
    #[schemars(extend("enum" = STEP_ACTIONS))]
    pub action: String,
    /// The command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_STEP_COMMAND_BYTES), regex(pattern = NO_NUL))]
    pub command: Option<String>,
    /// The URL of a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_STEP_TEXT_BYTES), regex(pattern = NO_NUL))]
    pub repo: Option<String>,
    /// The name of a repository in `repos/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_STEP_TEXT_BYTES), regex(pattern = NO_NUL))]
    pub repo_name: Option<String>,
    /// The branch; the repository's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_BRANCH_CHARS), regex(pattern = BRANCH))]
    pub branch: Option<String>,
    /// `false` for a clone with its whole history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shallow: Option<bool>,
    /// A file or directory, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_STEP_TEXT_BYTES), regex(pattern = NO_NUL))]
    pub path: Option<String>,
    /// The new text of the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The name of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_STEP_TEXT_BYTES), regex(pattern = NO_NUL))]
    pub tool: Option<String>,
    /// The arguments of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// The working directory of the command, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_STEP_TEXT_BYTES), regex(pattern = NO_NUL))]
    pub cwd: Option<String>,
    /// Seconds that the step may take, within the time that is left to the task.
    #[serde(deserialize_with = "json_integer::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub timeout: Option<u64>,
    /// A description for people, which progress events repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The consequence of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_error: Option<OnError>,
    /// The network of the step's commands, and the most that the arguments of its tool may ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The names of the workspace's credentials that the step gets; where two hold the same variable, the
    /// later one counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_STEP_CREDENTIALS), inner(regex(pattern = CREDENTIAL_NAME)))]
    pub credentials: Vec<String>,
}

/// The values of [`StepRequest::action`].
pub const STEP_ACTIONS: [&str; 9] = [
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

impl StepRequest {
    /// Returns a step that runs a command line.
    pub fn command(line: impl Into<String>) -> Self {
        Self { action: "shell".to_owned(), command: Some(line.into()), ..Self::default() }
    }
}

/// Reads steps that are written as objects. Serde would fill the fields from a list as well, one after the
/// other, and accept a request that the schema refuses.
fn objects<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<StepRequest>, D::Error> {
    let steps = Vec::<StepObject>::deserialize(reader)?;
    Ok(steps.into_iter().map(|StepObject(step)| step).collect())
}

struct StepObject(StepRequest);

impl<'de> Deserialize<'de> for StepObject {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = StepObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<StepObject, A::Error> {
                StepRequest::deserialize(MapAccessDeserializer::new(fields)).map(StepObject)
            }
        }

        reader.deserialize_map(ObjectVisitor)
    }
}

/// Returns the actions and the fields that each needs.
fn required_fields() -> [(&'static str, Value); 9] {
    let text = json!({ "type": "string", "minLength": 1 });
    let path = json!({ "path": text });
    let command = json!({ "command": { "type": "string", "minLength": 1 } });
    [
        ("execute_command", command.clone()),
        ("shell", command),
        ("git_clone", json!({ "repo": { "type": "string", "pattern": REPOSITORY_URL } })),
        ("git_pull", json!({ "repo_name": { "type": "string", "pattern": REPOSITORY_NAME } })),
        ("read_file", path.clone()),
        ("write_file", json!({ "path": text, "content": { "type": "string" } })),
        ("list_directory", json!({})),
        ("create_directory", path),
        ("tool", json!({ "tool": text })),
    ]
}

/// Adds one alternative for each action to the schema of a step.
fn by_action(schema: &mut Schema) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.insert("required".to_owned(), json!(["action"]));
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        property.as_object_mut().map(|property| property.remove("default"));
    }
    let alternatives = required_fields().map(|(action, needed)| {
        let mut properties = Map::from_iter([("action".to_owned(), json!({ "const": action }))]);
        properties.extend(needed.as_object().cloned().unwrap_or_default());
        let required: Vec<_> = properties.keys().cloned().collect();
        json!({ "title": action, "properties": properties, "required": required })
    });
    fields.insert("anyOf".to_owned(), json!(alternatives));
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn the_schema_has_an_alternative_for_every_action() {
        assert_eq!(required_fields().map(|(action, _)| action), STEP_ACTIONS);
    }

    #[test]
    fn a_step_is_an_object() {
        let read = |text: &str| serde_json::from_str::<TaskRequest>(text);
        assert!(read(r#"{"steps":[{"action":"shell","command":"ls"}]}"#).is_ok());
        let error = read(r#"{"steps":[["shell","ls"]]}"#).unwrap_err().to_string();
        assert!(error.contains("expected an object"), "{error}");
    }
}
