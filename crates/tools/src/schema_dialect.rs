//! Reduction of JSON Schemas to the subset that all MCP clients support.

use serde_json::{Map, Value, json};

/// Removes the format of a number, such as `uint64`, which is no standard format.
pub fn leave_out_number_format(schema: &mut Map<String, Value>) {
    let is_number = |format: &str| {
        ["int", "uint", "float", "double"].iter().any(|start| format.starts_with(start))
    };
    if schema.get("format").and_then(Value::as_str).is_some_and(is_number) {
        schema.remove("format");
    }
}

/// Removes the formats of all numbers; some clients warn about each.
pub(crate) fn leave_out_number_formats(schema: &mut Value) {
    for_each_object(schema, leave_out_number_format);
}

/// Removes `null` from the types of optional arguments. Some clients support one type for each field.
pub(crate) fn leave_out_null(schema: &mut Value) {
    for_each_object(schema, |fields| {
        for list in ["type", "enum", "anyOf"] {
            single(fields, list);
        }
    });
}

/// Changes every object of a schema, the outer ones first.
fn for_each_object(schema: &mut Value, change: fn(&mut Map<String, Value>)) {
    match schema {
        Value::Object(fields) => {
            change(fields);
            fields.values_mut().for_each(|value| for_each_object(value, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_object(item, change)),
        _ => {}
    }
}

/// Removes null from a list of types or alternatives, and the list if one item remains.
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
        // The description of the field takes precedence over that of its type.
        Value::Object(only) => only.into_iter().for_each(|(name, value)| {
            fields.entry(name).or_insert(value);
        }),
        only => {
            fields.insert(list.to_owned(), only);
        }
    }
}

/// Returns a schema of several alternatives and the error envelope, because clients validate errors against
/// the output schema too.
pub(crate) fn or_error(mut shapes: Vec<Value>) -> Map<String, Value> {
    shapes.push(json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "description": "With `isError`: the reason for the failure.",
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
    fn an_error_fits_the_output_schema() {
        let schema = json!(or_error(vec![json!({ "type": "object" })]));
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["anyOf"][0], json!({ "type": "object" }));
        assert_eq!(schema["anyOf"][1]["required"], json!(["error"]));
    }
}
