//! GraphQL requests of Carrel, and a reader for those of agents.
//!
//! A GraphQL response has status 200 and an `errors` array even when the request failed; rate limits and
//! rejected credentials are recognised by their error codes, before the status. [`query_partial`] returns
//! data next to errors, [`query`] treats any error as a failure.

pub(crate) mod document;
mod lexer;
mod parser;

pub(crate) use parser::parse;

use hyper::HeaderMap;
use serde_json::{Value, json};

use crate::api::{Api, ApiRequest, ApiResponse, line};
use crate::error::{TrackerError, TrackerErrorKind};
use crate::issue_records::{list, text};

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) data: Value,
    pub(crate) errors: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorCode {
    RateLimited,
    Secret,
    Other,
}

pub(crate) async fn query_partial(
    api: &Api,
    path: &str,
    query: &str,
    variables: Value,
) -> Result<Reply, TrackerError> {
    let body = json!({ "query": query, "variables": variables });
    let response = api.send(ApiRequest::post(path, body)).await?;
    let json = response.json();
    let errors = json.as_ref().map(|json| list(json, "/errors").to_vec()).unwrap_or_default();
    if let Some(error) = special_error(api, &response.headers, &errors) {
        return Err(error);
    }
    if !is_success(&response) {
        return Err(api.refusal(&response, "a query"));
    }
    let mut json = json.ok_or_else(|| api.malformed("JSON"))?;
    let data = json.get_mut("data").map(Value::take).unwrap_or_default();
    Ok(Reply { data, errors })
}

/// Sends a query, and returns its data if there are no errors.
pub(crate) async fn query(
    api: &Api,
    path: &str,
    query: &str,
    variables: Value,
) -> Result<Value, TrackerError> {
    let reply = query_partial(api, path, query, variables).await?;
    match reply.errors.first() {
        None => Ok(reply.data),
        Some(error) => Err(query_error(api, error)),
    }
}

pub(crate) fn query_error(api: &Api, error: &Value) -> TrackerError {
    let json = text(error, "/message").unwrap_or_else(|| "no reason".to_owned());
    let message = format!("{} rejected a query: {}", api.provider(), line(&json));
    TrackerError::new(TrackerErrorKind::Response, api.redact(&message))
}

fn is_success(response: &ApiResponse) -> bool {
    (200..300).contains(&response.status)
}

fn special_error(api: &Api, headers: &HeaderMap, errors: &[Value]) -> Option<TrackerError> {
    let codes: Vec<ErrorCode> = errors.iter().map(error_code).collect();
    if codes.contains(&ErrorCode::RateLimited) {
        return Some(api.rate_limited(headers));
    }
    let secret = codes.contains(&ErrorCode::Secret);
    secret.then(|| {
        let message = format!("{} rejects the secret", api.provider());
        TrackerError::new(TrackerErrorKind::Secret, message)
    })
}

fn error_code(error: &Value) -> ErrorCode {
    let code = text(error, "/extensions/code").or_else(|| text(error, "/type")).unwrap_or_default();
    match code.to_ascii_uppercase().as_str() {
        "RATELIMITED" | "RATE_LIMITED" | "RATE_LIMIT" => ErrorCode::RateLimited,
        "AUTHENTICATION_ERROR" | "UNAUTHENTICATED" => ErrorCode::Secret,
        _ => ErrorCode::Other,
    }
}
