//! The answers of a route, errors with_errors them.

use carrel_domain::Code;
use serde_json::{Map, Value, json};

use super::route::{Answer, Content, Route};
use super::schemas::Schemas;

/// Returns every answer of a route by its status.
pub(super) fn responses(route: &Route, schemas: &mut Schemas) -> Map<String, Value> {
    let granted = route.answers.iter().map(|answer| (answer.status, granted(answer, schemas)));
    let mut all: Vec<_> = granted.collect();
    for (_, response) in &mut all {
        for (name, field) in &route.links {
            let from = format!("$response.body#/{field}");
            response["links"][name] =
                json!({ "operationId": name, "parameters": { "task_id": from } });
        }
    }
    let codes = route.all_codes();
    let refused = codes.chunk_by(|one, next| one.status() == next.status());
    all.extend(refused.map(|codes| (codes[0].status(), refused_with(codes))));
    all.sort_by_key(|(status, _)| *status);
    all.into_iter().map(|(status, response)| (status.to_string(), response)).collect()
}

fn granted(answer: &Answer, schemas: &mut Schemas) -> Value {
    let content = match answer.content {
        Content::Nothing => return json!({ "description": answer.description }),
        Content::Json(shape) => json!({ "application/json": { "schema": schemas.answer(shape) } }),
        Content::Events(shape) => {
            json!({ "text/event-stream": { "schema": schemas.answer(shape) } })
        }
        Content::Bytes(kind) if kind.starts_with("text/") => {
            json!({ kind: { "schema": { "type": "string" } } })
        }
        Content::Bytes(kind) => json!({ kind: {} }),
    };
    json!({ "description": answer.description, "content": content })
}

fn refused_with(codes: &[Code]) -> Value {
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

/// Returns the schema of the one error envelope. It explains the codes of these routes.
pub(super) fn envelope(routes: &[Route]) -> Value {
    let mut codes: Vec<_> = routes.iter().flat_map(Route::all_codes).collect();
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
