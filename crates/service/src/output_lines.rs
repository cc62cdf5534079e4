//! What commands print, line by line, with secrets masked.

use carrel_domain::Secret;
use carrel_exec::{Piece, StreamName};

use crate::limits::MAX_LINE_BYTES;

/// A line that a command printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrintedLine {
    pub(crate) stream: &'static str,
    pub(crate) text: String,
}

/// Cuts the output of a command into lines. A line is told when it is whole, so that a secret is never
/// cut in two and told in halves.
#[derive(Debug)]
pub(crate) struct OutputLines {
    secrets: Vec<Secret>,
    /// Bytes of a line that are kept until it is whole.
    kept: usize,
    stdout: Unfinished,
    stderr: Unfinished,
    /// How many lines may still be told.
    left: usize,
}

#[derive(Debug, Default)]
struct Unfinished {
    bytes: Vec<u8>,
    /// The line is longer than is kept of it.
    cut: bool,
}

impl OutputLines {
    /// Begins with a number of lines that may be told.
    pub(crate) fn new(secrets: Vec<Secret>, left: usize) -> Self {
        let (stdout, stderr) = (Unfinished::default(), Unfinished::default());
        // A secret across the cut is seen as a whole.
        let longest = secrets.iter().map(|secret| secret.expose().len()).max().unwrap_or(0);
        Self { secrets, kept: MAX_LINE_BYTES + longest, stdout, stderr, left }
    }

    /// Returns how many lines may still be told.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Takes a piece and returns the lines that it completes.
    pub(crate) fn push(&mut self, piece: &Piece) -> Vec<PrintedLine> {
        let mut lines = Vec::new();
        for (index, part) in piece.bytes.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                lines.extend(self.complete(piece.stream));
            }
            let kept = self.kept;
            self.unfinished(piece.stream).push(part, kept);
        }
        lines
    }

    /// Returns what is left when the command is over.
    pub(crate) fn finish(&mut self) -> Vec<PrintedLine> {
        let streams = [StreamName::Stdout, StreamName::Stderr];
        let unfinished =
            streams.into_iter().filter(|stream| !self.unfinished(*stream).bytes.is_empty());
        let unfinished: Vec<_> = unfinished.collect();
        unfinished.into_iter().filter_map(|stream| self.complete(stream)).collect()
    }

    fn complete(&mut self, stream: StreamName) -> Option<PrintedLine> {
        let Unfinished { bytes, cut } = std::mem::take(self.unfinished(stream));
        let name = match stream {
            StreamName::Stdout => "stdout",
            StreamName::Stderr => "stderr",
        };
        self.left = self.left.checked_sub(1)?;
        if self.left == 0 {
            let text = "[more is printed than is told here; the result has its end]".to_owned();
            return Some(PrintedLine { stream: name, text });
        }
        let is_long = cut || bytes.len() > MAX_LINE_BYTES;
        let mut text = String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned();
        for secret in &self.secrets {
            text = secret.mask(&text);
        }
        if is_long {
            // Of a secret that is not whole nothing is told.
            let most = text.len().saturating_sub(self.kept - MAX_LINE_BYTES).min(MAX_LINE_BYTES);
            text.truncate(text.floor_char_boundary(most));
            text.push_str(" […]");
        }
        Some(PrintedLine { stream: name, text })
    }

    fn unfinished(&mut self, stream: StreamName) -> &mut Unfinished {
        match stream {
            StreamName::Stdout => &mut self.stdout,
            StreamName::Stderr => &mut self.stderr,
        }
    }
}

impl Unfinished {
    fn push(&mut self, bytes: &[u8], kept: usize) {
        let room = kept.saturating_sub(self.bytes.len());
        self.cut |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
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
    fn a_secret_that_a_long_line_is_cut_in_is_told_in_no_part() {
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
