//! Bodies of requests and answers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use carrel_domain::ByteSize;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};

use crate::http_client::SendError;

/// Why a body cannot be sent on.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Returns a body without anything in it.
pub fn empty_body() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Returns a body that is all there.
pub fn full_body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Reads a body to its end, if it is not longer than this and does not pause for longer than that.
pub async fn read_all(
    body: &mut hyper::body::Incoming,
    limit: ByteSize,
    pause: Duration,
) -> Result<Bytes, SendError> {
    let mut bytes = BytesMut::new();
    while let Some(piece) = next_piece(body, pause).await? {
        if (bytes.len() + piece.len()) as u64 > limit.as_u64() {
            return Err(SendError::TooLarge { limit });
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

/// Returns the next piece of a body.
pub(crate) async fn next_piece(
    body: &mut hyper::body::Incoming,
    pause: Duration,
) -> Result<Option<Bytes>, SendError> {
    loop {
        let frame = tokio::time::timeout(pause, body.frame()).await;
        match frame.map_err(|_| SendError::Timeout { within: pause })? {
            None => return Ok(None),
            Some(Err(source)) => return Err(SendError::Interrupted(Box::new(source))),
            // What is no data are trailers, which nobody here reads.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
