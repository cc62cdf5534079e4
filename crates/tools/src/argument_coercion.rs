//! Coercion of arguments to the types of a schema.
//!
//! Models write `5.0` for 5, `"5"`, `"false"` and lists as JSON inside a string. The meaning is plain, and a
//! refusal costs a call, so such a value becomes the one that the schema asks for, before it is decoded. A
//! value that the schema allows as it is stays; any other is left to the decoder, whose error names it.

use serde_json::{Map, Number, Value};

/// The largest float that a whole number passes through without loss.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// Coerces the arguments of a tool by the schemas of its properties.
pub(crate) fn coerce_arguments(
    properties: &Map<String, Value>,
    arguments: &mut Map<String, Value>,
) {
    for (name, value) in arguments {
        if let Some(schema) = properties.get(name) {
            coerce(schema, value);
        }
    }
}

fn coerce(schema: &Value, value: &mut Value) {
    let coerced = match &*value {
        Value::String(text) => from_text(schema, text),
        Value::Number(number) if !allows(schema, "number") => whole_number(number),
        _ => None,
    };
    if let Some(coerced) = coerced {
        *value = coerced;
    }
    match value {
        Value::Array(items) => {
            if let Some(schema) = part(schema, "items") {
                for item in items {
                    coerce(schema, item);
                }
            }
        }
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = part(schema, "properties") {
                coerce_arguments(properties, fields);
            }
        }
        _ => {}
    }
}

/// Reads a text as the type that the schema asks for. A schema that allows text as well keeps it, unless
/// it is a list in JSON.
fn from_text(schema: &Value, text: &str) -> Option<Value> {
    let parsed: Value = serde_json::from_str(text.trim()).ok().or_else(|| boolean(text))?;
    let allowed = match &parsed {
        Value::Array(_) => return allows(schema, "array").then_some(parsed),
        _ if allows(schema, "string") => return None,
        Value::Object(_) => allows(schema, "object"),
        Value::Bool(_) => allows(schema, "boolean"),
        Value::Number(_) if allows(schema, "number") => true,
        Value::Number(number) if allows(schema, "integer") => return whole_number(number),
        Value::Number(_) | Value::Null | Value::String(_) => false,
    };
    allowed.then_some(parsed)
}

/// Reads the spellings of other languages, such as `False`.
fn boolean(text: &str) -> Option<Value> {
    text.trim().to_ascii_lowercase().parse().ok().map(Value::Bool)
}

/// Returns a number without fraction as an integer; none if it has one or is too large to be exact.
fn whole_number(number: &Number) -> Option<Value> {
    if !number.is_f64() {
        return Some(Value::Number(number.clone()));
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is in range")]
    let whole = (float.fract() == 0.0 && float.abs() <= MAX_EXACT_FLOAT).then_some(float as i64);
    whole.map(Value::from)
}

fn allows(schema: &Value, name: &str) -> bool {
    let named = match &schema["type"] {
        Value::String(only) => only == name,
        Value::Array(types) => types.iter().any(|one| one == name),
        // A list of words is text.
        _ => name == "string" && (schema["enum"].is_array() || schema["const"].is_string()),
    };
    named || alternatives(schema).any(|one| allows(one, name))
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"].into_iter().filter_map(|list| schema[list].as_array()).flatten()
}

fn part<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get(name).or_else(|| alternatives(schema).find_map(|one| part(one, name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn coerced(schema: &Value, mut value: Value) -> Value {
        coerce(schema, &mut value);
        value
    }

    #[test]
    fn a_plain_meaning_becomes_the_type_of_the_schema() {
        let integer = json!({ "type": "integer" });
        let optional = json!({ "type": ["integer", "null"] });
        let switch = json!({ "type": "boolean" });
        let list = json!({ "type": "array", "items": { "type": "integer" } });
        let edits = json!({ "type": "array", "items": { "properties": { "line": integer } } });
        let text_or_list = json!({ "anyOf": [{ "type": "string" }, { "type": "array" }] });
        for (schema, given, expected) in [
            (&integer, json!(5.0), json!(5)),
            (&integer, json!("5"), json!(5)),
            (&optional, json!(" 5.0 "), json!(5)),
            (&integer, json!("-3"), json!(-3)),
            (&switch, json!("false"), json!(false)),
            (&switch, json!("True"), json!(true)),
            (&list, json!("[1, \"2\", 3.0]"), json!([1, 2, 3])),
            (&edits, json!("[{\"line\": \"7\"}]"), json!([{ "line": 7 }])),
            (&text_or_list, json!("[\"-m\", \"x\"]"), json!(["-m", "x"])),
        ] {
            assert_eq!(coerced(schema, given.clone()), expected, "{given}");
        }
    }

    #[test]
    fn a_doubtful_meaning_stays_as_it_is() {
        let integer = json!({ "type": "integer" });
        let text = json!({ "type": "string" });
        let words = json!({ "enum": ["1", "2"] });
        let text_or_list = json!({ "anyOf": [{ "type": "string" }, { "type": "array" }] });
        for (schema, given) in [
            (&integer, json!(5.5)),
            (&integer, json!("5.5")),
            (&integer, json!("five")),
            (&integer, json!("")),
            (&integer, json!(true)),
            (&integer, json!(1e300)),
            (&json!({ "type": "boolean" }), json!("yes")),
            (&json!({ "type": "boolean" }), json!(1)),
            (&text, json!("5")),
            (&text, json!("[1]")),
            (&text, json!("true")),
            (&words, json!("1")),
            (&text_or_list, json!("-m x")),
            (&text_or_list, json!("5")),
        ] {
            assert_eq!(coerced(schema, given.clone()), given, "{schema}");
        }
    }
}
