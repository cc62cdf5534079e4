//! Lines and their endings.
//!
//! Only a line feed ends a line. A carriage return right before it belongs to the ending; anywhere
//! else it is text, so that old Macintosh files and progress bars are one line, as in git and
//! compilers.

use memchr::{memchr, memchr_iter};

/// The terminator of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineEnding {
    /// A line feed.
    Lf,
    /// A carriage return and a line feed.
    CrLf,
}

impl LineEnding {
    /// Returns the bytes of the ending.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }
}

/// The kinds of endings that occur in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndingStyle {
    /// No ending: the text is empty or a single unterminated line.
    None,
    /// Every ending is a line feed.
    Lf,
    /// Every ending is a carriage return and a line feed.
    CrLf,
    /// Both occur.
    Mixed,
}

/// Counts of the lines of a text and of their endings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LineFacts {
    /// Number of lines; text after the last line feed counts as one.
    pub count: usize,
    /// Number of lines that end with a line feed alone.
    pub lf: usize,
    /// Number of lines that end with a carriage return and a line feed.
    pub crlf: usize,
    /// True if the text ends with a line feed; false for an empty text.
    pub final_newline: bool,
}

impl LineFacts {
    /// Counts the lines of a text in two passes, or one if it has no carriage return.
    pub fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let count = line_count(text);
        let final_newline = text.ends_with('\n');
        let ended = count - usize::from(!text.is_empty() && !final_newline);
        let crlf = if memchr(b'\r', bytes).is_some() { count_crlf(bytes) } else { 0 };
        Self { count, lf: ended - crlf, crlf, final_newline }
    }

    /// Returns the kinds of endings that occur.
    pub fn style(&self) -> EndingStyle {
        match (self.lf, self.crlf) {
            (0, 0) => EndingStyle::None,
            (_, 0) => EndingStyle::Lf,
            (0, _) => EndingStyle::CrLf,
            (_, _) => EndingStyle::Mixed,
        }
    }

    /// Returns the ending of the majority of lines; a line feed if both are equally frequent.
    pub fn dominant_ending(&self) -> LineEnding {
        if self.crlf > self.lf { LineEnding::CrLf } else { LineEnding::Lf }
    }
}

fn count_crlf(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).filter(|&at| at > 0 && bytes[at - 1] == b'\r').count()
}

/// One line, split into text and ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The text without its ending.
    pub text: &'a str,
    /// The ending; only the last line of a text can lack it.
    pub ending: Option<LineEnding>,
}

impl<'a> Line<'a> {
    /// Splits a raw line into its text and its ending, if it has one.
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

/// Returns the lines of a text, split into text and ending.
pub fn lines(text: &str) -> impl DoubleEndedIterator<Item = Line<'_>> {
    raw_lines(text).map(Line::new)
}

/// Returns the lines of a text with their endings.
pub(crate) fn raw_lines(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split_inclusive('\n')
}

/// Returns a line by its number, counted from 1. The text is not split into lines for it.
pub fn line(text: &str, number: usize) -> Option<Line<'_>> {
    let rest = &text[line_start(text, number)?..];
    let end = memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |end| end + 1);
    (end > 0).then(|| Line::new(&rest[..end]))
}

/// Returns the offset at which a line begins, counted from 1. The end of a text counts as the begin of a further line.
pub fn line_start(text: &str, number: usize) -> Option<usize> {
    match number.checked_sub(1)? {
        0 => Some(0),
        feeds => memchr_iter(b'\n', text.as_bytes()).nth(feeds - 1).map(|feed| feed + 1),
    }
}

/// Returns the number of lines. Text after the last line feed counts as one.
pub fn line_count(text: &str) -> usize {
    let is_unfinished = !text.is_empty() && !text.ends_with('\n');
    memchr_iter(b'\n', text.as_bytes()).count() + usize::from(is_unfinished)
}

/// Returns the 1-based number of the line that holds the byte at `position`.
pub(crate) fn line_number(text: &str, position: usize) -> usize {
    memchr_iter(b'\n', &text.as_bytes()[..position]).count() + 1
}

/// Returns the text with every CRLF replaced by a line feed.
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
    fn a_line_by_its_number_is_that_of_the_list() {
        for text in ["", "a", "\n", "a\n", "a\nb\r\nc\rd\r\r\n\ne", "\n\nä\n"] {
            let all: Vec<_> = lines(text).collect();
            assert_eq!(line_count(text), all.len(), "{text:?}");
            assert_eq!(line(text, 0), None, "{text:?}");
            let mut start = 0;
            for (index, raw) in raw_lines(text).enumerate() {
                assert_eq!(line(text, index + 1), Some(all[index]), "{text:?}");
                assert_eq!(line_start(text, index + 1), Some(start), "{text:?}");
                start += raw.len();
            }
            assert_eq!(line(text, all.len() + 1), None, "{text:?}");
            assert_eq!(line_start(text, all.len() + 2), None, "{text:?}");
        }
    }

    #[test]
    fn facts_count_lines_endings_and_the_unterminated_last_line() {
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
