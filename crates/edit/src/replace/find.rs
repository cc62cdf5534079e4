//! Places that are named by their text.

use std::ops::Range;
use std::rc::Rc;

use memchr::{memchr, memchr_iter, memmem};

use super::error::{EditProblem, MAX_LISTED_MATCHES};
use super::near::near_match;
use super::{Occurrences, Region, prefix};
use crate::endings::{NearEndings, adapt};
use crate::lines::{line_number, with_line_feeds};

/// A text to find, what to put there, and the file that is searched.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) occurrences: Occurrences,
    /// Bounds the places that are kept.
    pub(super) replacements: usize,
    /// Bounds the bytes of the file afterwards.
    pub(super) result_bytes: usize,
}

/// The places that were found.
pub(super) struct Found {
    pub(super) regions: Vec<Region>,
    pub(super) prefixes_removed: bool,
}

impl Search<'_> {
    /// Finds all places, first as the text is written and then without line numbers.
    pub(super) fn run(&self) -> Result<Found, EditProblem> {
        let matches = Matches::of(self.text, self.old, self.replacements);
        if !matches.ranges.is_empty() {
            let regions = self.regions(matches)?;
            return Ok(Found { regions, prefixes_removed: false });
        }
        let Some((old, new)) = prefix::without(self.old, self.new) else {
            return Err(self.not_found(self.old));
        };
        let matches = Matches::of(self.text, &old, self.replacements);
        if matches.ranges.is_empty() {
            return Err(self.not_found(&old));
        }
        let regions = Search { old: &old, new: &new, ..*self }.regions(matches)?;
        Ok(Found { regions, prefixes_removed: true })
    }

    fn not_found(&self, old: &str) -> EditProblem {
        let near = near_match(self.text, old);
        EditProblem::FindNotFound { path: self.path.to_owned(), near }
    }

    fn regions(&self, matches: Matches) -> Result<Vec<Region>, EditProblem> {
        let count = matches.count;
        if self.occurrences == Occurrences::One && count > 1 {
            let lines = line_numbers(self.text, &matches.ranges);
            return Err(EditProblem::MultiMatch { path: self.path.to_owned(), count, lines });
        }
        if count > self.replacements {
            return Err(EditProblem::TooManyReplacements { limit: self.replacements });
        }
        // Checked before the new texts are made, of which there may be millions.
        if count.saturating_mul(self.new.len()) > self.result_bytes {
            let (path, limit) = (self.path.to_owned(), self.result_bytes);
            return Err(EditProblem::ResultTooLarge { path, limit });
        }
        if matches.verbatim || memchr(b'\n', self.new.as_bytes()).is_none() {
            let new: Rc<str> = self.new.into();
            let region = |range| Region { range, new: Rc::clone(&new) };
            return Ok(matches.ranges.into_iter().map(region).collect());
        }
        let mut near = NearEndings::new(self.text);
        let region = |range: Range<usize>| {
            let new = adapt(&self.text[range.clone()], self.new, near.at(range.start));
            Region { range, new: new.into() }
        };
        Ok(matches.ranges.into_iter().map(region).collect())
    }
}

fn line_numbers(text: &str, ranges: &[Range<usize>]) -> Vec<usize> {
    let listed = ranges.iter().take(MAX_LISTED_MATCHES);
    listed.map(|range| line_number(text, range.start)).collect()
}

/// Where a text occurs, without overlaps.
struct Matches {
    /// The first of them: as many as may be replaced, and as many as may be listed.
    ranges: Vec<Range<usize>>,
    count: usize,
    /// Whether the carriage returns of the text to find are those of the file.
    verbatim: bool,
}

impl Matches {
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

/// Finds text whose line feeds stand for any ending.
fn any_ending(text: &str, old: &str, at_most: usize) -> (Vec<Range<usize>>, usize) {
    let plain = with_line_feeds(text);
    let removed = removed_returns(text);
    // A line feed that lost its carriage return is at the place of that return.
    let place = |at: usize| at + removed.partition_point(|&feed| feed < at);
    let (ranges, count) = exact(&plain, old, at_most);
    let placed = ranges.into_iter().map(|range| place(range.start)..place(range.end));
    (placed.collect(), count)
}

/// Returns where the line feeds that lose their carriage return are afterwards.
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
    fn a_line_feed_stands_for_any_ending() {
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
            assert_eq!(Matches::of(text, old, 9).ranges, [want], "{old:?}");
        }
    }

    #[test]
    fn carriage_returns_that_are_written_out_are_taken_at_their_word() {
        let text = "a\r\nb\na\nb\na\r\nb";
        let matches = Matches::of(text, "a\r\nb", 9);
        assert_eq!((matches.ranges, matches.verbatim), (vec![0..4, 9..13], true));
        let matches = Matches::of(text, "a\nb", 9);
        assert_eq!((matches.ranges, matches.verbatim), (vec![0..4, 5..8, 9..13], false));
    }
}
