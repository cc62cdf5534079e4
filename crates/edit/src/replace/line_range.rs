//! Resolution of edits that name their target by line numbers.
//!
//! Line numbers go stale when a file changes, and models miscount. Two mistakes are detected here
//! instead of being carried out: a range that covers the whole file with nothing to replace it, and
//! new lines that end with the very lines that follow the range, which would then appear twice.

use std::ops::Range;

use memchr::memchr_iter;

use super::Splice;
use super::error::{EditProblem, RangeProblem};
use crate::line_endings::{EndingLookup, adapt_endings};
use crate::lines::{LineFacts, lines};

/// Number of repeated lines that is taken for a mistake rather than a coincidence.
const REPEATED_LINES: usize = 3;

#[derive(Clone, Copy)]
pub(super) struct LineRange<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) new: &'a str,
}

impl LineRange<'_> {
    /// Returns the byte range and its replacement, or the mistake in the request.
    pub(super) fn locate(&self) -> Result<Splice, EditProblem> {
        let Self { path, text, start, end, new } = *self;
        let count = LineFacts::of(text).count;
        self.check(count).map_err(|problem| EditProblem::InvalidRange { problem })?;
        let all = start == 1 && end >= count && count > 0;
        if all && new.trim().is_empty() {
            return Err(EditProblem::LineRangeTooLarge {
                path: path.to_owned(),
                start,
                end: count,
            });
        }
        let range = byte_range(text, start, end);
        if repeats(new, &text[range.end..]) {
            let line = end.min(count) + 1;
            return Err(EditProblem::DuplicatesContext { path: path.to_owned(), line });
        }
        let new = self.finished(&range);
        Ok(Splice { range, new: new.into() })
    }

    fn check(&self, count: usize) -> Result<(), RangeProblem> {
        let Self { start, end, .. } = *self;
        if start == 0 {
            Err(RangeProblem::LineZero)
        } else if start > end {
            Err(RangeProblem::Backwards { start, end })
        } else if start > count.saturating_add(1) {
            Err(RangeProblem::PastEnd { start, count })
        } else {
            Ok(())
        }
    }

    /// Returns the new lines with the endings of the file, terminated where lines follow and
    /// separated from an unterminated line before.
    fn finished(&self, range: &Range<usize>) -> String {
        let mut new = self.new.to_owned();
        let lines_follow = range.end < self.text.len();
        if lines_follow && !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        let unfinished_before = !self.text[..range.start].is_empty()
            && !self.text[..range.start].ends_with('\n')
            && !new.is_empty();
        if unfinished_before {
            new.insert(0, '\n');
        }
        let near = EndingLookup::new(self.text).at(range.start);
        adapt_endings(&self.text[range.clone()], &new, near)
    }
}

/// Returns the byte range of the lines, the ending of the last one included.
fn byte_range(text: &str, start: usize, end: usize) -> Range<usize> {
    let mut ends = memchr_iter(b'\n', text.as_bytes()).map(|feed| feed + 1);
    let from = match start - 1 {
        0 => 0,
        before => ends.nth(before - 1).unwrap_or(text.len()),
    };
    from..ends.nth(end - start).unwrap_or(text.len())
}

/// Returns true if the new lines end with the lines that follow the range.
fn repeats(new: &str, after: &str) -> bool {
    let mut last: Vec<_> = lines(new).rev().take(REPEATED_LINES).map(|line| line.text).collect();
    last.reverse();
    let next: Vec<_> = lines(after).take(REPEATED_LINES).map(|line| line.text).collect();
    let some_text = next.iter().any(|line| !line.trim().is_empty());
    next.len() == REPEATED_LINES && some_text && last == next
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn located(text: &str, start: usize, end: usize, new: &str) -> Result<String, EditProblem> {
        let range = LineRange { path: "f", text, start, end, new };
        let Splice { range, new } = range.locate()?;
        Ok([&text[..range.start], &new, &text[range.end..]].concat())
    }

    #[test]
    fn whole_lines_are_replaced() {
        let cases = [
            ("1\n2\n3\n4\n5\n", 2, 3, "x\n", "1\nx\n4\n5\n"),
            ("1\n2\n3\n4\n5\n", 2, 3, "x", "1\nx\n4\n5\n"),
            ("1\n2\n3\n", 2, 2, "", "1\n3\n"),
            ("1\n2\n3\n", 1, 10, "x", "x"),
            ("1\n2\n3", 3, 3, "x", "1\n2\nx"),
            ("1\n2\n", 3, 3, "x\n", "1\n2\nx\n"),
            ("1\n2", 3, 9, "x", "1\n2\nx"),
            ("", 1, 1, "x\n", "x\n"),
            ("1\r\n2\r\n3\r\n", 2, 2, "x\ny", "1\r\nx\r\ny\r\n3\r\n"),
            ("1\r\n2\r\n", 3, 3, "x\n", "1\r\n2\r\nx\r\n"),
        ];
        for (text, start, end, new, want) in cases {
            assert_eq!(located(text, start, end, new).unwrap(), want, "{text:?} {start}..{end}");
        }
    }

    #[test]
    fn ranges_that_can_only_be_mistakes_are_refused() {
        let cases = [
            (0, 2, "x", "line 0 does not exist, lines are numbered from 1"),
            (5, 3, "x", "line range 5..3 ends before it starts"),
            (9, 9, "x", "line 9 is past the end, the last line is 5"),
            (1, 5, " \n", "lines 1..5 are all lines of f, which would become empty"),
            (
                1,
                2,
                "x\nc\nd\ne\n",
                "the new lines repeat lines 3..5 of f, which follow the range; extend the range or \
                 leave them out",
            ),
        ];
        for (start, end, new, want) in cases {
            let refused = located("a\nb\nc\nd\ne\n", start, end, new).unwrap_err();
            assert_eq!(refused.to_string(), want);
        }
    }

    #[test]
    fn blank_lines_and_short_repetitions_are_no_mistake() {
        assert!(located("a\n\n\n\nb\n", 1, 1, "x\n\n\n\n").is_ok());
        assert!(located("a\nb\nc\nd\n", 1, 1, "x\nb\nc\n").is_ok());
    }
}
