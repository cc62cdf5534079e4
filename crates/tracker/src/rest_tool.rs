//! Tools that send a request for an agent.
//!
//! What an agent wants to send is taken apart first. A path becomes its pieces, each decoded once and
//! judged by itself, and is put together again from those pieces. So what was judged is what is sent,
//! and no way of writing a path leads elsewhere.

mod path;

use carrel_client::percent_encode;
use hyper::Method;
use serde_json::{Map, Value, json};

use crate::api::{Api, ApiRequest, ApiResponse};
use crate::error::whole_seconds;
use crate::rate_limit;
use crate::tool::{Tool, ToolRefusal, ToolReply};

/// What an agent is told of an answer at most.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

/// What an agent may send at most.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// How many values a query may have.
const MAX_VALUES: usize = 64;

/// Values that would speak in another name, or say something else than the method does.
const FORBIDDEN_VALUES: &[&str] =
    &["sudo", "private_token", "access_token", "job_token", "_method"];

/// How requests of one tracker look.
#[derive(Debug)]
pub(crate) struct RequestShape<'a> {
    pub(crate) methods: &'static [&'static str],
    /// What the values of the query are called.
    pub(crate) query: &'static str,
    /// The one piece of a path that may have slashes in it.
    pub(crate) slashed: Option<&'a str>,
}

/// What an agent wants to send.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiCall {
    pub(crate) method: Method,
    /// The pieces of the path, decoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
}

impl ApiCall {
    /// Reads the arguments of a tool. Placeholders in the path are filled in.
    pub(crate) fn parse(
        arguments: Value,
        shape: &RequestShape<'_>,
        fill: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ToolRefusal> {
        let Value::Object(mut told) = arguments else {
            return Err(ToolRefusal::arguments("the arguments are no object"));
        };
        let method = method(told.remove("method").as_ref(), shape.methods)?;
        let path = match told.remove("path") {
            Some(Value::String(path)) => path::pieces(&path, shape.slashed, fill)?,
            _ => {
                return Err(ToolRefusal::arguments(
                    "`path` is missing; it is a text that begins with /",
                ));
            }
        };
        let query = values(told.remove(shape.query), shape.query)?;
        let body = told.remove("body").filter(|body| !body.is_null());
        if let Some(name) = told.keys().next() {
            let known = format!("method, path, {} and body", shape.query);
            return Err(ToolRefusal::arguments(format!(
                "{name:?} is not known; there are {known}"
            )));
        }
        if body.as_ref().is_some_and(is_too_long) {
            return Err(too_long());
        }
        if body.is_some() && method == Method::GET {
            return Err(ToolRefusal::arguments(format!("GET has no body; use `{}`", shape.query)));
        }
        if let Some(name) = body.as_ref().and_then(Value::as_object).and_then(forbidden) {
            return Err(not_for_agents(name));
        }
        Ok(Self { method, path, query, body })
    }

    pub(crate) fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// Returns the pieces of the path to match on.
    pub(crate) fn pieces(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Returns every value that the query and the body give to a name, however deep it stands.
    pub(crate) fn given(&self, names: &[&str]) -> Vec<Value> {
        let wanted = |(name, _): &&(String, String)| names.contains(&name.trim_end_matches("[]"));
        let mut found: Vec<Value> =
            self.query.iter().filter(wanted).map(|(_, value)| json!(value)).collect();
        if let Some(body) = &self.body {
            collect(body, names, &mut found);
        }
        found
    }

    fn target(&self) -> String {
        let mut target = path::join(&self.path);
        for (index, (name, value)) in self.query.iter().enumerate() {
            let mark = if index == 0 { "?" } else { "&" };
            target.extend([mark, &percent_encode(name), "=", &percent_encode(value)]);
        }
        target
    }
}

fn collect(value: &Value, names: &[&str], found: &mut Vec<Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if names.contains(&name.as_str()) {
                    found.push(value.clone());
                }
                collect(value, names, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, names, found)),
        _ => {}
    }
}

/// Tells whether this is more than an agent may send.
pub(crate) fn is_too_long(body: &Value) -> bool {
    body.to_string().len() > MAX_BODY_BYTES
}

pub(crate) fn too_long() -> ToolRefusal {
    ToolRefusal::arguments(format!("what is sent has more than {MAX_BODY_BYTES} bytes"))
}

fn forbidden(fields: &Map<String, Value>) -> Option<&str> {
    fields.keys().map(String::as_str).find(|name| FORBIDDEN_VALUES.contains(name))
}

fn not_for_agents(name: &str) -> ToolRefusal {
    ToolRefusal::scope(format!(
        "`{name}` is not for agents: requests go out in the name of the tracker's secret"
    ))
}

fn method(told: Option<&Value>, methods: &[&str]) -> Result<Method, ToolRefusal> {
    let told = told.and_then(Value::as_str).map(|text| text.trim().to_ascii_uppercase());
    let known = told.filter(|name| methods.contains(&name.as_str()));
    let parsed = known.and_then(|name| Method::from_bytes(name.as_bytes()).ok());
    parsed
        .ok_or_else(|| ToolRefusal::arguments(format!("`method` is one of {}", methods.join(", "))))
}

