//! Tools of a tracker, for agents.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{TrackerError, whole_seconds};

/// A tool that an agent is told of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes, as a JSON schema.
    pub input_schema: Value,
}

/// What came of using a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolReply {
    /// Whether it did what it was asked.
    pub success: bool,
    /// What the agent is told.
    pub output: String,
}

/// Why a tool was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolRefusal {
    /// The arguments make no sense.
    Arguments(String),
    /// The request leaves the project.
    Scope(String),
    /// The tracker did not answer.
    TrackerError(TrackerError),
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
    fn from(fault: TrackerError) -> Self {
        Self::TrackerError(fault)
    }
}

impl From<ToolRefusal> for ToolReply {
    fn from(refusal: ToolRefusal) -> Self {
        let (code, message, retry_after) = match refusal {
            ToolRefusal::Arguments(message) => ("invalid_arguments", message, None),
            ToolRefusal::Scope(message) => ("out_of_scope", message, None),
            ToolRefusal::TrackerError(fault) => {
                (fault.kind.name(), fault.message, fault.retry_after)
            }
        };
        let mut error = json!({ "code": code, "message": message });
        if let Some(wait) = retry_after {
            error["retryAfterSeconds"] = json!(whole_seconds(wait));
        }
        Self::refusal(&json!({ "error": error }))
    }
}

impl ToolReply {
    /// Says that there is no such tool, and which there are.
    pub fn unknown(name: &str, tools: &[Tool]) -> Self {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let message = format!("there is no tool {name:?}");
        Self::refusal(&json!({ "error": { "message": message, "supportedTools": names } }))
    }

    /// Says why nothing was done.
    pub fn refusal(why: &Value) -> Self {
        Self { success: false, output: why.to_string() }
    }
}
