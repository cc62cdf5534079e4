//! Tools that send a REST request for an agent, confined to the configured project.
//!
//! The agent's path is split into segments, each decoded once and checked by itself, and the path that is
//! sent is encoded again from those segments. So the path that was checked is the path that is sent, and
//! no spelling of it (`..`, `%2f`, double encoding) leads elsewhere. Query values that would act under another
//! name or override the method are refused.

mod path;

use carrel_client::percent_encode;
use hyper::Method;
use serde_json::{Map, Value, json};

use crate::api::{Api, ApiRequest, ApiResponse};
use crate::error::{Result, whole_seconds};
use crate::rate_limit;
use crate::tool::{Tool, ToolRefusal, ToolReply, is_listed};

/// The size of a response body that an agent receives; a longer one is truncated.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

/// The size of a request body; larger attachments have no use in an issue.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Values of a query, which bounds the length of the URL.
const MAX_VALUES: usize = 64;

/// Query values and members that act under another identity or override the method.
const FORBIDDEN_VALUES: &[&str] =
    &["sudo", "private_token", "access_token", "job_token", "_method"];

#[derive(Debug)]
pub(crate) struct RequestShape<'a> {
    pub(crate) methods: &'static [&'static str],
    pub(crate) query: &'static str,
    /// The only segment that may contain a slash, such as GitLab's project path.
    pub(crate) slashed: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiCall {
    pub(crate) method: Method,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
}

