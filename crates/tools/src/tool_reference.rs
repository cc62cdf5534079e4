//! The generated page `docs/tools.md`.

use std::fmt::Write as _;

use carrel_domain::{ToolGroup, ToolSelection};
use serde_json::{Map, Value};

use crate::registry::{Definition, definitions};
use crate::text::line;
use crate::tool::{Class, WorkspaceChoice};
use crate::tool_schema::WorkspaceCount;

const HEAD: &str = "# Tools

Every tool is defined once and served by `carrel mcp`, `carrel tool` and the REST API. This page is generated from the
definitions by `make docs`. [Agents](mcp.md) says how a client is connected and which rules hold for all tools.

Each tool is in one group. `--tools files,shell` offers the named groups and nothing else; without it `carrel mcp` offers the
default set, and `carrel tool` finds every tool.

Fields marked with `*` are required. Those in parentheses are accepted, and not in the definitions that a model is told unless the
server was started with `--definitions full`. Every tool also takes `workspace`: the name of one of the server's workspaces, needed
when it has several; tools that say so take `all` as well. An unknown field or a wrong type is refused by name. Bulk, such as
the text of a file, is in the reply's content; facts (path, range, hash, counts, truncation) are in its structured content.
";

/// Returns the text of `docs/tools.md`.
pub fn tool_reference_markdown() -> String {
    let mut text = String::from(HEAD);
    for group in ToolGroup::ALL {
        line(&mut text, &format!("\n## Group `{group}`\n\n{}\n", purpose(group)));
        definitions(ToolSelection::of(&[group])).for_each(|tool| describe(&mut text, tool));
    }
    text
}

fn purpose(group: ToolGroup) -> &'static str {
    match group {
        ToolGroup::Files => {
            "Files are read, searched, changed, moved and deleted. In the default set."
        }
        ToolGroup::Shell => "Commands run in the sandbox. In the default set.",
        ToolGroup::Verify => "The project's own tests, linters and formatters. In the default set.",
        ToolGroup::Git => "Git, with the operator's credentials. In the default set.",
        ToolGroup::Code => {
            "Symbols: overviews, definitions, references, search by words. The few that pay most are in the \
             default set; `--tools default,code` offers all."
        }
        ToolGroup::Snapshot => {
            "Snapshots of the files, and undo. `undo` is in the default set; `--tools default,snapshot` offers all."
        }
        ToolGroup::Secrets => {
            "The operator's secrets. Offered by `--tools default,secrets`, and never to the \
             conductor's agents or over the service."
        }
        ToolGroup::Workspace => {
            "The six tools of the workspace service. Offered by `--tools workspace`."
        }
    }
}

fn describe(text: &mut String, tool: &Definition) {
    let about = &tool.about;
    line(text, &format!("### {}\n\n{}\n", about.name, about.description));
    let class = match about.class {
        Class::Read => "reads",
        Class::Write => "writes; not offered under `--read-only`",
        Class::Execute => "runs programs; not offered under `--read-only`",
    };
    let scope = match about.workspaces {
        WorkspaceChoice::One => "",
        WorkspaceChoice::OneOrAll => " Takes `workspace: all`.",
        WorkspaceChoice::Optional => " Needs no workspace.",
    };
    line(text, &format!("Class: {class}.{scope}\n"));
    let brief = tool.brief_input_schema(WorkspaceCount::One);
    let fields = fields(tool.input_schema(), &brief["properties"]);
    if !fields.is_empty() {
        line(text, &format!("| field | type | |\n|---|---|---|\n{fields}"));
    }
}

fn fields(schema: &Map<String, Value>, brief: &Value) -> String {
    let required: Vec<_> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut rows = String::new();
    for (name, property) in properties.into_iter().flatten() {
        if name == crate::tool_schema::WORKSPACE {
            continue;
        }
        let marker = if required.iter().any(|one| *one == name) { "*" } else { "" };
        let description = property.get("description").and_then(Value::as_str).unwrap_or("");
        let description = description.replace('\n', " ").replace('|', "\\|");
        let shown = format!("`{name}`{marker}");
        let shown = if brief.get(name).is_some() { shown } else { format!("({shown})") };
        writeln!(rows, "| {shown} | {} | {description} |", kind(property))
            .expect("writing to a string cannot fail");
    }
    rows
}

fn kind(property: &Value) -> String {
    if let Some(words) = property.get("enum").and_then(Value::as_array) {
        return words
            .iter()
            .filter_map(Value::as_str)
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let alternatives = ["anyOf", "oneOf"].into_iter().find_map(|key| property.get(key)?.as_array());
    if let Some(alternatives) = alternatives {
        let words: Vec<_> = alternatives.iter().map(kind).filter(|kind| kind != "null").collect();
        return words.join(", ");
    }
    if let Some(word) = property.get("const").and_then(Value::as_str) {
        return format!("`{word}`");
    }
    let named = match property.get("type") {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(several)) => {
            let words = several.iter().filter_map(Value::as_str).filter(|one| *one != "null");
            words.collect::<Vec<_>>().join(", ")
        }
        _ => "any".to_owned(),
    };
    match property.get("items") {
        Some(items) if named == "array" => format!("list of {}", kind(items)),
        _ => named,
    }
}
