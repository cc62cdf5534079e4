//! Responses that are not results of a call: an HTTP status with a JSON-RPC error in the body.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use rmcp::{ErrorData, model::RequestId};

use crate::json_rpc::{self, MessageError};

pub(crate) const JSON: &str = "application/json";

pub(crate) const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

pub(crate) const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");

pub(crate) const LAST_EVENT_HEADER: HeaderName = HeaderName::from_static("last-event-id");

/// A response that ends the handling of a request early, carried as the `Err` of a check.
#[derive(Debug)]
pub(crate) struct ErrorResponse(Box<Response>);

pub(crate) type Result<T, E = ErrorResponse> = std::result::Result<T, E>;

impl From<Response> for ErrorResponse {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl From<ErrorResponse> for Response {
    fn from(error: ErrorResponse) -> Self {
        *error.0
    }
}

impl From<MessageError> for ErrorResponse {
    fn from(message_error: MessageError) -> Self {
        let (identifier, data) = match message_error {
            MessageError::Syntax(reason) => {
                (None, ErrorData::parse_error(format!("not JSON: {reason}"), None))
            }
            MessageError::Shape(identifier, reason) => {
                (identifier, ErrorData::invalid_request(reason, None))
            }
            MessageError::UnknownNotification => {
                (None, ErrorData::invalid_request("not a known message", None))
            }
        };
        error(StatusCode::BAD_REQUEST, identifier, data).into()
    }
}

pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// Builds an error response: the status for HTTP, the error for the JSON-RPC client.
pub(crate) fn error(
    status: StatusCode,
    identifier: Option<RequestId>,
    error: ErrorData,
) -> Response {
    json(status, json_rpc::error_bytes(identifier, error))
}

/// Builds an error response that names no request id, since the request was not parsed.
pub(crate) fn invalid_request(status: StatusCode, message: impl Into<String>) -> Response {
    error(status, None, ErrorData::invalid_request(message.into(), None))
}

/// Builds the same as the end of a check.
pub(crate) fn reject(status: StatusCode, message: &str) -> ErrorResponse {
    invalid_request(status, message).into()
}

/// Builds a 503 with `Retry-After`.
pub(crate) fn overloaded(identifier: RequestId, message: &'static str) -> Response {
    let overloaded = json_rpc::overloaded(message);
    let mut response = error(StatusCode::SERVICE_UNAVAILABLE, Some(identifier), overloaded);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

pub(crate) fn method_not_allowed(allowed: &'static str) -> Response {
    let message = format!("use one of {allowed}");
    let mut response = invalid_request(StatusCode::METHOD_NOT_ALLOWED, message);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Builds the 404 for an unknown or ended session, upon which clients send `initialize` again.
pub(crate) fn session_not_found() -> Response {
    invalid_request(StatusCode::NOT_FOUND, "no such session: send initialize again")
}
