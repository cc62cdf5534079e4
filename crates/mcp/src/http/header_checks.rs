//! Checks of the protocol version, content type and accepted types of a request.

use axum::http::{HeaderMap, StatusCode, header};
use carrel_http::sse::EVENT_STREAM;

use super::{
    envelope,
    error_response::{self, JSON, Result},
};

/// Rejects a protocol version that neither the SDK nor this server knows.
pub(crate) fn check_version(headers: &HeaderMap) -> Result<()> {
    if envelope::is_unknown(headers) {
        let message = "MCP-Protocol-Version names a revision that this server does not support";
        return Err(error_response::reject(StatusCode::BAD_REQUEST, message));
    }
    Ok(())
}

/// Rejects a message that is not declared as JSON, or whose client does not accept both forms of a reply.
pub(crate) fn check_message(headers: &HeaderMap) -> Result<()> {
    let content = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content.and_then(|content| content.split(';').next()).map(str::trim);
    if !essence.is_some_and(|essence| essence.eq_ignore_ascii_case(JSON)) {
        let message = "Content-Type must be application/json";
        return Err(error_response::reject(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    if !(accepts(headers, JSON) && accepts(headers, EVENT_STREAM)) {
        let message = "the client must accept application/json and text/event-stream";
        return Err(error_response::reject(StatusCode::NOT_ACCEPTABLE, message));
    }
    Ok(())
}

/// Rejects a `GET` whose client does not accept event streams.
pub(crate) fn check_listener(headers: &HeaderMap) -> Result<()> {
    if !accepts(headers, EVENT_STREAM) {
        let message = "the client must accept text/event-stream";
        return Err(error_response::reject(StatusCode::NOT_ACCEPTABLE, message));
    }
    Ok(())
}

/// Returns whether a client accepts a media type, by name or by `*/*`. Partial wildcards do not count: the
/// protocol demands that both types are listed.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let essence = range.split(';').next().unwrap_or_default().trim();
        essence == "*/*" || essence.eq_ignore_ascii_case(wanted)
    })
}