impl ApiCall {
    /// Parses the arguments of a tool. `fill` returns the values of placeholders in the path.
    pub(crate) fn parse(
        arguments: Value,
        shape: &RequestShape<'_>,
        fill: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ToolRefusal> {
        let Value::Object(mut json) = arguments else {
            return ToolRefusal::arguments("the arguments are not an object");
        };
        let method = method(json.remove("method").as_ref(), shape.methods)?;
        let Some(Value::String(path)) = json.remove("path") else {
            return ToolRefusal::arguments("`path` is missing; it is a string that begins with /");
        };
        let path = path::segments(&path, shape.slashed, fill)?;
        let query = values(json.remove(shape.query), shape.query)?;
        let body = json.remove("body").filter(|body| !body.is_null());
        if let Some(name) = json.keys().next() {
            let known = format!("method, path, {} and body", shape.query);
            return ToolRefusal::arguments(format!("unknown argument {name:?}; known are {known}"));
        }
        if let Some(body) = &body {
            check_length(body)?;
            if method == Method::GET {
                let message = format!("GET has no body; use `{}`", shape.query);
                return ToolRefusal::arguments(message);
            }
            body.as_object().map_or(Ok(()), reject_forbidden)?;
        }
        Ok(Self { method, path, query, body })
    }

    /// Returns the call if its first segment below the project is readable, or writable for a write.
    pub(crate) fn within(
        self,
        project: &str,
        first: Option<&&str>,
        readable: &str,
        writable: &str,
    ) -> Result<Self, ToolRefusal> {
        let allowed = if self.is_read() { readable } else { writable };
        if first.map_or(self.is_read(), |first| is_listed(first, allowed)) {
            return Ok(self);
        }
        let method = &self.method;
        ToolRefusal::scope(format!("{method} goes below the {project} to one of {allowed}"))
    }

    pub(crate) fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// Returns the segments of the path for pattern matching.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Returns every value of the named members in query and body, at any depth.
    pub(crate) fn values_of(&self, names: &[&str]) -> Vec<Value> {
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

pub(crate) fn check_length(body: &Value) -> Result<(), ToolRefusal> {
    if body.to_string().len() > MAX_BODY_BYTES {
        return ToolRefusal::arguments(format!("the body has more than {MAX_BODY_BYTES} bytes"));
    }
    Ok(())
}

fn reject_forbidden(fields: &Map<String, Value>) -> Result<(), ToolRefusal> {
    match fields.keys().find(|name| FORBIDDEN_VALUES.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => ToolRefusal::scope(format!(
            "`{name}` is not allowed: requests use the tracker's own credential"
        )),
    }
}

fn method(json: Option<&Value>, methods: &[&str]) -> Result<Method, ToolRefusal> {
    let name = json.and_then(Value::as_str).map(|text| text.trim().to_ascii_uppercase());
    let known = name.filter(|name| methods.contains(&name.as_str()));
    let parsed = known.and_then(|name| Method::from_bytes(name.as_bytes()).ok());
    let rule = || ToolRefusal::Arguments(format!("`method` is one of {}", methods.join(", ")));
    parsed.ok_or_else(rule)
}

fn values(json: Option<Value>, field: &str) -> Result<Vec<(String, String)>, ToolRefusal> {
    let fields = match json {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(fields)) => fields,
        Some(_) => return ToolRefusal::arguments(format!("`{field}` is not an object")),
    };
    reject_forbidden(&fields)?;
    let mut values = Vec::new();
    for (name, value) in fields {
        let several = if let Value::Array(several) = value { several } else { vec![value] };
        for value in several {
            let text = match value {
                Value::String(text) => text,
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                _ => {
                    let rule = "is not a string, a number or a boolean";
                    return ToolRefusal::arguments(format!("`{field}.{name}` {rule}"));
                }
            };
            values.push((name.clone(), text));
        }
    }
    if values.len() > MAX_VALUES {
        return ToolRefusal::arguments(format!("`{field}` has too many values"));
    }
    Ok(values)
}

/// Sends a checked request, and returns the reply for the agent.
pub(crate) async fn send(api: &Api, call: &ApiCall) -> ToolReply {
    let path = call.target();
    let ask = ApiRequest { method: call.method.clone(), path, body: call.body.clone(), etag: None };
    match api.send(ask).await {
        Ok(response) => {
            let reply = reply(api, &response);
            ToolReply { changed: reply.success && !call.is_read(), ..reply }
        }
        Err(error) => ToolRefusal::from(error).into(),
    }
}

/// Converts a response into the reply for the agent, as one that changed nothing. A rate limit is recorded for all requests.
pub(crate) fn reply(api: &Api, response: &ApiResponse) -> ToolReply {
    let mut json = json!({ "status": response.status, "body": body(response) });
    if rate_limit::is_limit(response.status, &response.headers, &json["body"].to_string()) {
        let wait = api.rate_limited(&response.headers).retry_after;
        json["retryAfterSeconds"] = json!(wait.map(whole_seconds));
    }
    let output = serde_json::to_string_pretty(&json).expect("JSON can be written");
    let success = response.is_success();
    ToolReply { success, changed: false, output: api.redact(&output) }
}

/// Returns the body as JSON, truncated to [`MAX_OUTPUT_BYTES`].
fn body(response: &ApiResponse) -> Value {
    if response.body.is_empty() {
        return Value::Null;
    }
    let text = || String::from_utf8_lossy(&response.body).into_owned();
    if response.body.len() <= MAX_OUTPUT_BYTES {
        return response.json().unwrap_or_else(|| Value::String(text()));
    }
    let text = text();
    let end = text.floor_char_boundary(MAX_OUTPUT_BYTES);
    json!({ "truncated": true, "bytes": response.body.len(), "beginning": text[..end] })
}

pub(crate) fn tool(name: &str, description: String, shape: &RequestShape<'_>) -> Tool {
    let mut properties = json!({
        "method": { "type": "string", "enum": shape.methods },
        "path": { "type": "string", "description": "Begins with /, without a query." },
    });
    properties[shape.query] = json!({
        "type": "object",
        "description": "Query values.",
        "additionalProperties": true,
    });
    properties["body"] = json!({ "description": "The JSON body." });
    Tool::new(name, description, &properties, &["method", "path"])
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
    fn invalid_arguments_are_refused() {
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
    fn values_are_found_at_any_depth() {
        let call = parse(json!({
            "method": "POST", "path": "/x", "params": { "to[]": 1 }, "body": [{ "a": { "to": { "to": 2 } } }],
        }));
        assert_eq!(call.unwrap().values_of(&["to"]), [json!("1"), json!({ "to": 2 }), json!(2)]);
    }
}
