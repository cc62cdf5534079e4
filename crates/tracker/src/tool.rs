//! Tools of a tracker for agents.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Result, TrackerError, whole_seconds};

/// A tool definition in the format of MCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members of an MCP tool")]
pub struct Tool {
    pub name: String,
    /// The description for the model, which names the project and the placeholders.
    pub description: String,
    pub input_schema: Value,
}

/// The reply of a tool. Refusals and failures are replies too, so that the agent can read the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolReply {
    /// True if the tracker accepted the request; GraphQL errors count as a failure.
    pub success: bool,
    /// True if the tracker accepted a request that does more than read.
    pub changed: bool,
    /// The JSON text for the agent, with secrets redacted and bounded in size.
    pub output: String,
}

/// The reason for which a tool call is refused or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolRefusal {
    Arguments(String),
    Scope(String),
    Tracker(TrackerError),
}

impl ToolRefusal {
    /// Refuses arguments that are invalid for any project.
    pub(crate) fn arguments<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Arguments(message.into()))
    }

    /// Refuses a request that leads out of the configured project.
    pub(crate) fn scope<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Scope(message.into()))
    }
}

impl From<TrackerError> for ToolRefusal {
    fn from(error: TrackerError) -> Self {
        Self::Tracker(error)
    }
}

impl From<ToolRefusal> for ToolReply {
    fn from(refusal: ToolRefusal) -> Self {
        let (code, message, retry_after) = match refusal {
            ToolRefusal::Arguments(message) => ("invalid_arguments", message, None),
            ToolRefusal::Scope(message) => ("out_of_scope", message, None),
            ToolRefusal::Tracker(error) => (error.kind.name(), error.message, error.retry_after),
        };
        let mut error = json!({ "code": code, "message": message });
        if let Some(wait) = retry_after {
            error["retryAfterSeconds"] = json!(whole_seconds(wait));
        }
        Self::refusal(&json!({ "error": error }))
    }
}

impl Tool {
    pub(crate) fn new(
        name: &str,
        description: impl Into<String>,
        properties: &Value,
        required: &[&str],
    ) -> Self {
        let input_schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        Self { name: name.to_owned(), description: description.into(), input_schema }
    }
}

impl ToolReply {
    /// Creates the reply for an unknown tool, with the names of the known ones.
    pub fn unknown(name: &str, tools: &[Tool]) -> Self {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let message = format!("there is no tool {name:?}");
        Self::refusal(&json!({ "error": { "message": message, "supportedTools": names } }))
    }

    /// Creates an unsuccessful reply.
    pub fn refusal(why: &Value) -> Self {
        Self { success: false, changed: false, output: why.to_string() }
    }
}

/// Returns true if a list has a name. The list is written as it is shown: separated by a comma and a space.
pub(crate) fn is_listed(name: &str, list: &str) -> bool {
    list.split(", ").any(|listed| listed == name)
}
