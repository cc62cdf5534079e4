//! Input schemas in few words, for models.
//!
//! A model reads the definitions of all tools with every request, so each word there is paid for again and
//! again. The brief form of a schema leaves out everything that the server checks anyway (bounds, defaults,
//! unknown fields), and the words that a name says by itself. Arguments are decoded against the full schema,
//! so nothing is checked less strictly, and an argument that the brief form leaves out can be given.
//!
//! The author of an argument says what the brief form has of it, in an extension of its schema:
//!
//! | `#[schemars(extend("x-brief" = …))]` | the brief form |
//! |---|---|
//! | not there | the description |
//! | `"a text"` | that text as the description |
//! | `""` | no description: the name says it |
//! | `false` | no such argument: few calls need it, and replies or refusals name it where one does |

use serde_json::{Map, Value, json};

/// The extension that says what the brief form has of an argument. The full form does not have it.
const BRIEF: &str = "x-brief";

/// Keywords for rules that the decoder knows by itself.
const CHECKED_ANYWAY: [&str; 4] = ["default", "minimum", "title", "format"];

/// Returns the brief form of a schema.
pub(crate) fn brief(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut brief = schema.clone();
    shorten(&mut brief);
    brief
}

/// Removes the extension from a schema, which gives the full form.
pub(crate) fn leave_out_brief(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove(BRIEF);
            fields.values_mut().for_each(leave_out_brief);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_brief),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn shorten(schema: &mut Map<String, Value>) {
    for keyword in CHECKED_ANYWAY {
        schema.remove(keyword);
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    match schema.remove(BRIEF) {
        Some(Value::String(text)) if text.is_empty() => {
            schema.remove("description");
        }
        Some(Value::String(text)) => {
            schema.insert("description".into(), text.into());
        }
        _ => {}
    }
    list_words(schema);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|_, property| property.get(BRIEF) != Some(&Value::Bool(false)));
        properties.values_mut().filter_map(Value::as_object_mut).for_each(shorten);
    }
    let parts = ["items", "additionalProperties"];
    for part in parts {
        if let Some(Value::Object(part)) = schema.get_mut(part) {
            part.remove("description");
            shorten(part);
        }
    }
    let alternatives = schema.get_mut("anyOf").and_then(Value::as_array_mut);
    for alternative in alternatives.into_iter().flatten().filter_map(Value::as_object_mut) {
        alternative.remove("description");
        shorten(alternative);
    }
}

/// Replaces alternatives that are one word each, with a description, by the list of the words.
fn list_words(schema: &mut Map<String, Value>) {
    let alternatives = schema.get("oneOf").and_then(Value::as_array);
    let words = alternatives.map(|all| all.iter().map(|one| one.get("const")?.as_str()));
    let Some(Some(words)) = words.map(Iterator::collect::<Option<Vec<_>>>) else { return };
    let words = json!(words);
    schema.remove("oneOf");
    schema.insert("type".into(), json!("string"));
    schema.insert("enum".into(), words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_schema::schema_of;
    use pretty_assertions::assert_eq;
    use schemars::JsonSchema;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Input {
        /// The path of the file.
        #[schemars(extend("x-brief" = ""))]
        path: String,
        /// The first line, counted from 1.
        #[schemars(extend("x-brief" = "from 1"))]
        #[serde(default)]
        offset: u64,
        /// The form of the reply.
        form: Option<Form>,
        /// A thing that few calls need.
        #[schemars(extend("x-brief" = false))]
        rare: Option<bool>,
        /// The edits.
        edits: Vec<Edit>,
    }

    /// A form.
    #[derive(JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema matters")]
    enum Form {
        /// Lines.
        Lines,
        /// Names of files.
        Files,
    }

    /// An edit.
    #[derive(JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Edit {
        /// The new text.
        #[schemars(extend("x-brief" = ""))]
        text: String,
    }

    #[test]
    fn the_brief_form_has_what_a_model_needs_and_no_more() {
        let mut schema = schema_of(Input::json_schema);
        schema.values_mut().for_each(crate::schema_dialect::leave_out_null);
        assert_eq!(
            json!(brief(&schema)),
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "offset": { "type": "integer", "description": "from 1" },
                    "form": {
                        "description": "The form of the reply.",
                        "type": "string",
                        "enum": ["lines", "files"],
                    },
                    "edits": {
                        "type": "array",
                        "description": "The edits.",
                        "items": {
                            "type": "object",
                            "properties": { "text": { "type": "string" } },
                            "required": ["text"],
                        },
                    },
                },
                "required": ["path", "edits"],
            })
        );
    }

    #[test]
    fn the_full_form_has_every_argument_with_its_description() {
        let mut schema = json!(schema_of(Input::json_schema));
        leave_out_brief(&mut schema);
        assert!(!schema.to_string().contains(BRIEF), "{schema}");
        assert_eq!(schema["properties"]["path"]["description"], "The path of the file.");
        assert_eq!(schema["properties"]["rare"]["description"], "A thing that few calls need.");
        assert_eq!(schema["properties"]["offset"]["default"], 0);
    }
}
