//! Unified diffs between two texts.
//!
//! Lines are compared with their endings, so a diff with [`Options::EXACT`] contains all that a
//! patch needs. One with the default options is for reading: it truncates long lines and stops at a
//! number of lines, and says how many are left out.
//!
//! An edit changes a few lines of a file, so equal lines at both ends are skipped byte-wise before
//! any line is compared (`trim`). The rest is compared with Myers' algorithm within two bounds,
//! because its cost grows with the number of differences: above [`MAX_COMPARED_LINES`] everything
//! between the first and the last difference counts as changed, and after 200 ms the search for a
//! shorter diff stops. In both cases the diff is correct, only longer than it could be.

mod hunk_printer;
mod trim;

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline};

use hunk_printer::HunkPrinter;
use trim::TrimmedTexts;

use crate::lines::raw_lines;

/// Bounds the lines, of both texts together, that are compared with Myers' algorithm.
pub const MAX_COMPARED_LINES: usize = 50_000;

/// Bounds the search for a short diff.
const MAX_SEARCH_TIME: Duration = Duration::from_millis(200);

/// Bounds on the printed size of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Unchanged lines on each side of a change.
    pub context: usize,
    /// Maximum number of lines, hunk headers included.
    pub max_lines: usize,
    /// Maximum number of characters of one line.
    pub max_line_characters: usize,
}

impl Options {
    /// No truncation and three lines of context: a diff that `patch` and `git apply` accept.
    pub const EXACT: Self =
        Self { context: 3, max_lines: usize::MAX, max_line_characters: usize::MAX };
}

impl Default for Options {
    fn default() -> Self {
        Self { context: 2, max_lines: 200, max_line_characters: 500 }
    }
}

/// The difference between two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// The hunks, and a note if lines are left out. Empty if the texts are equal.
    pub text: String,
    /// Number of added lines, including those left out of `text`.
    pub added: usize,
    /// Number of removed lines, including those left out of `text`.
    pub removed: usize,
    /// Number of lines of the diff that are left out of `text`.
    pub lines_left_out: usize,
    /// All changes, in the order of the text.
    pub changes: Vec<LineChange>,
}

impl Diff {
    /// Compares two texts line by line.
    pub fn between(old: &str, new: &str, options: Options) -> Self {
        Self::of_trimmed(&TrimmedTexts::of(old, new, options.context), options)
    }

    fn of_trimmed(
        &TrimmedTexts { old, new, skipped }: &TrimmedTexts<'_>,
        options: Options,
    ) -> Self {
        let old: Vec<&str> = raw_lines(old).collect();
        let new: Vec<&str> = raw_lines(new).collect();
        let changes = changes(&old, &new);
        let mut printer = HunkPrinter::new(options, skipped);
        for group in group(&changes, options.context) {
            printer.hunk(&old, &new, group);
        }
        let (text, lines_left_out) = printer.finish();
        let added = changes.iter().map(|change| change.new.len()).sum();
        let removed = changes.iter().map(|change| change.old.len()).sum();
        let changes = changes.into_iter().map(|change| change.after(skipped)).collect();
        Self { text, added, removed, lines_left_out, changes }
    }

    /// Returns the diff below `--- a/old` and `+++ b/new` lines, or an empty string if the texts
    /// are equal. `None` is written as `/dev/null`, for a file that is created or deleted.
    pub fn with_names(&self, old: Option<&str>, new: Option<&str>) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let name = |prefix: &str, name: Option<&str>| {
            name.map_or("/dev/null".to_owned(), |name| format!("{prefix}/{name}"))
        };
        format!("--- {}\n+++ {}\n{}", name("a", old), name("b", new), self.text)
    }
}

/// A range of old lines that is replaced by a range of new lines. Lines are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// The old lines; empty if lines are inserted.
    pub old: Range<usize>,
    /// The new lines; empty if lines are removed.
    pub new: Range<usize>,
}

impl LineChange {
    /// Returns the change in texts with so many more lines before it.
    fn after(self, lines: usize) -> Self {
        let moved = |range: Range<usize>| range.start + lines..range.end + lines;
        Self { old: moved(self.old), new: moved(self.new) }
    }
}

