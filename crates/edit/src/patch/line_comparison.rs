//! Comparison of hunk lines with file lines at three levels of tolerance, within a budget.
//!
//! Matching is quadratic in the worst case: a hunk of equal lines against a file of equal lines.
//! The number of line comparisons per file is bounded, and a hunk that is not found within it
//! counts as not found.

use super::HunkLine;
use crate::lines::Line;

/// Bounds the line comparisons for one file.
const MAX_COMPARISONS: usize = 10_000_000;

/// Bounds the positions that are collected for one hunk.
const MAX_POSITIONS: usize = 1000;

/// The differences between two lines that a comparison ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineTolerance {
    /// None: text and ending are equal.
    Exact,
    /// The line ending.
    IgnoreEnding,
    /// Trailing white space, the line ending included.
    IgnoreTrailingSpace,
}

/// The lines of a file and the comparisons made so far.
pub(super) struct FileLines<'a> {
    /// The lines with their endings.
    pub(super) file: &'a [&'a str],
    comparisons: usize,
}

impl<'a> FileLines<'a> {
    pub(super) fn new(file: &'a [&'a str]) -> Self {
        Self { file, comparisons: 0 }
    }

    /// Returns true if all `wanted` lines match after the first `at` lines.
    pub(super) fn fits(
        &mut self,
        wanted: &[&HunkLine],
        at: usize,
        tolerance: LineTolerance,
    ) -> bool {
        self.file.len().checked_sub(at).is_some_and(|left| left >= wanted.len())
            && self.matching_lines(wanted, at, tolerance) == wanted.len()
    }

    /// Returns the number of `wanted` lines that match before the first that does not.
    pub(super) fn matching_lines(
        &mut self,
        wanted: &[&HunkLine],
        at: usize,
        tolerance: LineTolerance,
    ) -> usize {
        let there = self.file.iter().skip(at);
        let allowed = MAX_COMPARISONS.saturating_sub(self.comparisons);
        let pairs = there.zip(wanted).take(allowed);
        let common = pairs.take_while(|(file, wanted)| fits(file, wanted, tolerance)).count();
        self.comparisons += common + 1;
        common
    }

    /// Returns the positions at which all `wanted` lines match, after the first `from` lines.
    pub(super) fn positions(
        &mut self,
        wanted: &[&HunkLine],
        from: usize,
        tolerance: LineTolerance,
    ) -> Vec<usize> {
        let last = (self.file.len() + 1).saturating_sub(wanted.len());
        let fitting = (from..last).filter(|&at| self.fits(wanted, at, tolerance));
        fitting.take(MAX_POSITIONS).collect()
    }
}

fn fits(file: &str, wanted: &HunkLine, tolerance: LineTolerance) -> bool {
    match tolerance {
        LineTolerance::Exact => {
            let text = if wanted.ended { file.strip_suffix('\n') } else { Some(file) };
            text == Some(wanted.text.as_str()) && (wanted.ended || !file.ends_with('\n'))
        }
        LineTolerance::IgnoreEnding => Line::new(file).text == wanted.without_return(),
        LineTolerance::IgnoreTrailingSpace => file.trim_end() == wanted.text.trim_end(),
    }
}
