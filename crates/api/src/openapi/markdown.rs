//! `docs/api.md`, generated from the `OpenAPI` document.

use std::fmt::Write as _;

use serde_json::Value;

const HEAD: &str = "# REST

The API of `carrel serve`. This page is generated from the routes (`make docs`). A running server has the same as
OpenAPI 3.1 at `/openapi.json` and as a page at `/docs`; [openapi.json](openapi.json) is a copy. Error codes are
explained in [errors](errors/).
";

/// Renders a document as Markdown.
pub fn markdown(document: &Value) -> String {
    let mut text = format!("{HEAD}\n{}\n", text_of(&document["info"]["description"]));
    for tag in items(&document["tags"]) {
        let (name, description) = (text_of(&tag["name"]), text_of(&tag["description"]));
        let _ = write!(text, "\n## {}\n\n{description}\n", capital(name));
        for (path, method, operation) in operations(document) {
            if operation["tags"][0] == tag["name"] {
                describe(&mut text, document, (path, method), operation);
            }
        }
    }
    text.push_str("\n## Shapes\n");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let _ = write!(text, "\n### {name}\n\n{}\n", text_of(&schema["description"]));
        let rows = rows(schema);
        if rows.is_empty() {
            let _ = write!(text, "\n{}\n", named(schema));
        } else {
            let _ = write!(text, "\n| field | | |\n|---|---|---|\n{rows}");
        }
    }
    text
}

fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (path, method, operation))
    })
}

fn describe(text: &mut String, document: &Value, (path, method): (&str, &str), operation: &Value) {
    let summary = text_of(&operation["summary"]);
    let description = text_of(&operation["description"]);
    let method = method.to_uppercase();
    let _ = write!(text, "\n### {summary}\n\n`{method} {path}`\n\n{description}\n");
    let mut fields = String::new();
    for one in items(&operation["parameters"]).filter(|one| one["in"] != "path") {
        let kind = format!("{}, {}", text_of(&one["in"]), kind(&one["schema"]));
        let required = one["required"] == true;
        fields.push_str(&row(text_of(&one["name"]), required, &kind, &one["description"]));
    }
    let body = &operation["requestBody"]["content"]["application/json"];
    let schema = resolve(document, &body["schema"]);
    fields.push_str(&rows(schema));
    if !fields.is_empty() {
        let _ = write!(text, "\n| field | | |\n|---|---|---|\n{fields}");
    }
    for (_, example) in body["examples"].as_object().into_iter().flatten() {
        let value = serde_json::to_string_pretty(&example["value"]).unwrap_or_default();
        let _ = write!(text, "\n{}:\n\n```json\n{value}\n```\n", text_of(&example["summary"]));
    }
    let _ = write!(text, "\n| response | |\n|---|---|\n");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "| {status} | {} |", response_cell(document, response));
    }
}

fn rows(schema: &Value) -> String {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let rows = properties.map(|(name, property)| {
        let required = items(&schema["required"]).any(|one| one == name);
        row(name, required, &kind(property), &property["description"])
    });
    rows.collect()
}

fn row(name: &str, required: bool, kind: &str, about: &Value) -> String {
    let marker = if required { "*" } else { "" };
    let about = text_of(about).replace('\n', " ").replace('|', "\\|");
    format!("| `{name}`{marker} | {kind} | {about} |\n")
}

/// Returns the error codes of a response, or the fields of a success.
fn response_cell(document: &Value, response: &Value) -> String {
    let schema = &response["content"]["application/json"]["schema"];
    let codes = &schema["properties"]["error"]["properties"]["code"]["enum"];
    if codes.is_array() {
        let codes = items(codes).map(|code| format!("`{}`", text_of(code)));
        return codes.collect::<Vec<_>>().join(" ");
    }
    let fields = resolve(document, schema)["properties"].as_object();
    let fields = fields.into_iter().flatten().map(|(name, _)| format!(" `{name}`"));
    format!("{}{}", text_of(&response["description"]), fields.collect::<String>())
}

fn kind(schema: &Value) -> String {
    let mut words = vec![named(schema)];
    for (key, word) in [
        ("minimum", "from"),
        ("maximum", "to"),
        ("minLength", "at least"),
        ("maxLength", "at most"),
        ("minItems", "at least"),
        ("maxItems", "at most"),
        ("default", "default"),
    ] {
        if let Some(limit) = schema.get(key).filter(|limit| **limit != u64::MAX && !limit.is_null())
        {
            words.push(format!("{word} {limit}"));
        }
    }
    words.join(" ")
}

fn named(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if schema["enum"].is_array() {
        let words =
            items(&schema["enum"]).filter_map(Value::as_str).map(|word| format!("`{word}`"));
        return words.collect::<Vec<_>>().join(" ");
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("`{word}`");
    }
    let shapes = ["oneOf", "anyOf"].into_iter().find_map(|key| schema[key].as_array());
    if let Some(shapes) = shapes {
        let words = shapes.iter().map(named).filter(|word| word != "null");
        return words.collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(one) if one == "array" => format!("list of {}", named(&schema["items"])),
        Value::String(one) => one.clone(),
        Value::Array(_) => {
            let words = items(&schema["type"]).map(text_of).filter(|one| *one != "null");
            words.collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        Some(name) => &document["components"]["schemas"][name],
        None => schema,
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn capital(word: &str) -> String {
    let mut word = word.to_owned();
    word.get_mut(..1).map(str::make_ascii_uppercase);
    word
}
