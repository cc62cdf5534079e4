//! Where a hunk belongs.

use std::ops::Range;

use super::error::{ApplyProblem, shortened};
use super::matching::{Closeness, Matcher};
use super::{Hunk, HunkLine, Sign};
use crate::lines::{Line, LineEnding};

/// Bounds the lines of context at each end of a hunk that may be given up.
pub const MAX_FUZZ: usize = 2;

/// The place of a hunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// How many lines of the file come before it.
    pub(super) at: usize,
    /// The lines of the hunk that are applied there.
    pub(super) lines: Range<usize>,
    pub(super) closeness: Closeness,
    /// How many lines of context were given up at each end, at most.
    pub(super) fuzz: usize,
}

/// Finds the place of a hunk behind the first `from` lines.
///
/// `expected` is where the patch says it is, corrected by how far the hunks before it were off.
pub(super) fn locate(
    matcher: &mut Matcher<'_>,
    hunk: &Hunk,
    from: usize,
    expected: Option<usize>,
) -> Result<Located, ApplyProblem> {
    let from = after_anchors(matcher.file, hunk, from)?;
    let mut search = Search { matcher, hunk, from, expected };
    if !hunk.lines.iter().any(HunkLine::is_old) {
        return search.insertion();
    }
    if let Some(found) = search.as_said() {
        return Ok(found);
    }
    match search.elsewhere()? {
        Some(found) => Ok(found),
        None => search.with_less_context().ok_or_else(|| search.mismatch()),
    }
}

/// Passes the lines that the hunk is to come after.
fn after_anchors(file: &[&str], hunk: &Hunk, from: usize) -> Result<usize, ApplyProblem> {
    hunk.anchors.iter().try_fold(from, |from, anchor| {
        let wanted = anchor.trim();
        let find = |fits: fn(&str, &str) -> bool| {
            file.iter().skip(from).position(|line| fits(line.trim(), wanted))
        };
        let found = find(|line, wanted| line == wanted)
            .or_else(|| find(|line, wanted| line.starts_with(wanted)));
        let missing = || ApplyProblem::AnchorNotFound { anchor: shortened(anchor) };
        // The anchor may be the first line of context as well.
        found.map(|ahead| from + ahead).ok_or_else(missing)
    })
}

struct Search<'a, 'm, 'f> {
    matcher: &'m mut Matcher<'f>,
    hunk: &'a Hunk,
    from: usize,
    expected: Option<usize>,
}

