//! Server-sent events: frames, comments and the response that carries them.
//!
//! Frames are encoded from data that is one line, as JSON text always is. The format would allow
//! several `data:` lines for one event, but no sender here has a reason to use them.

use std::fmt::{Display, Write as _};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;

/// The media type of event streams.
pub const EVENT_STREAM: &str = "text/event-stream";

/// An empty comment. Clients skip comments; proxies and idle timers see traffic.
pub const KEEP_ALIVE_COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// Encodes one event.
///
/// `id` is the value that a client sends back as `Last-Event-ID`; `event` is the type that a browser
/// dispatches on. `data` must not contain a line end: it would end the field and begin another one.
pub fn frame(id: impl Display, event: Option<&str>, data: &[u8]) -> Bytes {
    debug_assert!(!data.contains(&b'\n') && !data.contains(&b'\r'), "data of an event is one line");
    let mut head = String::new();
    writeln!(head, "id: {id}").expect("writing to a string cannot fail");
    if let Some(event) = event {
        writeln!(head, "event: {event}").expect("writing to a string cannot fail");
    }
    head.push_str("data: ");
    let mut frame = Vec::with_capacity(head.len() + data.len() + 2);
    frame.extend_from_slice(head.as_bytes());
    frame.extend_from_slice(data);
    frame.extend_from_slice(b"\n\n");
    frame.into()
}

/// Builds the response for a body of frames. Neither caches nor proxies may hold it back.
pub fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // nginx buffers a proxied response until a page is full, unless this header turns it off.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_ends_with_an_empty_line_and_names_its_type_only_if_it_has_one() {
        assert_eq!(frame(7, Some("log_line"), b"{}"), "id: 7\nevent: log_line\ndata: {}\n\n");
        assert_eq!(frame("3-1", None, b"{}"), "id: 3-1\ndata: {}\n\n");
    }
}
