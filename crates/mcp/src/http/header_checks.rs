//! What a request says about itself in its headers.

use axum::http::{HeaderMap, StatusCode, header};
use carrel_http::sse::EVENT_STREAM;

use super::{
    envelope,
    error_response::{self, ErrorResponse, JSON},
};

/// Refuses a revision that nobody knows.
pub(crate) fn check_version(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    if envelope::is_unknown(headers) {
        let message = "MCP-Protocol-Version names a revision this server does not know";
        return Err(error_response::invalid(StatusCode::BAD_REQUEST, message).into());
    }
    Ok(())
}

/// Refuses a message that is not JSON by its own account, or whose reply could not be read.
pub(crate) fn check_message(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let content = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content.and_then(|content| content.split(';').next()).map(str::trim);
    if !essence.is_some_and(|essence| essence.eq_ignore_ascii_case(JSON)) {
        let message = "Content-Type must be application/json";
        return Err(error_response::invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).into());
    }
    if !(accepts(headers, JSON) && accepts(headers, EVENT_STREAM)) {
        let message = "the client must accept application/json and text/event-stream";
        return Err(error_response::invalid(StatusCode::NOT_ACCEPTABLE, message).into());
    }
    Ok(())
}

/// Refuses a client that cannot read a stream.
pub(crate) fn check_listener(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    if !accepts(headers, EVENT_STREAM) {
        let message = "the client must accept text/event-stream";
        return Err(error_response::invalid(StatusCode::NOT_ACCEPTABLE, message).into());
    }
    Ok(())
}

/// Whether a media type is among those a client accepts, by name or by `*/*`.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let essence = range.split(';').next().unwrap_or_default().trim();
        essence == "*/*" || essence.eq_ignore_ascii_case(wanted)
    })
}
