//! Comparing lines of a patch with lines of a file.

use super::HunkLine;
use crate::lines::Line;

/// Bounds the lines that are compared for one file, so that no patch takes forever. A hunk that is
/// not found within it is taken not to be there.
const MAX_COMPARISONS: usize = 10_000_000;

/// Bounds the places that are looked at when a hunk fits in many.
const MAX_PLACES: usize = 1000;

/// How much two lines have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closeness {
    /// Everything, endings included.
    Exact,
    /// Everything but the ending.
    Endings,
    /// Everything but white space at the end.
    Spaces,
}

/// A file that hunks are looked for in.
pub(super) struct Matcher<'a> {
    /// Its lines with their endings.
    pub(super) file: &'a [&'a str],
    comparisons: usize,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(file: &'a [&'a str]) -> Self {
        Self { file, comparisons: 0 }
    }

    /// Tells whether lines of a patch stand in the file after its first `at` lines.
    pub(super) fn fits(&mut self, wanted: &[&HunkLine], at: usize, closeness: Closeness) -> bool {
        self.file.len().checked_sub(at).is_some_and(|left| left >= wanted.len())
            && self.common(wanted, at, closeness) == wanted.len()
    }

    /// Returns how many lines fit before the first that does not.
    pub(super) fn common(
        &mut self,
        wanted: &[&HunkLine],
        at: usize,
        closeness: Closeness,
    ) -> usize {
        let there = self.file.iter().skip(at);
        let allowed = MAX_COMPARISONS.saturating_sub(self.comparisons);
        let pairs = there.zip(wanted).take(allowed);
        let common = pairs.take_while(|(file, wanted)| fits(file, wanted, closeness)).count();
        self.comparisons += common + 1;
        common
    }

    /// Returns the places where lines of a patch stand, from the first `from` lines on.
    pub(super) fn places(
        &mut self,
        wanted: &[&HunkLine],
        from: usize,
        closeness: Closeness,
    ) -> Vec<usize> {
        let last = (self.file.len() + 1).saturating_sub(wanted.len());
        let fitting = (from..last).filter(|&at| self.fits(wanted, at, closeness));
        fitting.take(MAX_PLACES).collect()
    }
}

fn fits(file: &str, wanted: &HunkLine, closeness: Closeness) -> bool {
    match closeness {
        Closeness::Exact => {
            let text = if wanted.ended { file.strip_suffix('\n') } else { Some(file) };
            text == Some(wanted.text.as_str()) && (wanted.ended || !file.ends_with('\n'))
        }
        Closeness::Endings => Line::new(file).text == wanted.bare(),
        Closeness::Spaces => file.trim_end() == wanted.text.trim_end(),
    }
}
