//! Splits the output of commands into lines for log events, with secrets masked.
//!
//! A line is emitted only when it is complete, because a secret could span two chunks of output and
//! masking each alone would show both halves. Long lines are cut at
//! [`MAX_LINE_BYTES`]; the buffer keeps the length of the longest secret beyond that, so that a secret
//! across the cut is recognised and none of its bytes are emitted.

use carrel_domain::Secret;
use carrel_exec::{Piece, StreamName};

use crate::limits::MAX_LINE_BYTES;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrintedLine {
    pub(crate) stream: StreamName,
    pub(crate) text: String,
}

/// The line splitter of one command, with a buffer for each of its two streams.
#[derive(Debug)]
pub(crate) struct OutputLines {
    secrets: Vec<Secret>,
    /// Bytes of an incomplete line that are buffered: the limit of a line plus the longest secret.
    buffered: usize,
    unfinished: [Unfinished; 2],
    /// Lines that may still be emitted. The last one is replaced by a notice.
    left: usize,
}

#[derive(Debug, Default)]
struct Unfinished {
    bytes: Vec<u8>,
    /// Bytes of the line were dropped.
    truncated: bool,
}

impl OutputLines {
    pub(crate) fn new(secrets: Vec<Secret>, left: usize) -> Self {
        let longest = secrets.iter().map(|secret| secret.expose().len()).max().unwrap_or(0);
        let buffered = MAX_LINE_BYTES + longest;
        Self { secrets, buffered, unfinished: Default::default(), left }
    }

    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Adds a chunk of output and returns the lines that it completes.
    pub(crate) fn push(&mut self, piece: &Piece) -> Vec<PrintedLine> {
        let mut lines = Vec::new();
        for (index, part) in piece.bytes.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                lines.extend(self.complete(piece.stream));
            }
            self.unfinished[piece.stream as usize].push(part, self.buffered);
        }
        lines
    }

    /// Returns the last lines of streams that did not end with a newline.
    pub(crate) fn finish(&mut self) -> Vec<PrintedLine> {
        let mut streams = vec![StreamName::Stdout, StreamName::Stderr];
        streams.retain(|stream| !self.unfinished[*stream as usize].bytes.is_empty());
        streams.into_iter().filter_map(|stream| self.complete(stream)).collect()
    }

    fn complete(&mut self, stream: StreamName) -> Option<PrintedLine> {
        let unfinished = &mut self.unfinished[stream as usize];
        let Unfinished { bytes, truncated } = std::mem::take(unfinished);
        self.left = self.left.checked_sub(1)?;
        if self.left == 0 {
            let text =
                "[more lines follow than a task may log; the result has the end of the output]"
                    .to_owned();
            return Some(PrintedLine { stream, text });
        }
        let is_long = truncated || bytes.len() > MAX_LINE_BYTES;
        let mut text = String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned();
        for secret in &self.secrets {
            text = secret.mask(&text);
        }
        if is_long {
            // The buffer may end inside a secret: drop as much as the longest one.
            let most =
                text.len().saturating_sub(self.buffered - MAX_LINE_BYTES).min(MAX_LINE_BYTES);
            text.truncate(text.floor_char_boundary(most));
            text.push_str(" […]");
        }
        Some(PrintedLine { stream, text })
    }
}

impl Unfinished {
    fn push(&mut self, bytes: &[u8], capacity: usize) {
        let free = capacity.saturating_sub(self.bytes.len());
        self.truncated |= bytes.len() > free;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(free)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_LOG_LINES;
    use pretty_assertions::assert_eq;

    fn piece(bytes: &[u8]) -> Piece {
        Piece { stream: StreamName::Stdout, bytes: bytes.to_vec() }
    }

    fn texts(lines: Vec<PrintedLine>) -> Vec<String> {
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_secret_that_comes_in_two_pieces_is_masked() {
        let mut lines = OutputLines::new(vec![Secret::new("hunter2")], 9);
        assert_eq!(texts(lines.push(&piece(b"a\r\nkey hun"))), ["a"]);
        assert_eq!(texts(lines.push(&piece(b"ter2\nend"))), ["key ***"]);
        assert_eq!(texts(lines.finish()), ["end"]);
        assert_eq!(texts(lines.finish()), Vec::<String>::new());
    }

    #[test]
    fn no_part_of_a_secret_across_the_cut_of_a_long_line_is_emitted() {
        for before in MAX_LINE_BYTES - 9..MAX_LINE_BYTES + 9 {
            for again in [1, 40] {
                let mut lines = OutputLines::new(vec![Secret::new("hunter2")], 9);
                let line = "x".repeat(before) + &"hunter2".repeat(again) + "\n";
                let text = texts(lines.push(&piece(line.as_bytes()))).concat();
                assert!(!text.contains("hu"), "{before}: {}", &text[text.len() - 20..]);
            }
        }
    }

    #[test]
    fn lines_are_cut_and_counted() {
        let mut lines = OutputLines::new(Vec::new(), MAX_LOG_LINES);
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        lines.push(&piece(&long));
        assert_eq!(texts(lines.push(&piece(b"y\n")))[0].len(), MAX_LINE_BYTES + " […]".len());
        let many = lines.push(&piece(&b"z\n".repeat(2 * MAX_LOG_LINES)));
        assert_eq!(many.len(), MAX_LOG_LINES - 1);
        assert!(many.last().unwrap().text.starts_with("[more"));
    }
}
