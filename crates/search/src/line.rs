//! A line as it is shown: text, cut to a length, with the places of its matches.

use std::ops::Range;

use serde::Serialize;

/// The most matches of one line whose places are given.
pub const MAX_SPANS: usize = 64;

/// How many bytes the replacement of one byte that is no text takes.
const REPLACEMENT_BYTES: usize = char::REPLACEMENT_CHARACTER.len_utf8();

/// The part of a cut line that lies before its first match, as a divisor.
const LEAD: usize = 4;

/// Why a line is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// It matches.
    Match,
    /// It stands near one that matches.
    Context,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its number, counted from 1.
    pub number: u64,
    /// Why it is shown.
    pub kind: LineKind,
    /// Its text without the line's end. What is no UTF-8 is replaced.
    pub text: String,
    /// Where in `text` the matches are, in bytes; at most [`MAX_SPANS`].
    pub spans: Vec<Range<usize>>,
    /// How many bytes of the line are left out before `text`.
    pub omitted_before: u64,
    /// How many bytes of the line are left out after `text`.
    pub omitted_after: u64,
}

impl Line {
    /// Makes a line from its bytes and the places of its matches in them.
    pub(crate) fn new(
        number: u64,
        kind: LineKind,
        bytes: &[u8],
        matches: &[Range<usize>],
        limit: usize,
    ) -> Self {
        let bytes = without_end(bytes);
        let first = matches.first().map_or(0..0, Range::clone);
        let mut window = choose(bytes, &first, limit);
        if str::from_utf8(&bytes[window.clone()]).is_err() {
            // Replacements are longer than what they replace.
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

    /// Returns about how many bytes the line takes up in memory.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.text.capacity() + self.spans.len() * size_of::<Range<usize>>()
    }
}

/// Cuts off the end of a line, however it is written.
fn without_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Chooses the part of a line to show, so that the first match is in it.
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

/// Tells whether no character goes on over this place.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    /// The bits that mark the second and later bytes of a character in UTF-8.
    const CONTINUATION: u8 = 0b1000_0000;
    const MASK: u8 = 0b1100_0000;
    bytes.get(at).is_none_or(|byte| byte & MASK != CONTINUATION)
}

/// Turns the window into text and moves the matches along.
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
    fn ends_of_lines_are_not_shown() {
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
    fn bytes_that_are_no_text_do_not_pass_the_limit() {
        let shown = line(&[0xff; 1000], &[], 90);
        assert_eq!((shown.text.len(), shown.omitted_after), (90, 970));
    }
}
