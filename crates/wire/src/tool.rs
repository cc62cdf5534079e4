//! `/api/tools`, and calls of any tool.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tools that can be called over REST.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolList {
    /// The tools.
    pub tools: Vec<ToolDescription>,
}

/// A tool and its schemas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDescription {
    /// The name to call it by.
    pub name: Cow<'static, str>,
    /// The name for people.
    pub title: Cow<'static, str>,
    /// The description that a model reads.
    pub description: Cow<'static, str>,
    /// `read`, `write` or `execute`.
    pub class: Cow<'static, str>,
    /// The JSON Schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// The JSON Schema of its facts.
    pub output_schema: Map<String, Value>,
}

/// The arguments of a tool; its `input_schema` describes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ToolArguments(pub Map<String, Value>);

/// The result of a tool: the fields of its own route if it has one, otherwise `content` and `facts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ToolReply(pub Map<String, Value>);
