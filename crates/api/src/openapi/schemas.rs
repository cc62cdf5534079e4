//! The schemas of what is read and what is written.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::route::SchemaFn;

/// Collects the schemas of a document. What a type looks like may depend on the direction.
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

    /// Returns the schema of a body.
    pub(super) fn body(&mut self, shape: SchemaFn) -> Value {
        shape(&mut self.read).to_value()
    }

    /// Returns the schema of an answer.
    pub(super) fn answer(&mut self, shape: SchemaFn) -> Value {
        shape(&mut self.written).to_value()
    }

    /// Returns the parameters that a type stands for.
    pub(super) fn parameters(&mut self, shape: SchemaFn) -> Vec<Value> {
        let schema = shape(&mut self.read);
        let required: Vec<_> = list(&schema, "required");
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

    /// Returns every schema that has a name.
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

fn list(schema: &Schema, name: &str) -> Vec<Value> {
    schema.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Leaves out that a parameter may be null: it is left out then.
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

/// Leaves out the formats of numbers, few of which this dialect knows, and that nothing is the usual;
/// puts something in the place of a word in every pattern.
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
