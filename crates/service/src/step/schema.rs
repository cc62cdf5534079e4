//! What a schema says about a step beyond its fields: which action needs which.

use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::repository::{ADDRESS_PATTERN, NAME_PATTERN};

/// The actions, and what each needs.
fn needs() -> [(&'static str, Value); 9] {
    let text = json!({ "type": "string", "minLength": 1 });
    let path = json!({ "path": text });
    let command = json!({ "command": { "type": "string", "minLength": 1 } });
    [
        ("execute_command", command.clone()),
        ("shell", command),
        ("git_clone", json!({ "repo": { "type": "string", "pattern": ADDRESS_PATTERN } })),
        ("git_pull", json!({ "repo_name": { "type": "string", "pattern": NAME_PATTERN } })),
        ("read_file", path.clone()),
        ("write_file", json!({ "path": text, "content": { "type": "string" } })),
        ("list_directory", json!({})),
        ("create_directory", path),
        ("tool", json!({ "tool": text })),
    ]
}

/// Adds what each action needs.
pub(super) fn by_action(schema: &mut Schema) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.insert("required".to_owned(), json!(["action"]));
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        property.as_object_mut().map(|property| property.remove("default"));
    }
    let shapes = needs().map(|(action, needed)| {
        let mut properties = Map::from_iter([("action".to_owned(), json!({ "const": action }))]);
        properties.extend(needed.as_object().cloned().unwrap_or_default());
        let required: Vec<_> = properties.keys().cloned().collect();
        json!({ "title": action, "properties": properties, "required": required })
    });
    fields.insert("anyOf".to_owned(), json!(shapes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::RawStep;
    use crate::step::raw::ACTIONS;
    use pretty_assertions::assert_eq;

    fn example(field: &str) -> &'static str {
        match field {
            "repo" => "https://github.com/a/b",
            "repo_name" => "b",
            _ => "x",
        }
    }

    fn read(step: Value) -> Result<(), String> {
        let step: RawStep = serde_json::from_value(step).map_err(|error| error.to_string())?;
        step.step(0).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn each_action_needs_what_the_schema_says_and_no_more() {
        assert_eq!(needs().map(|(action, _)| action), ACTIONS);
        for (action, needed) in needs() {
            let mut step = json!({ "action": action });
            for field in needed.as_object().unwrap().keys() {
                step[field] = json!(example(field));
            }
            assert_eq!(read(step.clone()), Ok(()), "{action}");
            for field in needed.as_object().unwrap().keys() {
                let mut without = step.clone();
                without.as_object_mut().unwrap().remove(field);
                assert!(read(without).is_err(), "{action} without {field}");
            }
        }
    }
}
