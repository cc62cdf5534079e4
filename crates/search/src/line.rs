//! A line of a report: text of bounded length, with the spans of its matches.
//!
//! A long line is cut to a window around its first match, a quarter of which precedes it, never
//! inside a UTF-8 character. Bytes that are not UTF-8 become U+FFFD, three bytes for one, so a
//! window with such bytes is chosen three times smaller. Spans are byte ranges of the resulting
//! text.

use std::ops::Range;

/// Bounds the spans of one line.
pub const MAX_SPANS: usize = 64;

const REPLACEMENT_BYTES: usize = char::REPLACEMENT_CHARACTER.len_utf8();

/// Divisor of the window that precedes the first match.
const LEAD: usize = 4;

/// The reason why a line is in a report: it matches, or is near one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the enum's summary defines both variants")]
pub enum LineKind {
    Match,
    Context,
}

/// A matching line, or a context line near one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Line number, counted from 1.
    pub number: u64,
    /// Match or context, printed as `:` or `-`.
    pub kind: LineKind,
    /// Text without its line ending; invalid UTF-8 is replaced by U+FFFD.
    pub text: String,
    /// Byte ranges of the matches in `text`, at most [`MAX_SPANS`].
    pub spans: Vec<Range<usize>>,
    /// Number of bytes of the line that precede `text`.
    pub omitted_before: u64,
    /// Number of bytes of the line that follow `text`.
    pub omitted_after: u64,
}

impl Line {
    /// Creates a line from its bytes and the spans of its matches in them.
    pub(crate) fn new(
        number: u64,
        kind: LineKind,
        bytes: &[u8],
        matches: &[Range<usize>],
        limit: usize,
    ) -> Self {
        let bytes = without_ending(bytes);
        let first = matches.first().map_or(0..0, Range::clone);
        let mut window = choose(bytes, &first, limit);
        if str::from_utf8(&bytes[window.clone()]).is_err() {
            // U+FFFD is longer than the byte that it replaces.
            window = choose(bytes, &first, limit / REPLACEMENT_BYTES);
        }
        let (text, spans) = convert(bytes, &window, matches);
        Self {
            number,
            kind,
            text,
            spans,
            omitted_before: window.start as u64,
            omitted_after: (bytes.len() - window.end) as u64,
        }
    }

    /// Returns the approximate memory of the line in bytes.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.text.capacity() + self.spans.len() * size_of::<Range<usize>>()
    }
}

fn without_ending(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Returns the window of a line that contains its first match.
fn choose(bytes: &[u8], first: &Range<usize>, limit: usize) -> Range<usize> {
    if bytes.len() <= limit {
        return 0..bytes.len();
    }
    let start = if first.end <= limit { 0 } else { first.start.saturating_sub(limit / LEAD) };
    let start = start.min(bytes.len() - limit);
    let end = start + limit;
    let start = (start..end).find(|&at| is_boundary(bytes, at)).unwrap_or(start);
    let end = (start..=end).rev().find(|&at| is_boundary(bytes, at)).unwrap_or(end);
    start..end
}

/// Returns true unless a UTF-8 character continues at this position.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    const CONTINUATION: u8 = 0b1000_0000;
    const MASK: u8 = 0b1100_0000;
    bytes.get(at).is_none_or(|byte| byte & MASK != CONTINUATION)
}

/// Converts the window to text and maps the spans to it.
fn convert(
    bytes: &[u8],
    window: &Range<usize>,
    matches: &[Range<usize>],
) -> (String, Vec<Range<usize>>) {
    let mut text = String::with_capacity(window.len());
    let mut spans = Vec::with_capacity(matches.len().min(MAX_SPANS));
    let mut at = window.start;
    for span in matches.iter().take(MAX_SPANS) {
        let start = span.start.clamp(at, window.end);
        let end = span.end.clamp(at, window.end);
        if start == end {
            continue;
        }
        text.push_str(&String::from_utf8_lossy(&bytes[at..start]));
        let begin = text.len();
        text.push_str(&String::from_utf8_lossy(&bytes[start..end]));
        spans.push(begin..text.len());
        at = end;
    }
    text.push_str(&String::from_utf8_lossy(&bytes[at..window.end]));
    (text, spans)
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a line with one match is the usual case")]
mod tests {
    use super::*;

    fn line(bytes: &[u8], matches: &[Range<usize>], limit: usize) -> Line {
        Line::new(1, LineKind::Match, bytes, matches, limit)
    }

    #[test]
    fn line_endings_are_not_part_of_the_text() {
        assert_eq!(line(b"a\n", &[0..1], 10).text, "a");
        assert_eq!(line(b"a\r\n", &[0..1], 10).text, "a");
        assert_eq!(line(b"a\rb", &[], 10).text, "a\rb");
    }

    #[test]
    fn a_long_line_is_cut_around_its_first_match() {
        let bytes = [vec![b'a'; 1000], b"needle".to_vec(), vec![b'b'; 1000]].concat();
        let cut = line(&bytes, &[1000..1006], 100);
        assert_eq!((cut.omitted_before, cut.text.len(), cut.omitted_after), (975, 100, 931));
        assert_eq!(&cut.text[cut.spans[0].clone()], "needle");
        let early = line(&bytes, &[3..5], 100);
        assert_eq!((early.omitted_before, early.omitted_after), (0, 1906));
        let late = line(&bytes, &[2000..2006], 100);
        assert_eq!((late.omitted_before, late.omitted_after), (1906, 0));
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        let bytes = "é".repeat(100);
        let cut = line(bytes.as_bytes(), &[100..102], 51);
        assert!(cut.text.chars().all(|c| c == 'é'), "{cut:?}");
        assert!(cut.text.len() <= 51);
    }

    #[test]
    fn spans_follow_the_text_that_is_shown() {
        let shown = line(b"\xff\xffneedle\xff", &[2..8], 100);
        assert_eq!(&shown.text[shown.spans[0].clone()], "needle");
        assert_eq!(shown.text, "\u{fffd}\u{fffd}needle\u{fffd}");
    }

    #[test]
    fn replacement_characters_do_not_exceed_the_limit() {
        let shown = line(&[0xff; 1000], &[], 90);
        assert_eq!((shown.text.len(), shown.omitted_after), (90, 970));
    }
}
