//! Responses: JSON values, bytes and the error envelope.
//!
//! Errors of every layer implement `Coded`; here the code becomes a status, and the error an envelope with
//! code, message and detail. An internal error is logged with its causes, and the client gets a message that
//! reveals nothing.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use carrel_domain::{Code, Coded, ErrorEnvelope};
use carrel_service::{InvalidRequest, ServiceError};
use carrel_tools::{Failure, ToolResponse, Violation};
use serde::Serialize;
use serde_json::{Value, json};
use tracing::error;

use crate::auth::RetryAfter;

/// `Retry-After` of an overload whose end is not known, in seconds.
const RETRY_SECONDS: u64 = 1;

#[derive(Debug)]
pub(crate) struct ErrorResponse {
    code: Code,
    envelope: Value,
    retry_after: Option<u64>,
    /// Set if another part has recorded the refusal: the registry of tools, or a worker.
    audited: bool,
}

/// Returns `true` for failures of the server that have to be logged here. The store logs its own, and a full
/// quota or a missing setting is not a failure.
fn is_our_failure(code: Code) -> bool {
    let reported = [Code::StoreUnavailable, Code::QuotaExceeded, Code::NotConfigured];
    code.status() >= 500 && !reported.contains(&code)
}

pub(crate) type Result<T, E = ErrorResponse> = std::result::Result<T, E>;

pub(crate) type RouteResult = Result<Response>;

impl ErrorResponse {
    pub(crate) fn new(code: Code, message: impl Into<String>, detail: Value) -> Self {
        let retry_after = match code.status() {
            429 | 503 => Some(RETRY_SECONDS),
            _ => None,
        };
        let envelope = json!(ErrorEnvelope::new(code, message, detail));
        Self { code, envelope, retry_after, audited: false }
    }

    /// Returns an error without facts.
    pub(crate) fn plain(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, message, json!({}))
    }

    /// Returns the error whose cause is for the log alone.
    pub(crate) fn internal() -> Self {
        Self::plain(Code::Internal, "the server could not do this")
    }

    pub(crate) fn body_timeout() -> Self {
        Self::plain(Code::Timeout, "the body did not arrive in time")
    }

    fn of(error: &impl Coded) -> Self {
        let code = error.code();
        if is_our_failure(code) {
            error!(error = %carrel_domain::message_of(error), "a request failed");
        }
        if code == Code::Internal {
            return Self::internal();
        }
        Self::new(code, carrel_domain::message_of(error), error.detail())
    }

    /// Returns the error for an invalid field. `rule` completes a sentence that begins with the field.
    pub(crate) fn field(field: &str, rule: impl AsRef<str>) -> Self {
        ServiceError::Invalid(InvalidRequest::new(field, rule.as_ref())).into()
    }

    pub(crate) fn of_failure(failure: Failure) -> Self {
        Self::new(failure.code, failure.message, failure.detail)
    }

    /// Returns the error of a tool call, with the envelope that the tool made.
    pub(crate) fn of_tool(answer: &ToolResponse) -> Self {
        let name = answer.structured["error"]["code"].as_str().unwrap_or_default();
        let code = Code::named(name);
        let retry_after = (code == Some(Code::TooManyJobs)).then_some(RETRY_SECONDS);
        let code = code.unwrap_or(Code::Internal);
        Self { code, envelope: answer.structured.clone(), retry_after, audited: true }
    }

    pub(crate) fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(crate) fn passed_on(envelope: Value) -> Self {
        let name = envelope["error"]["code"].as_str().unwrap_or_default();
        match Code::named(name) {
            Some(code) => Self { code, envelope, retry_after: None, audited: true },
            None => Self::plain(Code::WorkerUnreachable, "a worker answers strangely"),
        }
    }

    pub(crate) fn body(&self) -> &Value {
        &self.envelope
    }

    /// Returns the violation that is still to be recorded, if the error is one.
    pub(crate) fn violation(&self) -> Option<Violation> {
        let detail = || self.envelope["error"]["detail"].clone();
        if self.audited { None } else { Violation::of_code(self.code, detail()) }
    }

    /// Hands the violation to the middleware that records it.
    pub(crate) fn mark(&self, response: &mut Response) {
        if let Some(violation) = self.violation() {
            response.extensions_mut().insert(violation);
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let mut response = json_response(self.status(), &self.envelope);
        self.mark(&mut response);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl<E: Coded> From<E> for ErrorResponse {
    fn from(error: E) -> Self {
        Self::of(&error)
    }
}

impl From<RetryAfter> for ErrorResponse {
    fn from(wait: RetryAfter) -> Self {
        let message = "the rate limit of the workspace is used up";
        Self::plain(Code::Overloaded, message).after(wait.seconds())
    }
}

pub(crate) fn json_response(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => bytes_response(status, "application/json", bytes),
        Err(error) => {
            error!(%error, "could not encode an answer");
            bytes_response(StatusCode::INTERNAL_SERVER_ERROR, "application/json", Vec::new())
        }
    }
}

pub(crate) fn ok(value: &impl Serialize) -> Response {
    json_response(StatusCode::OK, value)
}

/// Returns a response that must not be cached or sniffed.
pub(crate) fn bytes_response(
    status: StatusCode,
    kind: &'static str,
    bytes: impl Into<Body>,
) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
