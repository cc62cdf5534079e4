//! LineReader of bounded length from a byte stream.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// How many bytes are asked for at once.
const READ_BYTES: usize = 64 * 1024;

/// Above this, the memory of a large line is given back before the next one is read.
const KEEP_BYTES: usize = 1024 * 1024;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    /// A line without its end.
    Whole(Vec<u8>),
    /// A line above the limit; all of it has been read and dropped.
    TooLong,
    /// The end of the stream. A last line without an end counts as a line before it.
    End,
}

/// Reads lines. Every method may be dropped while it waits: nothing that was read is lost.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    reader: BufReader<R>,
    limit: usize,
    partial: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `limit` bytes.
    pub(super) fn new(reader: R, limit: usize) -> Self {
        let reader = BufReader::with_capacity(READ_BYTES, reader);
        Self { reader, limit, partial: Vec::new(), too_long: false }
    }

    /// Returns the next line that is not empty.
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

    /// Takes what has been collected as a line; `None` if that is empty.
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
