//! Responses of a route in the `OpenAPI` document, errors included.

use carrel_domain::Code;
use serde_json::{Map, Value, json};

use super::route::{Content, Description, ResponseSpec, Route};
use super::schemas::Schemas;

/// Returns the responses of a route by status. Errors with the same status share one.
pub(super) fn responses(route: &Description, schemas: &mut Schemas) -> Map<String, Value> {
    let success = route.responses.iter().map(|spec| (spec.status, success(spec, schemas)));
    let mut all: Vec<_> = success.collect();
    for (_, response) in &mut all {
        for (name, field) in &route.links {
            let from = format!("$response.body#/{field}");
            response["links"][name] =
                json!({ "operationId": name, "parameters": { "task_id": from } });
        }
    }
    let codes = route.all_codes();
    let errors = codes.chunk_by(|one, next| one.status() == next.status());
    all.extend(errors.map(|codes| (codes[0].status(), error_response(codes))));
    all.sort_by_key(|(status, _)| *status);
    all.into_iter().map(|(status, response)| (status.to_string(), response)).collect()
}

fn success(spec: &ResponseSpec, schemas: &mut Schemas) -> Value {
    let content = match spec.content {
        Content::Nothing => return json!({ "description": spec.description }),
        Content::Json(shape) => {
            json!({ "application/json": { "schema": schemas.response(shape) } })
        }
        Content::Events(shape) => {
            json!({ "text/event-stream": { "schema": schemas.response(shape) } })
        }
        Content::Bytes(kind) if kind.starts_with("text/") => {
            json!({ kind: { "schema": { "type": "string" } } })
        }
        Content::Bytes(kind) => json!({ kind: {} }),
    };
    json!({ "description": spec.description, "content": content })
}

fn error_response(codes: &[Code]) -> Value {
    let names: Vec<_> = codes.iter().map(|code| code.name()).collect();
    let description = names.join(", ");
    let schema = json!({
        "$ref": "#/components/schemas/Error",
        "properties": { "error": { "properties": { "code": { "enum": names } } } },
    });
    let content = json!({ "application/json": { "schema": schema } });
    let mut response = json!({ "description": description, "content": content });
    match codes[0].status() {
        401 => {
            response["headers"] = json!({
                "WWW-Authenticate": { "required": true, "schema": { "const": "Bearer" } },
            });
        }
        429 | 503 => {
            response["headers"] = json!({
                "Retry-After": {
                    "description": "Seconds to wait.",
                    "schema": { "type": "integer", "minimum": 1 },
                },
            });
        }
        _ => {}
    }
    response
}

/// Returns the schema of the error envelope, with the meaning of each code.
pub(super) fn envelope(routes: &[Route]) -> Value {
    let mut codes: Vec<_> = routes.iter().flat_map(|route| route.about.all_codes()).collect();
    codes.sort_by_key(|code| code.name());
    codes.dedup();
    let codes = codes.iter().map(|code| {
        let (name, meaning) = (code.name(), code.meaning());
        json!({ "const": name, "description": meaning })
    });
    let codes: Vec<_> = codes.collect();
    json!({
        "description": "The one shape of every error. Each code has a page in docs/errors.",
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "kind", "message", "detail"],
            "properties": {
                "code": { "type": "string", "description": "A stable name.", "oneOf": codes },
                "kind": { "type": "string", "description": "The same in lower case." },
                "message": { "type": "string", "description": "One sentence for a person." },
                "detail": { "type": "object", "description": "Facts for a program." },
            },
        } },
    })
}
