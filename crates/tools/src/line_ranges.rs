//! Sets of line numbers.

use std::fmt;

use carrel_edit::diff::LineChange;
use serde::{Deserialize, Serialize};

/// Bounds the memory for one file. Lines beyond it count as not shown.
const MAX_RANGES: usize = 1000;

/// A set of lines, counted from 1: ranges with both ends, sorted and not adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct LineRanges(Vec<(usize, usize)>);

impl LineRanges {
    pub(crate) fn add(&mut self, (first, last): (usize, usize)) {
        let ranges = &mut self.0;
        ranges.push((first, last));
        ranges.sort_unstable();
        let mut joined: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
        for &(first, last) in ranges.iter() {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        joined.truncate(MAX_RANGES);
        *ranges = joined;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether all of so many lines are in the set.
    pub(crate) fn covers(&self, lines: usize) -> bool {
        matches!(self.0.as_slice(), [(1, last)] if *last >= lines)
    }

    /// Returns the set after a change of the file: lines that stay are followed to their new numbers, and new
    /// lines are added, since the author of a change knows them.
    pub(crate) fn after(&self, changes: &[LineChange]) -> Self {
        let mut after = Self::default();
        for &(first, last) in &self.0 {
            let mut rest = first;
            let mut shift = 0;
            let mut keep = |first: usize, last: usize, shift: isize| {
                let moved = |line: usize| line.saturating_add_signed(shift);
                after.add((moved(first), moved(last)));
            };
            for LineChange { old, new } in changes {
                // Ranges of a diff count from 0 and have no last line.
                if old.start >= last {
                    break;
                }
                if rest <= old.start {
                    keep(rest, old.start, shift);
                }
                rest = rest.max(old.end + 1);
                shift = new.end.cast_signed() - old.end.cast_signed();
            }
            if rest <= last {
                keep(rest, last, shift);
            }
        }
        for LineChange { new, .. } in changes.iter().filter(|change| !change.new.is_empty()) {
            after.add((new.start + 1, new.end));
        }
        after
    }
}

impl fmt::Display for LineRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.0.iter().map(|(first, last)| format!("{first}–{last}"));
        f.write_str(&ranges.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn ranges(all: &[(usize, usize)]) -> LineRanges {
        let mut ranges = LineRanges::default();
        for range in all {
            ranges.add(*range);
        }
        ranges
    }

    #[test]
    fn touching_ranges_are_joined() {
        let all = ranges(&[(21, 30), (1, 10), (9, 20)]);
        assert_eq!(all, LineRanges(vec![(1, 30)]));
        assert!(all.covers(30) && !all.covers(31));
        assert_eq!(ranges(&[(1, 3), (7, 7)]).to_string(), "1–3, 7–7");
    }

    #[test]
    fn lines_are_followed_through_a_change() {
        let change = |old, new| LineChange { old, new };
        let known = ranges(&[(1, 10), (21, 30)]);
        // Ten lines more after the fifth.
        let inserted = known.after(&[change(5..5, 5..15)]);
        assert_eq!(inserted, ranges(&[(1, 20), (31, 40)]));
        // Lines 9 to 22 are one line now.
        let replaced = known.after(&[change(8..22, 8..9)]);
        assert_eq!(replaced, ranges(&[(1, 17)]));
        // Two changes: a line is gone, and two are added after line 25.
        let both = known.after(&[change(2..3, 2..2), change(25..25, 24..26)]);
        assert_eq!(both, ranges(&[(1, 9), (20, 31)]));
        assert_eq!(known.after(&[]), known);
        assert_eq!(ranges(&[]).after(&[change(4..6, 4..7)]), ranges(&[(5, 7)]));
    }

    /// Every line of the new version is in the set if and only if it was, or is new.
    #[test]
    fn a_set_after_a_change_agrees_with_the_lines_themselves() {
        let old: Vec<String> = (1..=12).map(|line| format!("line {line}\n")).collect();
        for (from, to, added) in [(0, 0, 2), (3, 5, 1), (11, 12, 4), (2, 9, 0), (12, 12, 3)] {
            let mut new = old.clone();
            let fresh = (0..added).map(|line| format!("new {line}\n"));
            new.splice(from..to, fresh);
            let options = carrel_edit::diff::Options::EXACT;
            let diff = carrel_edit::diff::Diff::between(&old.concat(), &new.concat(), options);
            let known = ranges(&[(2, 4), (8, 11)]);
            let after = known.after(&diff.changes);
            for (index, line) in new.iter().enumerate() {
                let before = old.iter().position(|one| one == line);
                let is_known = before
                    .is_none_or(|at| [2..=4, 8..=11].iter().any(|range| range.contains(&(at + 1))));
                let is_in =
                    after.0.iter().any(|(first, last)| (*first..=*last).contains(&(index + 1)));
                assert_eq!(is_in, is_known, "{from}..{to} + {added}: {line}");
            }
        }
    }
}
