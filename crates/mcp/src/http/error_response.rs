//! Answers that are not results: refusals with a status and a JSON-RPC error that says why.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use rmcp::{ErrorData, model::RequestId};

use crate::json_rpc::{self, MessageError};

/// The media type of plain replies.
pub(crate) const JSON: &str = "application/json";

/// The header that names a session.
pub(crate) const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// The header that names the protocol's revision.
pub(crate) const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The header that names the last event a client has seen.
pub(crate) const LAST_EVENT_HEADER: HeaderName = HeaderName::from_static("last-event-id");

/// An answer that stops a request on its way.
#[derive(Debug)]
pub(crate) struct ErrorResponse(Box<Response>);

impl From<Response> for ErrorResponse {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl From<ErrorResponse> for Response {
    fn from(refused: ErrorResponse) -> Self {
        *refused.0
    }
}

impl From<MessageError> for ErrorResponse {
    fn from(malformed: MessageError) -> Self {
        let (identifier, error) = match malformed {
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
        refusal(StatusCode::BAD_REQUEST, identifier, error).into()
    }
}

/// A reply with a status and no body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A reply with a JSON body.
pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// A refusal: the status for the transport, the error for the program that asked.
pub(crate) fn refusal(
    status: StatusCode,
    identifier: Option<RequestId>,
    error: ErrorData,
) -> Response {
    json(status, json_rpc::error_bytes(identifier, error))
}

/// A refusal that concerns the request as a whole.
pub(crate) fn invalid(status: StatusCode, message: impl Into<String>) -> Response {
    refusal(status, None, ErrorData::invalid_request(message.into(), None))
}

/// A refusal for now.
pub(crate) fn try_again(identifier: RequestId, message: &'static str) -> Response {
    let error = json_rpc::overloaded(message);
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, Some(identifier), error);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The answer to a method that the endpoint does not have.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Response {
    let message = format!("use one of {allowed}");
    let mut response = invalid(StatusCode::METHOD_NOT_ALLOWED, message);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The answer to a session that is not or not any more. Clients then begin anew.
pub(crate) fn no_session() -> Response {
    invalid(StatusCode::NOT_FOUND, "no such session: send initialize again")
}
