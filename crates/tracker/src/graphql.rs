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

use crate::api::{Api, ApiRequest, line};
use crate::error::{Result, TrackerError, TrackerErrorKind};
use crate::issue_records::{list, text};

/// Error codes of rate limits, and of credentials that the tracker rejects.
const RATE_LIMITED: &[&str] = &["RATELIMITED", "RATE_LIMITED", "RATE_LIMIT"];
const UNAUTHENTICATED: &[&str] = &["AUTHENTICATION_ERROR", "UNAUTHENTICATED"];

/// Sends a query, and returns its data and its errors.
pub(crate) async fn query_partial(
    api: &Api,
    query: &str,
    variables: Value,
) -> Result<(Value, Vec<Value>)> {
    let body = json!({ "query": query, "variables": variables });
    let response = api.send(ApiRequest::post("", body)).await?;
    let json = response.json();
    let errors = json.as_ref().map(|json| list(json, "/errors").to_vec()).unwrap_or_default();
    if let Some(error) = special_error(api, &response.headers, &errors) {
        return Err(error);
    }
    if !response.is_success() {
        return Err(api.refusal(&response, "a query"));
    }
    let mut json = json.ok_or_else(|| api.malformed("JSON"))?;
    Ok((json.get_mut("data").map(Value::take).unwrap_or_default(), errors))
}

/// Sends a query, and returns its data if there are no errors.
pub(crate) async fn query(api: &Api, query: &str, variables: Value) -> Result<Value> {
    let (data, errors) = query_partial(api, query, variables).await?;
    errors.first().map_or(Ok(data), |error| Err(query_error(api, error)))
}

pub(crate) fn query_error(api: &Api, error: &Value) -> TrackerError {
    let json = text(error, "/message").unwrap_or_else(|| "no reason".to_owned());
    let message = format!("{} rejected a query: {}", api.provider, line(&json));
    TrackerError::new(TrackerErrorKind::Response, api.redact(&message))
}

fn special_error(api: &Api, headers: &HeaderMap, errors: &[Value]) -> Option<TrackerError> {
    let code = |error| text(error, "/extensions/code").or_else(|| text(error, "/type"));
    let codes: Vec<String> =
        errors.iter().filter_map(code).map(|code| code.to_ascii_uppercase()).collect();
    let any_of = |known: &[&str]| codes.iter().any(|code| known.contains(&code.as_str()));
    if any_of(RATE_LIMITED) {
        return Some(api.rate_limited(headers));
    }
    any_of(UNAUTHENTICATED).then(|| {
        let message = format!("{} rejects the secret", api.provider);
        TrackerError::new(TrackerErrorKind::Secret, message)
    })
}
