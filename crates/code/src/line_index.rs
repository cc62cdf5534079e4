//! The lines of a text, found once for many places.

/// The starts of all lines of a text.
#[derive(Clone, Debug)]
pub(crate) struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    pub(crate) fn of(text: &str) -> Self {
        let feeds = memchr::memchr_iter(b'\n', text.as_bytes()).map(|feed| feed + 1);
        Self { starts: std::iter::once(0).chain(feeds).collect() }
    }

    /// Returns the line of a byte, counted from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// Returns the first and the last line of a range. A line feed at its end belongs to the line that it ends.
    pub(crate) fn lines(&self, range: &std::ops::Range<usize>) -> (usize, usize) {
        let last = range.end.saturating_sub(1).max(range.start);
        (self.line(range.start), self.line(last))
    }

    /// Returns the start of the line of a byte.
    pub(crate) fn start_of_line(&self, at: usize) -> usize {
        self.starts[self.line(at) - 1]
    }

    /// Returns the line ending of the line of a byte, or of the line before it if it has none.
    pub(crate) fn ending(&self, text: &str, at: usize) -> &'static str {
        let line = self.line(at);
        let next = self.starts.get(line).or_else(|| self.starts.get(line - 1)).copied();
        let before = next.and_then(|next| text.get(..next)).unwrap_or_default();
        if before.ends_with("\r\n") { "\r\n" } else { "\n" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn places_are_found_in_their_lines() {
        let text = "ab\r\nc\n\nd";
        let index = LineIndex::of(text);
        let lines: Vec<_> = (0..=text.len()).map(|at| index.line(at)).collect();
        assert_eq!(lines, [1, 1, 1, 1, 2, 2, 3, 4, 4]);
        assert_eq!(index.lines(&(0..4)), (1, 1));
        assert_eq!(index.lines(&(0..5)), (1, 2));
        assert_eq!(index.lines(&(3..3)), (1, 1));
        assert_eq!(index.start_of_line(5), 4);
        assert_eq!(
            (index.ending(text, 0), index.ending(text, 4), index.ending(text, 7)),
            ("\r\n", "\n", "\n")
        );
        assert_eq!(LineIndex::of("").line(0), 1);
    }
}