impl Search<'_, '_, '_> {
    fn whole(&self, at: usize, closeness: Closeness) -> Located {
        Located { at, lines: 0..self.hunk.lines.len(), closeness, fuzz: 0 }
    }

    /// Places a hunk that only adds lines, for which any place fits.
    fn insertion(&self) -> Result<Located, ApplyProblem> {
        let count = self.matcher.file.len();
        let at = match self.expected {
            Some(expected) => expected.max(self.from),
            None if self.hunk.anchors.is_empty() => count,
            None => self.from + 1,
        };
        if at > count {
            let expected = self.hunk.lines.first().map_or("", |line| line.text.as_str());
            return Err(ApplyProblem::PastEnd { count, expected: shortened(expected) });
        }
        let closeness =
            if self.insertion_adapts(at) { Closeness::Endings } else { Closeness::Exact };
        Ok(self.whole(at, closeness))
    }

    /// Tells whether lines that come without context take their endings from the file.
    ///
    /// Where endings are mixed, or the patch writes out carriage returns, it is taken at its word.
    fn insertion_adapts(&self, at: usize) -> bool {
        let file = self.matcher.file;
        let says_returns = self.hunk.lines.iter().any(|line| line.text.ends_with('\r'));
        let behind_unfinished =
            at == file.len() && file.last().is_some_and(|line| !line.ends_with('\n'));
        let mut endings = file.iter().filter_map(|line| Line::new(line).ending).peekable();
        let all_returns = endings.peek().is_some() && endings.all(|it| it == LineEnding::CrLf);
        !says_returns && (behind_unfinished || all_returns)
    }

    /// Looks exactly where the patch says.
    fn as_said(&mut self) -> Option<Located> {
        let at = self.expected.filter(|&at| at >= self.from)?;
        let wanted = old_side(&self.hunk.lines);
        let closeness = [Closeness::Exact, Closeness::Endings, Closeness::Spaces]
            .into_iter()
            .find(|&closeness| self.matcher.fits(&wanted, at, closeness))?;
        Some(self.whole(at, closeness))
    }

    /// Looks everywhere else, with all the context.
    fn elsewhere(&mut self) -> Result<Option<Located>, ApplyProblem> {
        let wanted = old_side(&self.hunk.lines);
        let places = self.matcher.places(&wanted, self.from, Closeness::Endings);
        if let Some(at) = self.choose(&places, wanted.len())? {
            let exact = self.matcher.fits(&wanted, at, Closeness::Exact);
            let closeness = if exact { Closeness::Exact } else { Closeness::Endings };
            return Ok(Some(self.whole(at, closeness)));
        }
        match *self.matcher.places(&wanted, self.from, Closeness::Spaces) {
            [] => Ok(None),
            [at] => Ok(Some(self.whole(at, Closeness::Spaces))),
            [first, second, ..] => Err(ambiguous(first, second)),
        }
    }

    /// Chooses among places that fit equally well.
    fn choose(&self, places: &[usize], length: usize) -> Result<Option<usize>, ApplyProblem> {
        let (first, second) = match *places {
            [] => return Ok(None),
            [only] => return Ok(Some(only)),
            [first, second, ..] => (first, second),
        };
        let end = self.matcher.file.len();
        if let Some(&last) = places.last().filter(|&&at| self.hunk.at_end && at + length == end) {
            return Ok(Some(last));
        }
        if let Some(expected) = self.expected {
            return nearest(places, expected).map(Some);
        }
        // The first place after an anchor is the one that is meant.
        if self.hunk.anchors.is_empty() { Err(ambiguous(first, second)) } else { Ok(Some(first)) }
    }

    /// Gives up context at the ends, as long as a single place fits what is left.
    fn with_less_context(&mut self) -> Option<Located> {
        (1..=MAX_FUZZ).find_map(|fuzz| {
            let lines = trimmed(&self.hunk.lines, fuzz);
            let wanted = old_side(&self.hunk.lines[lines.clone()]);
            if wanted.iter().all(|line| line.text.trim().is_empty()) {
                return None;
            }
            match *self.matcher.places(&wanted, self.from, Closeness::Endings) {
                [at] => Some(Located { at, lines, closeness: Closeness::Endings, fuzz }),
                _ => None,
            }
        })
    }

    /// Says which line does not fit, at the place where most of the first lines do.
    fn mismatch(&mut self) -> ApplyProblem {
        let wanted = old_side(&self.hunk.lines);
        let count = self.matcher.file.len();
        let near = self.expected.unwrap_or(self.from).max(self.from);
        let mut best = (0, near);
        for at in self.from..count {
            let common = self.matcher.common(&wanted, at, Closeness::Endings);
            let nearer = at.abs_diff(near) < best.1.abs_diff(near);
            if common > best.0 || (common == best.0 && common > 0 && nearer) {
                best = (common, at);
            }
        }
        let (common, at) = best;
        let expected = shortened(wanted.get(common).map_or("", |line| line.bare()));
        if common == 0 && self.expected.is_none() {
            return ApplyProblem::NotFound { expected };
        }
        match self.matcher.file.get(at + common) {
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

/// Returns the lines that are left without some context at each end.
fn trimmed(lines: &[HunkLine], fuzz: usize) -> Range<usize> {
    let context = |line: &&HunkLine| line.sign == Sign::Context;
    let start = lines.iter().take(fuzz).take_while(context).count();
    let end = lines[start..].iter().rev().take(fuzz).take_while(context).count();
    start..lines.len() - end
}

/// Returns the place nearest to where the patch says, if there is one.
fn nearest(places: &[usize], expected: usize) -> Result<usize, ApplyProblem> {
    let mut places: Vec<_> = places.iter().map(|&at| (at.abs_diff(expected), at)).collect();
    places.sort_unstable();
    match *places {
        [(near, first), (far, second), ..] if near == far => Err(ambiguous(first, second)),
        [(_, nearest), ..] => Ok(nearest),
        [] => Ok(expected),
    }
}

fn ambiguous(first: usize, second: usize) -> ApplyProblem {
    ApplyProblem::Ambiguous { first: first + 1, second: second + 1 }
}
