//! Lines of one file with the number of times that each ran.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Bounds line numbers; longer files are not source code.
const MAX_LINE: u32 = 10_000_000;

/// Consecutive lines that ran equally often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u32)", into = "(u32, u32, u32)")]
#[expect(missing_docs, reason = "the names say it")]
pub struct LineRun {
    pub first: u32,
    /// Inclusive.
    pub last: u32,
    /// At least 1.
    pub hits: u32,
}

/// The lines of a file that ran, in order and without overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineHits(Vec<LineRun>);

impl LineHits {
    /// Joins runs that may overlap; a line has the highest of its counts. Runs without hits, inverted runs and the
    /// line 0 are left out.
    pub fn of(runs: impl IntoIterator<Item = LineRun>) -> Self {
        let mut changes: BTreeMap<u32, Vec<(u32, bool)>> = BTreeMap::new();
        for run in runs.into_iter().filter(LineRun::is_valid) {
            changes.entry(run.first).or_default().push((run.hits, true));
            changes.entry(run.last + 1).or_default().push((run.hits, false));
        }
        let mut open: BTreeMap<u32, usize> = BTreeMap::new();
        let mut joined = Self::default();
        let mut from = 0;
        for (at, changed) in changes {
            if let Some((hits, _)) = open.last_key_value() {
                joined.push(LineRun { first: from, last: at - 1, hits: *hits });
            }
            for (hits, begins) in changed {
                count(&mut open, hits, begins);
            }
            from = at;
        }
        joined
    }

    fn push(&mut self, run: LineRun) {
        match self.0.last_mut() {
            Some(last) if last.last + 1 == run.first && last.hits == run.hits => {
                last.last = run.last;
            }
            _ => self.0.push(run),
        }
    }

    /// Returns the number of times that a line ran; 0 if it did not.
    pub fn hits(&self, line: u32) -> u32 {
        let after = self.0.partition_point(|run| run.last < line);
        self.0.get(after).filter(|run| run.first <= line).map_or(0, |run| run.hits)
    }

    /// Returns the runs in order.
    pub fn runs(&self) -> &[LineRun] {
        &self.0
    }

    /// Returns the ranges of lines, without regard to counts.
    pub fn ranges(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for run in &self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == run.first => *last = run.last,
                _ => ranges.push((run.first, run.last)),
            }
        }
        ranges
    }

    /// Returns true if no line ran.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl LineRun {
    fn is_valid(&self) -> bool {
        self.hits > 0 && self.first > 0 && self.first <= self.last && self.last <= MAX_LINE
    }
}

impl From<(u32, u32, u32)> for LineRun {
    fn from((first, last, hits): (u32, u32, u32)) -> Self {
        Self { first, last, hits }
    }
}

impl From<LineRun> for (u32, u32, u32) {
    fn from(LineRun { first, last, hits }: LineRun) -> Self {
        (first, last, hits)
    }
}

fn count(open: &mut BTreeMap<u32, usize>, hits: u32, begins: bool) {
    let number = open.entry(hits).or_default();
    if begins {
        *number += 1;
    } else {
        *number = number.saturating_sub(1);
    }
    if *number == 0 {
        open.remove(&hits);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits(runs: &[(u32, u32, u32)]) -> LineHits {
        LineHits::of(runs.iter().map(|run| LineRun::from(*run)))
    }

    #[test]
    fn the_boundaries_of_a_range_belong_to_it() {
        let lines = hits(&[(4, 6, 2)]);
        let counts: Vec<u32> = (3..=7).map(|line| lines.hits(line)).collect();
        assert_eq!(counts, [0, 2, 2, 2, 0]);
    }

    #[test]
    fn lines_without_hits_inverted_ranges_and_line_zero_are_left_out() {
        assert_eq!(hits(&[(1, 9, 0), (5, 3, 1), (0, 4, 1), (1, u32::MAX, 1)]), LineHits::default());
    }

    #[test]
    fn a_line_of_several_ranges_has_the_highest_count() {
        let lines = hits(&[(1, 10, 1), (4, 6, 7), (6, 8, 3), (11, 12, 1)]);
        let expected = [(1, 3, 1), (4, 6, 7), (7, 8, 3), (9, 12, 1)].map(LineRun::from);
        assert_eq!(lines.runs(), expected);
        assert_eq!(lines.ranges(), [(1, 12)]);
    }

    proptest! {
        #[test]
        fn joined_ranges_say_of_each_line_what_the_ranges_said(
            runs in proptest::collection::vec((0_u32..40, 0_u32..40, 0_u32..4), 0..20)
        ) {
            let joined = hits(&runs);
            for line in 0..45 {
                let is_valid = |run: &&(u32, u32, u32)| run.0 > 0 && run.0 <= run.1;
                let at = |run: &&(u32, u32, u32)| run.0 <= line && line <= run.1;
                let most = runs.iter().filter(is_valid).filter(at).map(|run| run.2).max();
                prop_assert_eq!(joined.hits(line), most.unwrap_or(0));
            }
            let again = LineHits::of(joined.runs().iter().copied());
            prop_assert_eq!(again, joined);
        }
    }
}
