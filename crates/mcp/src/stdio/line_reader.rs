//! Lines of bounded length from a byte stream.
//!
//! A line past the limit is read to its end and dropped, so that one oversized message costs its sender an
//! error and not the session. Reading is cancel-safe: bytes stay in the reader until a line is complete.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

const READ_BYTES: usize = 64 * 1024;

/// A buffer that grew beyond this for one line is not reserved again for the next.
const KEEP_BYTES: usize = 1024 * 1024;

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    /// A line without its line end.
    Whole(Vec<u8>),
    /// A line past the limit, which was read and dropped.
    TooLong,
    /// The end of the stream; a last line without a line end comes before it.
    End,
}

/// Reads lines of at most `limit` bytes.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    reader: BufReader<R>,
    limit: usize,
    partial: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        let reader = BufReader::with_capacity(READ_BYTES, reader);
        Self { reader, limit, partial: Vec::new(), too_long: false }
    }

    /// Returns the next line that is not empty. Cancel-safe.
    pub(super) async fn next(&mut self) -> io::Result<InputLine> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(self.finish().unwrap_or(InputLine::End));
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = &available[..end.unwrap_or(available.len())];
            if self.too_long || self.partial.len() + taken.len() > self.limit {
                self.too_long = true;
                self.partial = Vec::new();
            } else {
                self.partial.extend_from_slice(taken);
            }
            let consumed = taken.len() + usize::from(end.is_some());
            self.reader.consume(consumed);
            if end.is_some()
                && let Some(line) = self.finish()
            {
                return Ok(line);
            }
        }
    }

    /// Completes the collected line; `None` if it is empty.
    fn finish(&mut self) -> Option<InputLine> {
        if std::mem::take(&mut self.too_long) {
            return Some(InputLine::TooLong);
        }
        let mut line = std::mem::take(&mut self.partial);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.len() < KEEP_BYTES {
            self.partial.reserve(line.len());
        }
        (!line.is_empty()).then_some(InputLine::Whole(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &'static [u8], limit: usize) -> Vec<InputLine> {
        let mut lines = LineReader::new(text, limit);
        let mut read = Vec::new();
        loop {
            match lines.next().await.expect("reading from memory cannot fail") {
                InputLine::End => return read,
                line => read.push(line),
            }
        }
    }

    fn whole(text: &str) -> InputLine {
        InputLine::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn empty_lines_and_carriage_returns_are_dropped() {
        assert_eq!(all(b"\n\r\nab\r\n\nc\n", 10).await, vec![whole("ab"), whole("c")]);
    }

    #[tokio::test]
    async fn a_last_line_without_an_end_is_read() {
        assert_eq!(all(b"ab\ncd", 10).await, vec![whole("ab"), whole("cd")]);
    }

    #[tokio::test]
    async fn a_line_above_the_limit_does_not_hide_the_next() {
        let lines = all(b"12345\n1234\n123456789\nx\n", 4).await;
        assert_eq!(lines, vec![InputLine::TooLong, whole("1234"), InputLine::TooLong, whole("x")]);
    }
}
