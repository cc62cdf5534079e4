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

    /// Returns true if all `old_lines` match after the first `at` lines.
    pub(super) fn fits(
        &mut self,
        old_lines: &[&HunkLine],
        at: usize,
        tolerance: LineTolerance,
    ) -> bool {
        self.file.len().checked_sub(at).is_some_and(|left| left >= old_lines.len())
            && self.matching_lines(old_lines, at, tolerance) == old_lines.len()
    }

    /// Returns the number of `old_lines` lines that match before the first that does not.
    pub(super) fn matching_lines(
        &mut self,
        old_lines: &[&HunkLine],
        at: usize,
        tolerance: LineTolerance,
    ) -> usize {
        let there = self.file.iter().skip(at);
        let allowed = MAX_COMPARISONS.saturating_sub(self.comparisons);
        let pairs = there.zip(old_lines).take(allowed);
        let common = pairs.take_while(|(file, old_lines)| fits(file, old_lines, tolerance)).count();
        self.comparisons += common + 1;
        common
    }

    /// Returns the positions at which all `old_lines` match, after the first `from` lines.
    pub(super) fn positions(
        &mut self,
        old_lines: &[&HunkLine],
        from: usize,
        tolerance: LineTolerance,
    ) -> Vec<usize> {
        let last = (self.file.len() + 1).saturating_sub(old_lines.len());
        let fitting = (from..last).filter(|&at| self.fits(old_lines, at, tolerance));
        fitting.take(MAX_POSITIONS).collect()
    }
}

fn fits(file: &str, old_lines: &HunkLine, tolerance: LineTolerance) -> bool {
    match tolerance {
        LineTolerance::Exact => {
            let text = if old_lines.terminated { file.strip_suffix('\n') } else { Some(file) };
            text == Some(old_lines.text.as_str()) && (old_lines.terminated || !file.ends_with('\n'))
        }
        LineTolerance::IgnoreEnding => Line::new(file).text == old_lines.without_return(),
        LineTolerance::IgnoreTrailingSpace => file.trim_end() == old_lines.text.trim_end(),
    }
}
