//! Resolution of edits that name their target by its text.
//!
//! The text is searched three times at most: literally, if it contains carriage returns; with line
//! feeds that match any ending; and again without copied line numbers. A file with CRLF endings is
//! searched in a copy with LF endings, and the offsets are mapped back by counting the carriage
//! returns that were removed before them.

use std::ops::Range;
use std::rc::Rc;

use memchr::{memchr, memchr_iter, memmem};

use super::closest_lines::closest_lines;
use super::error::{EditProblem, MAX_LISTED_MATCHES};
use super::near_match::near_match;
use super::{Limits, Occurrences, Splice, line_numbers};
use crate::line_endings::{EndingLookup, adapt_endings};
use crate::lines::{line_number, with_line_feeds};

#[derive(Clone, Copy)]
pub(super) struct TextSearch<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) occurrences: Occurrences,
    pub(super) limits: Limits,
    /// The part of [`Limits::replacements`] that the edits before this one have left.
    pub(super) replacements_left: usize,
}

impl TextSearch<'_> {
    /// Searches for the text as it is, then without line numbers. Also returns true if line numbers
    /// were removed.
    pub(super) fn run(&self) -> Result<(Vec<Splice>, bool), EditProblem> {
        let matches = MatchRanges::of(self.text, self.old, self.replacements_left);
        if !matches.ranges.is_empty() {
            return Ok((self.splices(matches)?, false));
        }
        let Some((old, new)) = line_numbers::strip(self.old, self.new) else {
            return Err(self.not_found(self.old));
        };
        let matches = MatchRanges::of(self.text, &old, self.replacements_left);
        if matches.ranges.is_empty() {
            return Err(self.not_found(&old));
        }
        Ok((TextSearch { old: &old, new: &new, ..*self }.splices(matches)?, true))
    }

    fn not_found(&self, old: &str) -> EditProblem {
        let near = near_match(self.text, old).or_else(|| closest_lines(self.text, old));
        EditProblem::FindNotFound { path: self.path.to_owned(), near: near.map(Box::new) }
    }

    fn splices(&self, matches: MatchRanges) -> Result<Vec<Splice>, EditProblem> {
        let count = matches.count;
        if self.occurrences == Occurrences::One && count > 1 {
            let lines = line_numbers(self.text, &matches.ranges);
            return Err(EditProblem::MultiMatch { path: self.path.to_owned(), count, lines });
        }
        if count > self.replacements_left {
            return Err(EditProblem::TooManyReplacements { limit: self.limits.replacements });
        }
        // Checked before the replacements are built, of which there may be a million.
        if count.saturating_mul(self.new.len()) > self.limits.result_bytes {
            let path = self.path.to_owned();
            let limit = self.limits.result_bytes;
            return Err(EditProblem::ResultTooLarge { path, limit });
        }
        if matches.verbatim || memchr(b'\n', self.new.as_bytes()).is_none() {
            let new: Rc<str> = self.new.into();
            let splice = |range| Splice { range, new: Rc::clone(&new) };
            return Ok(matches.ranges.into_iter().map(splice).collect());
        }
        let mut near = EndingLookup::new(self.text);
        let splice = |range: Range<usize>| {
            let new = adapt_endings(&self.text[range.clone()], self.new, near.at(range.start));
            Splice { range, new: new.into() }
        };
        Ok(matches.ranges.into_iter().map(splice).collect())
    }
}

fn line_numbers(text: &str, ranges: &[Range<usize>]) -> Vec<usize> {
    let listed = ranges.iter().take(MAX_LISTED_MATCHES);
    listed.map(|range| line_number(text, range.start)).collect()
}

/// The non-overlapping occurrences of a text.
struct MatchRanges {
    /// The first of `count`: as many as may be replaced, at least [`MAX_LISTED_MATCHES`].
    ranges: Vec<Range<usize>>,
    count: usize,
    /// True if the text matched with its carriage returns, so that the replacement is taken
    /// literally too.
    verbatim: bool,
}

impl MatchRanges {
    fn of(text: &str, old: &str, at_most: usize) -> Self {
        if memchr(b'\r', old.as_bytes()).is_some() {
            let (ranges, count) = exact(text, old, at_most);
            if !ranges.is_empty() {
                return Self { ranges, count, verbatim: true };
            }
        }
        let old = with_line_feeds(old);
        let spans_lines = memchr(b'\n', old.as_bytes()).is_some();
        let (ranges, count) = if spans_lines && text.contains("\r\n") {
            any_ending(text, &old, at_most)
        } else {
            exact(text, &old, at_most)
        };
        Self { ranges, count, verbatim: false }
    }
}

fn exact(text: &str, old: &str, at_most: usize) -> (Vec<Range<usize>>, usize) {
    let mut starts = memmem::find_iter(text.as_bytes(), old.as_bytes());
    let kept = starts.by_ref().take(at_most.max(MAX_LISTED_MATCHES));
    let ranges: Vec<_> = kept.map(|start| start..start + old.len()).collect();
    let count = ranges.len() + starts.count();
    (ranges, count)
}

/// Finds text whose line feeds match any ending.
fn any_ending(text: &str, old: &str, at_most: usize) -> (Vec<Range<usize>>, usize) {
    let plain = with_line_feeds(text);
    let removed = removed_returns(text);
    // A line feed that lost its carriage return has the offset that the return had.
    let original_offset = |at: usize| at + removed.partition_point(|&feed| feed < at);
    let (ranges, count) = exact(&plain, old, at_most);
    let mapped =
        ranges.into_iter().map(|range| original_offset(range.start)..original_offset(range.end));
    (mapped.collect(), count)
}

/// Returns the offsets, after the removal, of the line feeds that lose their carriage return.
fn removed_returns(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let feeds = memchr_iter(b'\n', bytes).filter(|&at| at > 0 && bytes[at - 1] == b'\r');
    feeds.enumerate().map(|(before, at)| at - 1 - before).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_line_feed_matches_any_ending() {
        let text = "a\r\nb\nc\r\nd";
        let cases = [
            ("a\nb", 0..4),
            ("b\nc", 3..6),
            ("\nb", 1..4),
            ("c\n", 5..8),
            ("b\r\nc", 3..6),
            ("a\nb\nc\nd", 0..9),
            ("c", 5..6),
        ];
        for (old, want) in cases {
            assert_eq!(MatchRanges::of(text, old, 9).ranges, [want], "{old:?}");
        }
    }

    #[test]
    fn carriage_returns_in_the_request_match_literally() {
        let text = "a\r\nb\na\nb\na\r\nb";
        let matches = MatchRanges::of(text, "a\r\nb", 9);
        assert_eq!((matches.ranges, matches.verbatim), (vec![0..4, 9..13], true));
        let matches = MatchRanges::of(text, "a\nb", 9);
        assert_eq!((matches.ranges, matches.verbatim), (vec![0..4, 5..8, 9..13], false));
    }
}
