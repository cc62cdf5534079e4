//! Matching of hunks: the position in a file at which a hunk applies.
//!
//! See [the module above](super) for the order of the steps. Two details keep them safe. A hunk is
//! never matched before the end of the previous one, so `from` only grows. And tolerance is traded
//! for uniqueness: the lines at the named position may occur elsewhere too, but away from it a
//! match that ignores white space or drops context must be the only one in the rest of the file.
//!
//! A hunk that only adds lines matches everywhere. It goes to the line of its header, after its
//! last anchor, or to the end of the file.
//!
//! If no step succeeds, the error shows the first differing line at the position where the longest
//! prefix of the hunk matches, nearest to the expected line, since that is most likely the one the
//! author meant.

use std::ops::Range;

use super::error::{ApplyProblem, shortened};
use super::line_comparison::{FileLines, LineTolerance};
use super::{Hunk, HunkLine, Sign};
use crate::lines::{Line, LineEnding};

/// Bounds the context lines that may be dropped at each end of a hunk, as in GNU `patch`.
pub const MAX_FUZZ: usize = 2;

/// The position of a hunk in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HunkMatch {
    /// Number of file lines before it.
    pub(super) at: usize,
    /// The hunk lines that apply there; all of them unless context was dropped.
    pub(super) lines: Range<usize>,
    pub(super) tolerance: LineTolerance,
    /// Number of context lines dropped at each end, at most.
    pub(super) fuzz: usize,
}

/// Finds the position of a hunk after the first `from` lines of a file.
///
/// `expected` is the position that the hunk header names, corrected by the offset of the hunk
/// before.
pub(super) fn match_hunk(
    file_lines: &mut FileLines<'_>,
    hunk: &Hunk,
    from: usize,
    expected: Option<usize>,
) -> Result<HunkMatch, ApplyProblem> {
    let from = after_anchors(file_lines.file, hunk, from)?;
    let mut search = HunkSearch { file_lines, hunk, from, expected };
    if !hunk.lines.iter().any(HunkLine::is_old) {
        return search.insertion();
    }
    if let Some(found) = search.at_expected_line() {
        return Ok(found);
    }
    match search.at_other_lines()? {
        Some(found) => Ok(found),
        None => search.with_fuzz().ok_or_else(|| search.mismatch()),
    }
}

/// Returns the line of the last anchor. An anchor matches a whole line, or else the start of one.
fn after_anchors(file: &[&str], hunk: &Hunk, from: usize) -> Result<usize, ApplyProblem> {
    hunk.anchors.iter().try_fold(from, |from, anchor| {
        let text = anchor.trim();
        let find = |fits: fn(&str, &str) -> bool| {
            file.iter().skip(from).position(|line| fits(line.trim(), text))
        };
        let found =
            find(|line, text| line == text).or_else(|| find(|line, text| line.starts_with(text)));
        let missing = || ApplyProblem::AnchorNotFound { anchor: shortened(anchor) };
        // The anchor line may also be the first context line, so it is not skipped.
        found.map(|ahead| from + ahead).ok_or_else(missing)
    })
}

struct HunkSearch<'a, 'm, 'f> {
    file_lines: &'m mut FileLines<'f>,
    hunk: &'a Hunk,
    from: usize,
    expected: Option<usize>,
}

