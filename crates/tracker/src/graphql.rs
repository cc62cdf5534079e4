//! Questions in GraphQL.

pub(crate) mod document;
mod lexer;
mod parser;

pub(crate) use parser::parse;

use hyper::HeaderMap;
use serde_json::{Value, json};

use crate::api::{Api, ApiRequest, ApiResponse, line};
use crate::error::{TrackerError, TrackerErrorKind};
use crate::issue_records::{list, text};

/// What was answered to a question.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) data: Value,
    pub(crate) errors: Vec<Value>,
}

/// What is wrong, as far as it makes a difference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Complaint {
    Limit,
    Secret,
    Other,
}

/// Asks, and returns what is answered even if something is wrong with a part of it.
pub(crate) async fn ask(
    api: &Api,
    path: &str,
    query: &str,
    variables: Value,
) -> Result<Reply, TrackerError> {
    let body = json!({ "query": query, "variables": variables });
    let answer = api.send(ApiRequest::post(path, body)).await?;
    let told = answer.json();
    let errors = told.as_ref().map(|told| list(told, "/errors").to_vec()).unwrap_or_default();
    if let Some(fault) = complaint(api, &answer.headers, &errors) {
        return Err(fault);
    }
    if !is_success(&answer) {
        return Err(api.refusal(&answer, "a question"));
    }
    let mut told = told.ok_or_else(|| api.strange("JSON"))?;
    let data = told.get_mut("data").map(Value::take).unwrap_or_default();
    Ok(Reply { data, errors })
}

/// Asks, and returns what is answered if nothing is wrong with it.
pub(crate) async fn ask_whole(
    api: &Api,
    path: &str,
    query: &str,
    variables: Value,
) -> Result<Value, TrackerError> {
    let reply = ask(api, path, query, variables).await?;
    match reply.errors.first() {
        None => Ok(reply.data),
        Some(error) => Err(refused(api, error)),
    }
}

/// Says that a question was refused.
pub(crate) fn refused(api: &Api, error: &Value) -> TrackerError {
    let told = text(error, "/message").unwrap_or_else(|| "no reason".to_owned());
    let message = format!("{} refused a question: {}", api.provider(), line(&told));
    TrackerError::new(TrackerErrorKind::Response, api.mask(&message))
}

fn is_success(answer: &ApiResponse) -> bool {
    (200..300).contains(&answer.status)
}

fn complaint(api: &Api, headers: &HeaderMap, errors: &[Value]) -> Option<TrackerError> {
    let complaints: Vec<Complaint> = errors.iter().map(kind).collect();
    if complaints.contains(&Complaint::Limit) {
        return Some(api.limited(headers));
    }
    let secret = complaints.contains(&Complaint::Secret);
    secret.then(|| {
        let message = format!("{} does not take the secret", api.provider());
        TrackerError::new(TrackerErrorKind::Secret, message)
    })
}

fn kind(error: &Value) -> Complaint {
    let code = text(error, "/extensions/code").or_else(|| text(error, "/type")).unwrap_or_default();
    match code.to_ascii_uppercase().as_str() {
        "RATELIMITED" | "RATE_LIMITED" | "RATE_LIMIT" => Complaint::Limit,
        "AUTHENTICATION_ERROR" | "UNAUTHENTICATED" => Complaint::Secret,
        _ => Complaint::Other,
    }
}
