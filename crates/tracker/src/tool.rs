//! Tools of a tracker, for agents.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
