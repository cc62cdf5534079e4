//! JSON Schemas of tools, derived from their types, and the decoding of arguments against them.

use std::sync::Arc;

use carrel_domain::Failure;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::argument_coercion::coerce_arguments;
use crate::brief_schema::{brief, leave_out_brief};
use crate::schema_dialect::{leave_out_null, leave_out_number_formats};
use crate::tool::WorkspaceChoice;

pub(crate) const WORKSPACE: &str = "workspace";

/// The edit distance up to which a known name is suggested in place of an unknown one.
const MAX_DISTANCE: usize = 2;

/// The function by which a type makes its schema: [`schemars::JsonSchema::json_schema`]. It stands for the type, so that
/// the functions here are compiled once and not for each tool.
pub(crate) type Derived = fn(&mut SchemaGenerator) -> Schema;

/// Returns the schema of a type as one object without references.
pub(crate) fn schema_of(derived: Derived) -> Map<String, Value> {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut generator = settings.into_generator();
    let mut schema = derived(&mut generator).to_value();
    debug_assert!(generator.definitions().is_empty(), "a type of a tool does not contain itself");
    leave_out_number_formats(&mut schema);
    let mut schema = match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    schema.remove("title");
    schema.entry("type").or_insert(json!("object"));
    schema.entry("properties").or_insert(json!({}));
    schema
}

/// The number of workspaces that a client can choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceCount {
    /// One, so that `workspace` need not be named.
    One,
    /// Several.
    Several,
}

/// The schemas of a tool's arguments.
#[derive(Clone, Debug)]
pub(crate) struct InputSchemas {
    /// Every argument, with the one that all tools take. Arguments are decoded against it.
    pub(crate) full: Arc<Map<String, Value>>,
    /// For models.
    pub(crate) brief: Arc<Map<String, Value>>,
    /// For models that have to choose a workspace.
    pub(crate) brief_with_workspace: Arc<Map<String, Value>>,
}

impl InputSchemas {
    pub(crate) fn of(input: Derived, choice: WorkspaceChoice) -> Self {
        let mut schema = schema_of(input);
        schema.values_mut().for_each(leave_out_null);
        let brief = brief(&schema);
        let text = match choice {
            WorkspaceChoice::One => None,
            WorkspaceChoice::OneOrAll => Some("or `all`"),
            WorkspaceChoice::Optional => Some("may be left out"),
        };
        let mut brief_with_workspace = brief.clone();
        add_workspace(&mut brief_with_workspace, text);
        let mut full = Value::Object(with_workspace(schema, choice));
        leave_out_brief(&mut full);
        let full = full.as_object().cloned().unwrap_or_default();
        let [full, brief, brief_with_workspace] = [full, brief, brief_with_workspace].map(Arc::new);
        Self { full, brief, brief_with_workspace }
    }
}

/// Adds the argument that every tool takes.
fn with_workspace(mut schema: Map<String, Value>, choice: WorkspaceChoice) -> Map<String, Value> {
    let description = match choice {
        WorkspaceChoice::One => "Which workspace; needed when the server has several.",
        WorkspaceChoice::OneOrAll => {
            "Which workspace, or `all`; needed when the server has several."
        }
        WorkspaceChoice::Optional => "Which workspace; may be left out.",
    };
    add_workspace(&mut schema, Some(description));
    schema.shift_insert(1, "additionalProperties".into(), json!(false));
    schema
}

fn add_workspace(schema: &mut Map<String, Value>, description: Option<&str>) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let mut property = json!({ "type": "string" });
        if let Some(description) = description {
            property["description"] = description.into();
        }
        properties.insert(WORKSPACE.into(), property);
    }
}

/// Takes the name of the workspace out of the arguments. A blank one is as good as none.
pub(crate) fn take_workspace(
    arguments: &mut Map<String, Value>,
) -> Result<Option<String>, Failure> {
    match arguments.remove(WORKSPACE) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => {
            Ok(Some(name.trim().to_owned()).filter(|name| !name.is_empty()))
        }
        Some(other) => {
            let message = format!("{WORKSPACE}: expected a string, found {other}");
            Err(Failure::argument(WORKSPACE, message))
        }
    }
}