impl HunkSearch<'_, '_, '_> {
    fn whole_hunk(&self, at: usize, tolerance: LineTolerance) -> HunkMatch {
        HunkMatch { at, lines: 0..self.hunk.lines.len(), tolerance, fuzz: 0 }
    }

    /// Returns the position of a hunk that only adds lines.
    fn insertion(&self) -> Result<HunkMatch, ApplyProblem> {
        let count = self.file_lines.file.len();
        let at = match self.expected {
            Some(expected) => expected.max(self.from),
            None if self.hunk.anchors.is_empty() => count,
            None => self.from + 1,
        };
        if at > count {
            let expected = self.hunk.lines.first().map_or("", |line| line.text.as_str());
            return Err(ApplyProblem::PastEnd { count, expected: shortened(expected) });
        }
        let tolerance = if self.insertion_adapts(at) {
            LineTolerance::IgnoreEnding
        } else {
            LineTolerance::Exact
        };
        Ok(self.whole_hunk(at, tolerance))
    }

    /// Returns true if lines added without context take their endings from the file.
    ///
    /// With mixed endings, or carriage returns in the patch, the lines are taken literally.
    fn insertion_adapts(&self, at: usize) -> bool {
        let file = self.file_lines.file;
        let has_returns = self.hunk.lines.iter().any(|line| line.text.ends_with('\r'));
        let after_unterminated =
            at == file.len() && file.last().is_some_and(|line| !line.ends_with('\n'));
        let mut endings = file.iter().filter_map(|line| Line::new(line).ending).peekable();
        let all_crlf = endings.peek().is_some() && endings.all(|it| it == LineEnding::CrLf);
        !has_returns && (after_unterminated || all_crlf)
    }

    /// Step 1: compares at the expected line only.
    fn at_expected_line(&mut self) -> Option<HunkMatch> {
        let at = self.expected.filter(|&at| at >= self.from)?;
        let old_lines = old_side(&self.hunk.lines);
        let tolerance =
            [LineTolerance::Exact, LineTolerance::IgnoreEnding, LineTolerance::IgnoreTrailingSpace]
                .into_iter()
                .find(|&tolerance| self.file_lines.fits(&old_lines, at, tolerance))?;
        Some(self.whole_hunk(at, tolerance))
    }

    /// Steps 2 and 3: searches the rest of the file with the whole context.
    fn at_other_lines(&mut self) -> Result<Option<HunkMatch>, ApplyProblem> {
        let old_lines = old_side(&self.hunk.lines);
        let positions =
            self.file_lines.positions(&old_lines, self.from, LineTolerance::IgnoreEnding);
        if let Some(at) = self.choose(&positions, old_lines.len())? {
            let exact = self.file_lines.fits(&old_lines, at, LineTolerance::Exact);
            let tolerance = if exact { LineTolerance::Exact } else { LineTolerance::IgnoreEnding };
            return Ok(Some(self.whole_hunk(at, tolerance)));
        }
        match *self.file_lines.positions(&old_lines, self.from, LineTolerance::IgnoreTrailingSpace)
        {
            [] => Ok(None),
            [at] => Ok(Some(self.whole_hunk(at, LineTolerance::IgnoreTrailingSpace))),
            [first, second, ..] => Err(ambiguous(first, second)),
        }
    }

    /// Chooses among positions that match equally well.
    fn choose(&self, positions: &[usize], length: usize) -> Result<Option<usize>, ApplyProblem> {
        let (first, second) = match *positions {
            [] => return Ok(None),
            [only] => return Ok(Some(only)),
            [first, second, ..] => (first, second),
        };
        let end = self.file_lines.file.len();
        if let Some(&last) = positions.last().filter(|&&at| self.hunk.at_end && at + length == end)
        {
            return Ok(Some(last));
        }
        if let Some(expected) = self.expected {
            return nearest(positions, expected).map(Some);
        }
        // An anchor names the start of the block, so the first match after it is meant.
        if self.hunk.anchors.is_empty() { Err(ambiguous(first, second)) } else { Ok(Some(first)) }
    }

    /// Step 4: drops context lines at both ends, as long as a single position matches the rest.
    fn with_fuzz(&mut self) -> Option<HunkMatch> {
        (1..=MAX_FUZZ).find_map(|fuzz| {
            let lines = trimmed(&self.hunk.lines, fuzz);
            let old_lines = old_side(&self.hunk.lines[lines.clone()]);
            if old_lines.iter().all(|line| line.text.trim().is_empty()) {
                return None;
            }
            match *self.file_lines.positions(&old_lines, self.from, LineTolerance::IgnoreEnding) {
                [at] => Some(HunkMatch { at, lines, tolerance: LineTolerance::IgnoreEnding, fuzz }),
                _ => None,
            }
        })
    }

    /// Returns the first differing line at the best partial match.
    fn mismatch(&mut self) -> ApplyProblem {
        let old_lines = old_side(&self.hunk.lines);
        let count = self.file_lines.file.len();
        let near = self.expected.unwrap_or(self.from).max(self.from);
        let mut best = (0, near);
        for at in self.from..count {
            let common =
                self.file_lines.matching_lines(&old_lines, at, LineTolerance::IgnoreEnding);
            let nearer = at.abs_diff(near) < best.1.abs_diff(near);
            if common > best.0 || (common == best.0 && common > 0 && nearer) {
                best = (common, at);
            }
        }
        let (common, at) = best;
        let expected = shortened(old_lines.get(common).map_or("", |line| line.without_return()));
        if common == 0 && self.expected.is_none() {
            return ApplyProblem::NotFound { expected };
        }
        match self.file_lines.file.get(at + common) {
            None => ApplyProblem::PastEnd { count, expected },
            Some(line) => {
                let found = shortened(Line::new(line).text);
                ApplyProblem::Mismatch { line: at + common + 1, expected, found }
            }
        }
    }
}

fn old_side(lines: &[HunkLine]) -> Vec<&HunkLine> {
    lines.iter().filter(|line| line.is_old()).collect()
}

/// Returns the hunk lines without up to `fuzz` context lines at each end.
fn trimmed(lines: &[HunkLine], fuzz: usize) -> Range<usize> {
    let context = |line: &&HunkLine| line.sign == Sign::Context;
    let start = lines.iter().take(fuzz).take_while(context).count();
    let end = lines[start..].iter().rev().take(fuzz).take_while(context).count();
    start..lines.len() - end
}

/// Returns the position nearest to the expected line; two at the same distance are ambiguous.
fn nearest(positions: &[usize], expected: usize) -> Result<usize, ApplyProblem> {
    let mut positions: Vec<_> = positions.iter().map(|&at| (at.abs_diff(expected), at)).collect();
    positions.sort_unstable();
    match *positions {
        [(near, first), (far, second), ..] if near == far => Err(ambiguous(first, second)),
        [(_, nearest), ..] => Ok(nearest),
        [] => Ok(expected),
    }
}

fn ambiguous(first: usize, second: usize) -> ApplyProblem {
    ApplyProblem::Ambiguous { first: first + 1, second: second + 1 }
}
