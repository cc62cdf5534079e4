//! JSON Schemas of requests and responses.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::route::SchemaFn;

/// Collects the schemas of a document.
///
/// A type may be read and written in different forms, so that there are two generators. A named schema must
/// be the same in both, or the document could not refer to it.
pub(super) struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            read: settings().for_deserialize().into_generator(),
            written: settings().for_serialize().into_generator(),
        }
    }

    pub(super) fn body(&mut self, shape: SchemaFn) -> Value {
        shape(&mut self.read).to_value()
    }

    pub(super) fn response(&mut self, shape: SchemaFn) -> Value {
        shape(&mut self.written).to_value()
    }

    pub(super) fn parameters(&mut self, shape: SchemaFn) -> Vec<Value> {
        let schema = shape(&mut self.read);
        let required =
            schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object).cloned();
        let properties = properties.into_iter().flatten();
        let parameters = properties.map(|(name, mut schema)| {
            without_null(&mut schema);
            let description =
                schema.as_object_mut().and_then(|fields| fields.remove("description"));
            json!({
                "name": name,
                "in": "query",
                "required": required.contains(&json!(name)),
                "description": description.unwrap_or_default(),
                "schema": schema,
            })
        });
        parameters.collect()
    }

    pub(super) fn components(mut self) -> Map<String, Value> {
        let mut all = self.written.take_definitions(true);
        for (name, schema) in self.read.take_definitions(true) {
            let other = all.insert(name.clone(), schema.clone());
            let same = other.is_none_or(|other| other == schema);
            assert!(same, "{name} is read and written in two shapes; one needs another name");
        }
        all
    }
}

/// Removes `null` from the type of a parameter: an absent parameter is left out.
fn without_null(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(shapes)) = fields.get_mut("anyOf") {
        shapes.retain(|shape| *shape != json!({ "type": "null" }));
        if let [Value::Object(only)] = shapes.as_slice() {
            let only = only.clone();
            fields.remove("anyOf");
            fields.extend(only);
        }
    }
}

/// Removes number formats, most of which `OpenAPI` does not define, and `null` defaults; replaces `word` in
/// patterns.
pub(super) fn tidy(schema: &mut Value, word: &str, instead: &str) {
    match schema {
        Value::Object(fields) => {
            carrel_tools::leave_out_number_format(fields);
            if fields.get("default").is_some_and(Value::is_null) {
                fields.remove("default");
            }
            if let Some(Value::String(pattern)) = fields.get_mut("pattern") {
                *pattern = pattern.replace(word, instead);
            }
            fields.values_mut().for_each(|value| tidy(value, word, instead));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| tidy(value, word, instead)),
        _ => {}
    }
}