fn values(told: Option<Value>, field: &str) -> Result<Vec<(String, String)>, ToolRefusal> {
    let fields = match told {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(ToolRefusal::arguments(format!("`{field}` is no object"))),
    };
    if let Some(name) = forbidden(&fields) {
        return Err(not_for_agents(name));
    }
    let mut values = Vec::new();
    for (name, value) in fields {
        let several = if let Value::Array(several) = value { several } else { vec![value] };
        for value in several {
            let text = match value {
                Value::String(text) => text,
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                _ => {
                    let rule = "is neither a text, a number, true nor false";
                    return Err(ToolRefusal::arguments(format!("`{field}.{name}` {rule}")));
                }
            };
            values.push((name.clone(), text));
        }
    }
    let few = values.len() <= MAX_VALUES;
    few.then_some(values)
        .ok_or_else(|| ToolRefusal::arguments(format!("`{field}` has too many values")))
}

/// Sends what was judged, and says what came of it.
pub(crate) async fn send(api: &Api, call: &ApiCall) -> ToolReply {
    let path = call.target();
    let ask =
        ApiRequest { method: call.method.clone(), path, body: call.body.clone(), known: None };
    match api.send(ask).await {
        Ok(answer) => reply(api, &answer),
        Err(fault) => ToolRefusal::from(fault).into(),
    }
}

/// Says what was answered.
pub(crate) fn reply(api: &Api, answer: &ApiResponse) -> ToolReply {
    let success = (200..300).contains(&answer.status);
    let mut told = json!({ "status": answer.status, "body": body(answer) });
    if rate_limit::is_limit(answer.status, &answer.headers, &told["body"].to_string()) {
        let wait = api.limited(&answer.headers).retry_after;
        told["retryAfterSeconds"] = json!(wait.map(whole_seconds));
    }
    let output = serde_json::to_string_pretty(&told).expect("JSON can be written");
    ToolReply { success, output: api.mask(&output) }
}

/// Returns what was answered as JSON, cut to what an agent is told.
fn body(answer: &ApiResponse) -> Value {
    if answer.body.is_empty() {
        return Value::Null;
    }
    let text = || String::from_utf8_lossy(&answer.body).into_owned();
    if answer.body.len() <= MAX_OUTPUT_BYTES {
        return answer.json().unwrap_or_else(|| Value::String(text()));
    }
    let text = text();
    let end = text.floor_char_boundary(MAX_OUTPUT_BYTES);
    json!({ "truncated": true, "bytes": answer.body.len(), "beginning": text[..end] })
}

/// Describes a tool that sends a request.
pub(crate) fn tool(name: &str, description: String, shape: &RequestShape<'_>) -> Tool {
    let mut properties = json!({
        "method": { "type": "string", "enum": shape.methods },
        "path": { "type": "string", "description": "Begins with /, without a query." },
    });
    properties[shape.query] = json!({
        "type": "object",
        "description": "The values of the query.",
        "additionalProperties": true,
    });
    properties["body"] = json!({ "description": "What is sent, as JSON." });
    Tool {
        name: name.to_owned(),
        description,
        input_schema: json!({
            "type": "object",
            "properties": properties,
            "required": ["method", "path"],
            "additionalProperties": false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const SHAPE: RequestShape<'_> =
        RequestShape { methods: &["GET", "POST"], query: "params", slashed: Some("acme/web") };

    fn parse(arguments: Value) -> Result<ApiCall, ToolRefusal> {
        ApiCall::parse(arguments, &SHAPE, |part| (part == ":id").then(|| "acme/web".to_owned()))
    }

    #[test]
    fn arguments_are_read_by_the_table() {
        for arguments in [
            json!(null),
            json!("GET /x"),
            json!({ "path": "/x" }),
            json!({ "method": "TRACE", "path": "/x" }),
            json!({ "method": 3, "path": "/x" }),
            json!({ "method": "GET" }),
            json!({ "method": "GET", "path": 3 }),
            json!({ "method": "GET", "path": "/x", "headers": {} }),
            json!({ "method": "GET", "path": "/x", "params": [] }),
            json!({ "method": "GET", "path": "/x", "params": { "a": {} } }),
            json!({ "method": "GET", "path": "/x", "body": {} }),
            json!({ "method": "POST", "path": "/x", "body": "x".repeat(MAX_BODY_BYTES) }),
        ] {
            assert!(
                matches!(parse(arguments.clone()), Err(ToolRefusal::Arguments(_))),
                "{arguments:.80}"
            );
        }
        for arguments in [
            json!({ "method": "GET", "path": "/x", "params": { "sudo": "root" } }),
            json!({ "method": "POST", "path": "/x", "body": { "sudo": "root" } }),
        ] {
            assert!(matches!(parse(arguments.clone()), Err(ToolRefusal::Scope(_))), "{arguments}");
        }
    }

    #[test]
    fn query_values_are_percent_encoded() {
        let call = parse(json!({
            "method": "POST", "path": "/x/a b", "params": { "q&x": "1 = 2#", "n": [1, true] }, "body": null,
        }));
        assert_eq!(call.unwrap().target(), "/x/a%20b?q%26x=1%20%3D%202%23&n=1&n=true");
    }

    #[test]
    fn values_are_found_however_deep_they_stand() {
        let call = parse(json!({
            "method": "POST", "path": "/x", "params": { "to[]": 1 }, "body": [{ "a": { "to": { "to": 2 } } }],
        }));
        assert_eq!(call.unwrap().given(&["to"]), [json!("1"), json!({ "to": 2 }), json!(2)]);
    }
}