fn changes(old: &[&str], new: &[&str]) -> Vec<LineChange> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let old_rest = &old[start..];
    let new_rest = &new[start..];
    let rest = old_rest.iter().rev().zip(new_rest.iter().rev());
    let end = rest.take_while(|(a, b)| a == b).count();
    let old_middle = &old_rest[..old_rest.len() - end];
    let new_middle = &new_rest[..new_rest.len() - end];
    if old_middle.is_empty() && new_middle.is_empty() {
        return Vec::new();
    }
    if old_middle.len() + new_middle.len() > MAX_COMPARED_LINES {
        let old_end = start + old_middle.len();
        let new_end = start + new_middle.len();
        return vec![LineChange { old: start..old_end, new: start..new_end }];
    }
    let deadline = Some(Instant::now() + MAX_SEARCH_TIME);
    let found = capture_diff_slices_deadline(Algorithm::Myers, old_middle, new_middle, deadline);
    let shifted = |range: Range<usize>| range.start + start..range.end + start;
    let changed = found.iter().filter(|one| one.tag() != DiffTag::Equal);
    let change =
        |one: &DiffOp| LineChange { old: shifted(one.old_range()), new: shifted(one.new_range()) };
    changed.map(change).collect()
}

/// Groups changes whose context lines touch into one hunk.
fn group(changes: &[LineChange], context: usize) -> impl Iterator<Item = &[LineChange]> {
    changes.chunk_by(move |before, after| {
        after.old.start - before.old.end <= context.saturating_mul(2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    fn numbered(range: Range<usize>) -> String {
        range.map(|n| format!("{n}\n")).collect::<Vec<_>>().concat()
    }

    #[test]
    fn changes_are_shown_with_their_context() {
        let old = numbered(1..20);
        let new = old.replace("\n5\n", "\nfive\n").replace("\n9\n", "\n");
        let new = new.replace("\n18\n", "\n18\nnew\n");
        let diff = Diff::between(&old, &new, Options::default());
        let want = "@@ -3,9 +3,8 @@\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n-9\n 10\n 11\n\
                    @@ -17,3 +16,4 @@\n 17\n 18\n+new\n 19\n";
        assert_eq!(diff.text, want);
        assert_eq!((diff.added, diff.removed), (2, 2));
    }

    #[test]
    fn lines_are_counted_from_the_beginning_of_the_file() {
        let old = numbered(1..20_000);
        let new = old.replace("\n15000\n", "\nnew\n");
        let diff = Diff::between(&old, &new, Options { context: 1, ..Options::default() });
        assert_eq!(diff.text, "@@ -14999,3 +14999,3 @@\n 14999\n-15000\n+new\n 15001\n");
    }

    #[test]
    fn missing_final_newlines_are_marked() {
        let cases = [
            ("", "", ""),
            ("a\n", "a\n", ""),
            ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
            ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
            ("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
            ("a\r\n", "a\n", "@@ -1 +1 @@\n-a\r\n+a\n"),
        ];
        for (old, new, want) in cases {
            assert_eq!(Diff::between(old, new, Options::EXACT).text, want);
        }
    }

    #[test]
    fn file_names_are_printed_above_a_diff_that_is_not_empty() {
        let diff = Diff::between("", "a\n", Options::EXACT);
        let want = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n";
        assert_eq!(diff.with_names(None, Some("f")), want);
        let same = Diff::between("a", "a", Options::EXACT);
        assert_eq!(same.with_names(Some("f"), Some("f")), "");
    }

    #[test]
    fn lines_beyond_the_budget_are_counted() {
        let options = Options { context: 0, max_lines: 3, max_line_characters: 2 };
        let diff = Diff::between("", &numbered(998..1008), options);
        let cut = "+99… [1 more character]\n";
        assert_eq!(diff.text, format!("@@ -0,0 +1,10 @@\n{cut}{cut}… 8 more lines\n"));
        assert_eq!((diff.added, diff.lines_left_out), (10, 8));
    }

    #[test]
    fn huge_texts_without_a_common_line_are_compared_in_bounded_time() {
        for count in [20_000, 100_000] {
            let start = Instant::now();
            let diff =
                Diff::between(&numbered(0..count), &numbered(count..2 * count), Options::default());
            assert_eq!((diff.added, diff.removed), (count, count));
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        }
    }

    fn text() -> impl Strategy<Value = String> {
        let line = prop::sample::select(vec!["a\n", "b\n", "\n", "a\r\n", "é\n"]);
        let end = prop::sample::select(vec!["", "a", "é"]);
        (prop::collection::vec(line, 0..12), end).prop_map(|(lines, end)| lines.concat() + end)
    }

    proptest! {
        #[test]
        fn trimming_equal_ends_does_not_change_the_diff(
            old in text(),
            new in text(),
            context in 0..4_usize,
        ) {
            let options = Options { context, ..Options::EXACT };
            let whole = TrimmedTexts { old: &old, new: &new, skipped: 0 };
            let want = Diff::of_trimmed(&whole, options);
            prop_assert_eq!(Diff::between(&old, &new, options), want);
        }
    }
}
