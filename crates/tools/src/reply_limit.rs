//! The size of replies.
//!
//! A model pays for each byte of a reply, and clients cut long ones themselves, at a place that they choose.
//! Tools with bulk text therefore keep within a limit: the operator's for the server, or `max_bytes` of the
//! call. The rest is left out between the beginning and the end, which matter most, with a note that
//! says how much it is and which call returns it.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::redaction::CutGuard;
use crate::text::end_line;

/// Bytes of text in a reply, unless the operator or the call says otherwise: about 8,000 tokens.
pub const DEFAULT_REPLY_BYTES: usize = 30_000;

/// Most bytes that are shown of a command's output which is over the limit, unless the call gave one: its beginning
/// and its end. A model reads on, or filters, with `BashOutput`, so that more would mostly be paid for in vain.
pub(crate) const EXCERPT_BYTES: usize = 6_000;

/// Lines of the end of such an output, and as many bytes of its beginning. A flood of short lines says no more
/// in hundreds of them.
const EXCERPT_LINES: usize = 40;

/// A smaller limit is raised to this, which leaves room for notes.
pub const MIN_REPLY_BYTES: usize = 1_000;

/// A larger limit is lowered to this, the amount that is kept of a command's output.
pub const MAX_REPLY_BYTES: usize = 100 * 1024;

/// Most bytes of text in the reply.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-brief" = ""))]
pub(crate) struct MaxBytes(u64);

impl MaxBytes {
    /// Returns the limit of a call: its own, or the server's.
    pub(crate) fn or_default(asked: Option<Self>, default: usize) -> usize {
        let asked = asked.filter(|asked| asked.0 > 0);
        let asked = asked.map(|asked| usize::try_from(asked.0).unwrap_or(usize::MAX));
        asked.unwrap_or(default).clamp(MIN_REPLY_BYTES, MAX_REPLY_BYTES)
    }
}

/// Returns the bytes that a reply shows of a command's output of `total` bytes, which ends with `end`.
pub(crate) fn shown_output(total: u64, end: &[u8], limit: usize, asked: Option<MaxBytes>) -> usize {
    let fits = usize::try_from(total).is_ok_and(|total| total <= limit);
    if fits || asked.is_some() {
        return limit;
    }
    let excerpt = 2 * bytes_of_last_lines(end, EXCERPT_LINES);
    limit.min(excerpt.clamp(MIN_REPLY_BYTES, EXCERPT_BYTES))
}

fn bytes_of_last_lines(text: &[u8], count: usize) -> usize {
    // A line feed at the end closes the last line.
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let mut feeds = body.iter().rev().enumerate().filter(|(_, byte)| **byte == b'\n');
    let lines = feeds.nth(count - 1).map_or(body.len(), |(before, _)| before);
    lines + text.len() - body.len()
}

/// Shortens a text to its beginning and its end, at line feeds where there are any nearby. `rest` says
/// in a few words how to get the part between them. Secrets are masked before the cut, which could leave a
/// part of one that is no longer recognised.
pub(crate) fn shorten(guard: &CutGuard, mut text: String, limit: usize, rest: &str) -> String {
    if text.len() > limit {
        guard.mask(&mut text);
    }
    cut(text, limit, rest)
}

fn cut(text: String, limit: usize, rest: &str) -> String {
    if text.len() <= limit {
        return text;
    }
    let head = text.floor_char_boundary(limit / 2);
    let tail = text.ceil_char_boundary(text.len() - limit / 2);
    let near = limit / 8;
    let head = match text[..head].rfind('\n') {
        Some(feed) if head - feed <= near => feed + 1,
        _ => head,
    };
    let tail = match text[tail..].find('\n') {
        Some(feed) if feed <= near => tail + feed + 1,
        _ => tail,
    };
    let missing = tail - head;
    let mut short = text[..head].to_owned();
    end_line(&mut short);
    short + &format!("[… {missing} bytes left out; {rest} …]\n") + &text[tail..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_long_text_keeps_whole_lines_of_both_ends_and_says_what_is_missing() {
        assert_eq!(cut("short\n".into(), 1000, "rest"), "short\n");
        let lines = "one line\n".repeat(1000);
        let short = cut(lines.clone(), 1000, "narrow it");
        assert!(short.len() < 1100, "{}", short.len());
        let (head, rest) = short.split_once("[… ").unwrap();
        let (note, tail) = rest.split_once(" …]\n").unwrap();
        assert!(lines.starts_with(head) && head.ends_with('\n'), "{head}");
        assert!(lines.ends_with(tail) && tail.starts_with("one line"), "{tail}");
        let missing = lines.len() - head.len() - tail.len();
        assert_eq!(note, format!("{missing} bytes left out; narrow it"));
    }

    #[test]
    fn output_over_the_limit_is_an_excerpt_unless_the_call_has_a_limit() {
        let end = [b'x'; EXCERPT_BYTES];
        let shown =
            |total, asked: Option<u64>| shown_output(total, &end, 30_000, asked.map(MaxBytes));
        assert_eq!([shown(29_000, None), shown(30_000, None)], [30_000, 30_000]);
        assert_eq!([shown(30_001, None), shown(u64::MAX, None)], [EXCERPT_BYTES, EXCERPT_BYTES]);
        assert_eq!(shown(u64::MAX, Some(30_000)), 30_000);
        assert_eq!(shown_output(5_000, &end, 2_000, None), 2_000);
    }

    #[test]
    fn an_excerpt_of_short_lines_has_the_last_forty_of_them() {
        let of = |line: &str| shown_output(u64::MAX, line.repeat(100).as_bytes(), 30_000, None);
        let width = |bytes: usize| "x".repeat(bytes - 1) + "\n";
        assert_eq!([of(&width(50)), of(&width(20))], [4_000, 1_600]);
        assert_eq!([of(&width(5)), of(&width(500))], [MIN_REPLY_BYTES, EXCERPT_BYTES]);
        assert_eq!(bytes_of_last_lines(b"a\nbc\ndef", 2), 6);
        assert_eq!(bytes_of_last_lines(b"a\nbc\n", 9), 5);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let short = cut("ä".repeat(5000), 1001, "rest");
        assert!(short.starts_with('ä') && short.ends_with('ä'), "{short}");
        assert!(short.len() < 1100);
    }

    #[test]
    fn the_limit_of_a_call_is_held_within_bounds() {
        let limit = |asked: Option<u64>| MaxBytes::or_default(asked.map(MaxBytes), 30_000);
        let limits = [None, Some(0), Some(5), Some(5000), Some(u64::MAX)].map(limit);
        assert_eq!(limits, [30_000, 30_000, MIN_REPLY_BYTES, 5000, MAX_REPLY_BYTES]);
    }
}
