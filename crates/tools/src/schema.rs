//! Schemas in words that every client understands, not only those that know all of JSON Schema.

use serde_json::{Map, Value, json};

/// Leaves out the format of a number, which only some dialects know.
pub fn leave_out_number_format(schema: &mut Map<String, Value>) {
    let is_number = |format: &str| {
        ["int", "uint", "float", "double"].iter().any(|start| format.starts_with(start))
    };
    if schema.get("format").and_then(Value::as_str).is_some_and(is_number) {
        schema.remove("format");
    }
}

/// Leaves out the formats of numbers, wherever they are: clients warn about each.
pub(crate) fn leave_out_number_formats(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            leave_out_number_format(fields);
            fields.values_mut().for_each(leave_out_number_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_number_formats),
        _ => {}
    }
}

/// Leaves out that an optional argument may be null, which says no more than that it is optional.
/// Some clients know only one type for each field.
pub(crate) fn leave_out_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for list in ["type", "enum", "anyOf"] {
                single(fields, list);
            }
            fields.values_mut().for_each(leave_out_null);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_null),
        _ => {}
    }
}

/// Takes null out of a list of types or alternatives; what is then alone needs no list.
fn single(fields: &mut Map<String, Value>, list: &str) {
    let Some(Value::Array(items)) = fields.get_mut(list) else { return };
    let count = items.len();
    items.retain(|item| !item.is_null() && item != "null" && *item != json!({ "type": "null" }));
    if items.len() == count || items.len() != 1 || list == "enum" {
        return;
    }
    let Some(only) = items.pop() else { return };
    fields.remove(list);
    match only {
        // What the field itself says is said for its use here.
        Value::Object(only) => only.into_iter().for_each(|(name, value)| {
            fields.entry(name).or_insert(value);
        }),
        only => {
            fields.insert(list.to_owned(), only);
        }
    }
}

/// Allows one of several shapes, or the error that comes instead: a client may hold that against the
/// schema as well.
pub(crate) fn or_error(mut shapes: Vec<Value>) -> Map<String, Value> {
    shapes.push(json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "description": "With `isError`: why there is no answer.",
                "required": ["code", "message"],
                "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
            },
        },
    }));
    Map::from_iter([("type".to_owned(), json!("object")), ("anyOf".to_owned(), json!(shapes))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_number_has_no_format_and_a_field_of_that_name_stays() {
        let mut schema = json!({ "properties": {
            "line": { "type": "integer", "format": "uint64", "minimum": 0 },
            "format": { "type": "string", "format": "date-time" },
        } });
        leave_out_number_formats(&mut schema);
        let expected = json!({ "properties": {
            "line": { "type": "integer", "minimum": 0 },
            "format": { "type": "string", "format": "date-time" },
        } });
        assert_eq!(schema, expected);
    }

    #[test]
    fn an_optional_argument_has_one_type() {
        let mut schema = json!({ "properties": {
            "limit": { "description": "How many.", "type": ["integer", "null"] },
            "mode": {
                "description": "How.",
                "anyOf": [{ "description": "Ways.", "enum": ["a", "b"], "type": "string" }, { "type": "null" }],
            },
            "args": { "anyOf": [{ "type": "string" }, { "type": "array" }, { "type": "null" }] },
            "word": { "type": ["string", "null"], "enum": ["a", null] },
            "edits": { "items": { "properties": { "line": { "type": ["integer", "null"] } } } },
        } });
        leave_out_null(&mut schema);
        let expected = json!({ "properties": {
            "limit": { "description": "How many.", "type": "integer" },
            "mode": { "description": "How.", "enum": ["a", "b"], "type": "string" },
            "args": { "anyOf": [{ "type": "string" }, { "type": "array" }] },
            "word": { "type": "string", "enum": ["a"] },
            "edits": { "items": { "properties": { "line": { "type": "integer" } } } },
        } });
        assert_eq!(schema, expected);
    }

    #[test]
    fn an_error_fits_the_schema_of_an_answer() {
        let schema = json!(or_error(vec![json!({ "type": "object" })]));
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["anyOf"][0], json!({ "type": "object" }));
        assert_eq!(schema["anyOf"][1]["required"], json!(["error"]));
    }
}
