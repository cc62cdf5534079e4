//! Request and response bodies.
//!
//! A body is boxed so that requests with a buffered, a streamed and no body have one type. Reading is bounded
//! twice: by size, and by the pause between two chunks, so that a server that stalls in the middle of a
//! response is given up.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use carrel_domain::ByteSize;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};

use crate::http_client::SendError;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request: empty, buffered or streamed.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Returns a body of length 0.
pub fn empty_body() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Returns a body that is in memory, with its length known.
pub fn full_body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Reads a body to its end.
///
/// Fails with [`SendError::TooLarge`] above `limit` bytes, and with [`SendError::Timeout`] if no chunk
/// arrives for `pause`.
pub async fn read_all(
    body: &mut hyper::body::Incoming,
    limit: ByteSize,
    pause: Duration,
) -> Result<Bytes, SendError> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = next_chunk(body, pause).await? {
        if (bytes.len() + chunk.len()) as u64 > limit.as_u64() {
            return Err(SendError::TooLarge { limit });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

/// Returns the next chunk, or `None` at the end of the body.
pub(crate) async fn next_chunk(
    body: &mut hyper::body::Incoming,
    pause: Duration,
) -> Result<Option<Bytes>, SendError> {
    loop {
        let frame = tokio::time::timeout(pause, body.frame()).await;
        match frame.map_err(|_| SendError::Timeout { within: pause })? {
            None => return Ok(None),
            Some(Err(source)) => return Err(SendError::Interrupted(Box::new(source))),
            // A frame without data holds trailers, which are not used.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
