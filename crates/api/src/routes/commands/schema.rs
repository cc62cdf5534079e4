//! What schemas say about commands.

use carrel_tools::Toolset;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Text that is not blank and holds no NUL byte.
pub(super) const COMMAND_LINE: &str = r"^[^\u0000]*[^\s\u0000][^\u0000]*$";

/// Arguments of git.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the tool reads them")]
pub(super) enum GitArguments {
    Line(String),
    StringOrList(Vec<String>),
}

/// Returns what the tool says about its operations.
pub(super) fn operation_schema(_: &mut SchemaGenerator) -> Schema {
    let mut tools = carrel_tools::definitions(Toolset::Workspace);
    let git = tools.find(|tool| tool.about.name == "workspace_git");
    let schema = git.and_then(|git| git.input_schema["properties"].get("operation").cloned());
    schema.and_then(|schema| Schema::try_from(schema).ok()).unwrap_or_default()
}
