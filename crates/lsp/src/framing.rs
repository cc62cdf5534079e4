//! Messages on a byte stream: header lines, an empty line, and a body of `Content-Length` bytes.
//!
//! A server is a stranger: header and body are bounded, and a length alone allocates nothing. Lines above a header
//! that are no header, such as a greeting on stdout, are skipped as part of it.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};

/// Bounds the lines above a body, greetings included.
pub(crate) const MAX_HEADER_BYTES: u64 = 16 << 10;

/// Bounds one message: references to a common name of a large project, with room.
pub(crate) const MAX_BODY_BYTES: u64 = 64 << 20;

/// The only header that matters. Bodies are UTF-8, with or without a `Content-Type`.
const LENGTH_HEADER: &str = "content-length";

/// Why no further message can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("its output ended")]
    Ended,
    #[error("its output ended in the middle of a message")]
    Torn,
    #[error("it wrote {MAX_HEADER_BYTES} bytes without the header of a message")]
    NoHeader,
    #[error("it wrote a message without Content-Length")]
    NoLength,
    #[error("it wrote a message of {length} bytes, and {MAX_BODY_BYTES} are allowed")]
    TooLarge { length: u64 },
    #[error("could not read its output: {0}")]
    Io(#[from] io::Error),
}

/// Reads messages from a stream.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    stream: BufReader<R>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// Returns the body of the next message. Not cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, FrameError> {
        let length = self.header().await?;
        if length > MAX_BODY_BYTES {
            return Err(FrameError::TooLarge { length });
        }
        let mut body = Vec::new();
        let read = (&mut self.stream).take(length).read_to_end(&mut body).await?;
        if (read as u64) < length { Err(FrameError::Torn) } else { Ok(body) }
    }

    async fn header(&mut self) -> Result<u64, FrameError> {
        let mut left = MAX_HEADER_BYTES;
        let mut length = None;
        loop {
            let mut line = Vec::new();
            let read = (&mut self.stream).take(left).read_until(b'\n', &mut line).await? as u64;
            let is_first = left == MAX_HEADER_BYTES;
            left -= read;
            match line.last() {
                Some(b'\n') => {}
                Some(_) | None if left == 0 => return Err(FrameError::NoHeader),
                None if is_first => return Err(FrameError::Ended),
                Some(_) | None => return Err(FrameError::Torn),
            }
            let line = String::from_utf8_lossy(&line);
            match (line.trim().is_empty(), length) {
                (true, Some(length)) => return Ok(length),
                (true, None) if is_first => {}
                (true, None) => return Err(FrameError::NoLength),
                (false, _) => length = length_of(&line).or(length),
            }
        }
    }
}

fn length_of(line: &str) -> Option<u64> {
    let (name, value) = line.split_once(':')?;
    name.trim().eq_ignore_ascii_case(LENGTH_HEADER).then(|| value.trim().parse().ok())?
}

/// Returns a message with its header.
pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
    let mut message = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    message.extend_from_slice(body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    async fn read_all(bytes: &[u8]) -> (Vec<String>, String) {
        let mut reader = FrameReader::new(bytes);
        let mut bodies = Vec::new();
        loop {
            match reader.next().await {
                Ok(body) => bodies.push(String::from_utf8(body).unwrap()),
                Err(error) => return (bodies, error.to_string()),
            }
        }
    }

    #[tokio::test]
    async fn messages_are_read_back_as_they_were_framed() {
        let stream = [frame(b"one"), frame(b""), frame("zw\u{f6}lf".as_bytes())].concat();
        let (bodies, end) = read_all(&stream).await;
        assert_eq!(bodies, ["one", "", "zw\u{f6}lf"]);
        assert_eq!(end, "its output ended");
    }

    #[tokio::test]
    async fn other_headers_and_greetings_are_skipped() {
        let stream =
            b"Starting up\r\nContent-Type: x; charset=utf8\r\ncontent-length:  2 \r\n\r\nab";
        assert_eq!(read_all(stream).await.0, ["ab"]);
    }

    #[tokio::test]
    async fn a_broken_stream_ends_with_its_reason() {
        let long = [b"x".repeat(20_000).as_slice(), b"\n"].concat();
        for (stream, end) in [
            (&b"Content-Length: 5\r\n\r\nabc"[..], "its output ended in the middle of a message"),
            (b"Content-Length: 5", "its output ended in the middle of a message"),
            (b"X: 1\r\n\r\nabc", "it wrote a message without Content-Length"),
            (b"Content-Length: -1\r\n\r\n", "it wrote a message without Content-Length"),
            (&long, "it wrote 16384 bytes without the header of a message"),
            (
                b"Content-Length: 99999999999\r\n\r\n",
                "it wrote a message of 99999999999 bytes, and 67108864 are allowed",
            ),
        ] {
            assert_eq!(read_all(stream).await, (Vec::new(), end.to_owned()));
        }
    }
}
