//! Splits an agent's output into lines of bounded length.

/// The longest line that is kept. A longer one is counted and dropped, so that it costs no memory.
pub(crate) const MAX_LINE_BYTES: usize = 10 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputLine {
    /// The text; invalid UTF-8 is replaced.
    Text(String),
    /// A line that was dropped because of its length.
    TooLong { bytes: u64 },
}

#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    begun: Vec<u8>,
    dropped: u64,
}

impl LineSplitter {
    /// Adds a chunk, and returns the lines that it completes.
    pub(crate) fn push(&mut self, mut piece: &[u8]) -> Vec<OutputLine> {
        let mut lines = Vec::new();
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            self.keep(&piece[..end]);
            lines.push(self.take());
            piece = &piece[end + 1..];
        }
        self.keep(piece);
        lines
    }

    /// Returns the last line if it has no line ending.
    pub(crate) fn finish(mut self) -> Option<OutputLine> {
        (self.dropped > 0 || !self.begun.is_empty()).then(|| self.take())
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.dropped == 0 && self.begun.len() + bytes.len() <= MAX_LINE_BYTES {
            return self.begun.extend_from_slice(bytes);
        }
        self.dropped += (self.begun.len() + bytes.len()) as u64;
        self.begun = Vec::new();
    }

    fn take(&mut self) -> OutputLine {
        let (begun, dropped) = (std::mem::take(&mut self.begun), std::mem::take(&mut self.dropped));
        if dropped > 0 {
            return OutputLine::TooLong { bytes: dropped };
        }
        let text = begun.strip_suffix(b"\r").unwrap_or(&begun);
        OutputLine::Text(String::from_utf8_lossy(text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn text(text: &str) -> OutputLine {
        OutputLine::Text(text.to_owned())
    }

    #[test]
    fn lines_are_assembled_from_chunks_of_any_size() {
        let whole = "{\"ä\":1}\r\n\nlast".as_bytes();
        for size in 1..whole.len() {
            let mut splitter = LineSplitter::default();
            let mut lines: Vec<OutputLine> =
                whole.chunks(size).flat_map(|piece| splitter.push(piece)).collect();
            lines.extend(splitter.finish());
            assert_eq!(lines, [text("{\"ä\":1}"), text(""), text("last")], "{size}");
        }
    }

    #[test]
    fn a_line_at_the_limit_is_kept_and_a_longer_one_is_counted() {
        let mut splitter = LineSplitter::default();
        let longest = vec![b'x'; MAX_LINE_BYTES];
        assert_eq!(splitter.push(&longest), []);
        assert_eq!(splitter.push(b"\n").len(), 1);
        splitter.push(&longest);
        splitter.push(b"y");
        assert!(splitter.begun.is_empty());
        splitter.push(b"zz");
        let lines = splitter.push(b"\nnext\n");
        let bytes = MAX_LINE_BYTES as u64 + 3;
        assert_eq!(lines, [OutputLine::TooLong { bytes }, text("next")]);
        assert_eq!(splitter.finish(), None);
    }
}
