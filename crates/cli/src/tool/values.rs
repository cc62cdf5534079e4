//! Arguments of a tool on the command line: one JSON object, or `key=value` read by the schema.

use carrel_domain::Code;
use serde_json::{Map, Value, json};

use crate::error::{CliError, Result};

pub(super) fn read(values: &[String], schema: &Map<String, Value>) -> Result<Map<String, Value>> {
    if let [only] = values
        && let Ok(Value::Object(object)) = serde_json::from_str(only)
    {
        return Ok(object);
    }
    let mut arguments = Map::new();
    for text in values {
        let Some((key, value)) = text.split_once('=') else {
            let rule = "is no argument of a tool; write key=value, or one JSON object";
            let error = CliError::new(Code::Usage, format!("{text:?} {rule}"));
            return Err(error.with(json!({ "argument": text })));
        };
        add(&mut arguments, key, value_of(value, schema["properties"].get(key)));
    }
    Ok(arguments)
}

/// A key that is given again makes a list.
fn add(arguments: &mut Map<String, Value>, key: &str, value: Value) {
    match arguments.get_mut(key) {
        Some(Value::Array(values)) => match value {
            Value::Array(more) => values.extend(more),
            one => values.push(one),
        },
        _ => {
            arguments.insert(key.to_owned(), value);
        }
    }
}

/// Reads a value as what the schema wants. What it does not fit is left for the tool to refuse.
fn value_of(text: &str, property: Option<&Value>) -> Value {
    let types = property.map(types).unwrap_or_default();
    let is = |name: &str| types.iter().any(|one| one == name);
    let parsed = serde_json::from_str::<Value>(text).ok();
    match parsed {
        Some(value @ (Value::Number(_) | Value::Bool(_))) if !is("string") && !is("array") => value,
        Some(value @ (Value::Array(_) | Value::Object(_))) if is("array") || is("object") => value,
        Some(Value::Null) if !types.is_empty() && !is("string") => Value::Null,
        _ if is("array") && !is("string") => {
            Value::Array(vec![value_of(text, property.and_then(|property| property.get("items")))])
        }
        _ => Value::String(text.to_owned()),
    }
}

fn types(property: &Value) -> Vec<String> {
    let own = match property.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let alternatives =
        ["anyOf", "oneOf"].into_iter().filter_map(|key| property.get(key)?.as_array());
    own.into_iter().chain(alternatives.flatten().flat_map(types)).collect()
}

/// Describes what a tool takes, one line for each field.
pub(super) fn fields(schema: &Map<String, Value>) -> Vec<String> {
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let line = |(name, property): (&String, &Value)| {
        let mut types = types(property);
        types.retain(|one| one != "null");
        let marker = if required.contains(&name.as_str()) { "*" } else { "" };
        let description = property.get("description").and_then(Value::as_str).unwrap_or("");
        format!("  {:<24}{:<10}{description}", format!("{name}{marker}"), types.join("|"))
    };
    properties.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn values_become_what_the_schema_wants() {
        let schema = json!({ "properties": {
            "name": { "type": "string" },
            "limit": { "type": ["integer", "null"] },
            "deep": { "type": "boolean" },
            "args": { "type": "array", "items": { "type": "string" } },
            "mode": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        } });
        let Value::Object(schema) = schema else { unreachable!() };
        let given = |values: &[&str]| {
            let values: Vec<_> = values.iter().map(|value| (*value).to_owned()).collect();
            read(&values, &schema).map(Value::Object).map_err(|error| error.to_string())
        };
        let values =
            ["name=7", "limit=7", "deep=true", "args=1", "args=b=c", "mode=x", "other=null"];
        let expected = json!({ "name": "7", "limit": 7, "deep": true, "args": ["1", "b=c"], "mode": "x", "other": "null" });
        assert_eq!(given(&values), Ok(expected));
        assert_eq!(given(&[r#"{"name": "x"}"#]), Ok(json!({ "name": "x" })));
        assert_eq!(given(&[r#"args=["a","b"]"#]), Ok(json!({ "args": ["a", "b"] })));
        assert_eq!(given(&["limit=many"]), Ok(json!({ "limit": "many" })), "the tool refuses it");
        assert!(given(&["what"]).unwrap_err().contains("\"what\""));
    }
}