/// Reads arguments as what the tool takes, or says which is wrong.
pub(crate) fn decode<T: DeserializeOwned>(
    schema: &Map<String, Value>,
    mut arguments: Map<String, Value>,
) -> Result<T, Failure> {
    fit(schema, &mut arguments)?;
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        wrong(&path, &error.into_inner())
    })
}

/// Checks the names of arguments, and brings the values into the types that the schema asks for.
fn fit(schema: &Map<String, Value>, arguments: &mut Map<String, Value>) -> Result<(), Failure> {
    let no_properties = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_properties);
    let required = schema.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    let missing = required.find(|name| arguments.get(*name).is_none_or(Value::is_null));
    if let Some(name) = arguments.keys().find(|name| !properties.contains_key(*name)) {
        return Err(unknown(name, properties, missing));
    }
    if let Some(name) = missing {
        return Err(Failure::argument(name, format!("{name} is required")));
    }
    coerce_arguments(properties, arguments);
    // An optional field that is null was left out.
    arguments.retain(|name, value| !value.is_null() || accepts_null(properties.get(name)));
    Ok(())
}

fn wrong(path: &str, error: &serde_json::Error) -> Failure {
    let name = path.split(['.', '[']).next().unwrap_or_default();
    Failure::argument(name, format!("{path}: {error}"))
}

fn accepts_null(property: Option<&Value>) -> bool {
    // `Option` is written as a list of types; a null in it says nothing more than absence does.
    property.and_then(|property| property.get("const")).is_some_and(Value::is_null)
}

/// Names a field that the tool does not have, and the required one that it may have been meant for.
fn unknown(name: &str, properties: &Map<String, Value>, missing: Option<&str>) -> Failure {
    let mut names: Vec<_> = properties.keys().map(String::as_str).collect();
    names.push(WORKSPACE);
    names.dedup();
    let near = nearest(name, &names);
    let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let missing = missing.map_or(String::new(), |missing| format!("; {missing} is required"));
    let taken = names.join(", ");
    let message = format!("unknown field `{name}`{hint}; this tool takes: {taken}{missing}");
    Failure::argument(name, message)
}

pub(crate) fn nearest<'a>(word: &str, words: &[&'a str]) -> Option<&'a str> {
    carrel_domain::suggest::closest(word, words.iter().copied(), |_| MAX_DISTANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Input {
        file_path: String,
        limit: Option<u64>,
        #[serde(default)]
        edits: Vec<Edit>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Edit {
        line: u64,
    }

    fn read(arguments: Value) -> Result<Input, String> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        decode(&schema_of(Input::json_schema), arguments).map_err(|failure| failure.message)
    }

    #[test]
    fn good_arguments_are_read_and_null_is_as_good_as_nothing() {
        let expected = Input { file_path: "a".into(), limit: None, edits: Vec::new() };
        assert_eq!(read(json!({ "file_path": "a", "limit": null })), Ok(expected));
    }

    #[test]
    fn a_plain_meaning_is_accepted_in_another_type() {
        let expected =
            Input { file_path: "5".into(), limit: Some(5), edits: vec![Edit { line: 7 }] };
        let given = json!({ "file_path": "5", "limit": "5.0", "edits": "[{\"line\": 7.0}]" });
        assert_eq!(read(given), Ok(expected));
    }

    #[test]
    fn an_unknown_field_is_named_even_if_a_required_one_is_missing() {
        assert_eq!(
            read(json!({ "filepath": "a" })).unwrap_err(),
            "unknown field `filepath`; did you mean `file_path`?; this tool takes: file_path, limit, \
             edits, workspace; file_path is required"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(read(json!({})).unwrap_err(), "file_path is required");
        assert_eq!(
            read(json!({ "file_path": "a", "limits": 5 })).unwrap_err(),
            "unknown field `limits`; did you mean `limit`?; this tool takes: file_path, limit, edits, workspace"
        );
        assert_eq!(
            read(json!({ "file_path": "a", "limit": "five" })).unwrap_err(),
            "limit: invalid type: string \"five\", expected u64"
        );
        assert_eq!(
            read(json!({ "file_path": "a", "edits": [{ "line": -1 }] })).unwrap_err(),
            "edits[0].line: invalid value: integer `-1`, expected u64"
        );
    }
}
