//! Tools of a tracker for agents.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{TrackerError, whole_seconds};

/// A tool definition in the format of MCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON schema of the arguments.
    pub input_schema: Value,
}

/// The reply of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolReply {
    /// True if the tracker accepted the request.
    pub success: bool,
    /// The text for the agent, with secrets redacted.
    pub output: String,
}

/// The reason for which a tool call is refused or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolRefusal {
    /// The arguments do not match the schema.
    Arguments(String),
    /// The request would reach beyond the configured project.
    Scope(String),
    /// The request to the tracker failed.
    Tracker(TrackerError),
}

impl ToolRefusal {
    pub(crate) fn arguments(message: impl Into<String>) -> Self {
        Self::Arguments(message.into())
    }

    pub(crate) fn scope(message: impl Into<String>) -> Self {
        Self::Scope(message.into())
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

impl ToolReply {
    /// Creates the reply for an unknown tool, with the names of the known ones.
    pub fn unknown(name: &str, tools: &[Tool]) -> Self {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let message = format!("there is no tool {name:?}");
        Self::refusal(&json!({ "error": { "message": message, "supportedTools": names } }))
    }

    /// Creates an unsuccessful reply.
    pub fn refusal(why: &Value) -> Self {
        Self { success: false, output: why.to_string() }
    }
}
