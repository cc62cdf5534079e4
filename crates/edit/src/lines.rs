//! Lines and their endings.
//!
//! Only a line feed ends a line. A carriage return right before it belongs to the ending; anywhere
//! else it is text.

use memchr::{memchr, memchr_iter};

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineEnding {
    /// A line feed.
    Lf,
    /// A carriage return and a line feed.
    CrLf,
}

impl LineEnding {
    /// Returns the ending as it stands in text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }
}

/// The endings of a whole text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndingStyle {
    /// No line ends: the text is empty or a single unfinished line.
    None,
    /// Every ending is a line feed.
    Lf,
    /// Every ending is a carriage return and a line feed.
    CrLf,
    /// Both occur.
    Mixed,
}

/// What a text is made of, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LineFacts {
    /// The number of lines; text after the last line feed counts as one.
    pub count: usize,
    /// How many lines end with a line feed alone.
    pub lf: usize,
    /// How many lines end with a carriage return and a line feed.
    pub crlf: usize,
    /// Whether the last line is ended. An empty text has no last line.
    pub final_newline: bool,
}

impl LineFacts {
    /// Counts the lines of a text.
    pub fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ended = memchr_iter(b'\n', bytes).count();
        let crlf = if memchr(b'\r', bytes).is_some() { count_crlf(bytes) } else { 0 };
        let final_newline = text.ends_with('\n');
        let unfinished = usize::from(!text.is_empty() && !final_newline);
        Self { count: ended + unfinished, lf: ended - crlf, crlf, final_newline }
    }

    /// Returns which endings occur.
    pub fn style(&self) -> EndingStyle {
        match (self.lf, self.crlf) {
            (0, 0) => EndingStyle::None,
            (_, 0) => EndingStyle::Lf,
            (0, _) => EndingStyle::CrLf,
            (_, _) => EndingStyle::Mixed,
        }
    }

    /// Returns the ending that most lines have.
    pub fn usual_ending(&self) -> LineEnding {
        if self.crlf > self.lf { LineEnding::CrLf } else { LineEnding::Lf }
    }
}

fn count_crlf(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).filter(|&at| at > 0 && bytes[at - 1] == b'\r').count()
}

/// One line, its ending apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The text without its ending.
    pub text: &'a str,
    /// The ending; only the last line can be without.
    pub ending: Option<LineEnding>,
}

impl<'a> Line<'a> {
    /// Takes apart a line that still has its ending, if it has one.
    pub fn new(raw: &'a str) -> Self {
        let Some(text) = raw.strip_suffix('\n') else {
            return Self { text: raw, ending: None };
        };
        match text.strip_suffix('\r') {
            Some(text) => Self { text, ending: Some(LineEnding::CrLf) },
            None => Self { text, ending: Some(LineEnding::Lf) },
        }
    }
}

/// Returns the lines of a text, endings apart.
pub fn lines(text: &str) -> impl DoubleEndedIterator<Item = Line<'_>> {
    raw_lines(text).map(Line::new)
}

/// Returns the lines of a text with their endings.
pub(crate) fn raw_lines(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split_inclusive('\n')
}

/// Returns the 1-based number of the line that holds the byte at `position`.
pub(crate) fn line_number(text: &str, position: usize) -> usize {
    memchr_iter(b'\n', &text.as_bytes()[..position]).count() + 1
}

/// Returns the text with every ending turned into a line feed.
pub(crate) fn with_line_feeds(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn only_a_line_feed_ends_a_line() {
        let lf = Some(LineEnding::Lf);
        let crlf = Some(LineEnding::CrLf);
        let found: Vec<_> =
            lines("a\nb\r\nc\rd\r\r\n\ne").map(|line| (line.text, line.ending)).collect();
        let want = [("a", lf), ("b", crlf), ("c\rd\r", crlf), ("", lf), ("e", None)];
        assert_eq!(found, want);
    }

    #[test]
    fn facts_count_lines_endings_and_the_unfinished_last_line() {
        let cases = [
            ("", 0, 0, 0, false, EndingStyle::None),
            ("a", 1, 0, 0, false, EndingStyle::None),
            ("a\r", 1, 0, 0, false, EndingStyle::None),
            ("\n", 1, 1, 0, true, EndingStyle::Lf),
            ("a\r\nb\r\n", 2, 0, 2, true, EndingStyle::CrLf),
            ("a\r\nb\nc", 3, 1, 1, false, EndingStyle::Mixed),
        ];
        for (text, count, lf, crlf, final_newline, style) in cases {
            let facts = LineFacts::of(text);
            assert_eq!(facts, LineFacts { count, lf, crlf, final_newline }, "{text:?}");
            assert_eq!(facts.style(), style, "{text:?}");
        }
    }
}
