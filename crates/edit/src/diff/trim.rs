//! Removal of the lines that two texts have in common at their start and end.
//!
//! After an edit this is nearly the whole file. Comparing it in chunks of bytes is cheaper than
//! splitting it into lines: only the context lines around the difference are kept for the diff.

use memchr::{memchr_iter, memrchr, memrchr_iter};

/// Chunk size of the comparison; slices of this length compare with `memcmp`.
const STEP: usize = 4096;

/// Two texts without their common leading and trailing lines, except for context.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TrimmedTexts<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    /// Number of removed leading lines, for the line numbers of hunk headers.
    pub(super) skipped: usize,
}

impl<'a> TrimmedTexts<'a> {
    /// Removes common lines at both ends and keeps `context` of them beside the first and the last
    /// difference.
    pub(super) fn of(old: &'a str, new: &'a str, context: usize) -> Self {
        let start = context_start(&old[..common_prefix(old, new)], context);
        let skipped = &old[..start];
        let old = &old[start..];
        let new = &new[start..];
        // The common suffix must not overlap the common prefix, or lines would count twice.
        let kept = common_prefix(old, new);
        let old_rest = &old[kept..];
        let new_rest = &new[kept..];
        let end = common_suffix(old_rest, new_rest);
        let end = end - context_length(&old_rest[old_rest.len() - end..], context);
        Self {
            old: &old[..old.len() - end],
            new: &new[..new.len() - end],
            skipped: memchr_iter(b'\n', skipped.as_bytes()).count(),
        }
    }
}

/// Returns the length in bytes of the whole lines that both texts begin with.
fn common_prefix(one: &str, other: &str) -> usize {
    let one = one.as_bytes();
    let other = other.as_bytes();
    let pairs = one.chunks(STEP).zip(other.chunks(STEP));
    let steps = pairs.take_while(|(one, other)| one == other).count();
    let at = (steps * STEP).min(one.len()).min(other.len());
    let rest = one[at..].iter().zip(&other[at..]);
    let same = at + rest.take_while(|(one, other)| one == other).count();
    memrchr(b'\n', &one[..same]).map_or(0, |end| end + 1)
}

/// Returns the length in bytes of the whole lines that both texts end with.
fn common_suffix(one: &str, other: &str) -> usize {
    let one = one.as_bytes();
    let other = other.as_bytes();
    let pairs = one.rchunks(STEP).zip(other.rchunks(STEP));
    let steps = pairs.take_while(|(one, other)| one == other).count();
    let at = (steps * STEP).min(one.len()).min(other.len());
    let rest = one[..one.len() - at].iter().rev().zip(other[..other.len() - at].iter().rev());
    let same = at + rest.take_while(|(one, other)| one == other).count();
    // The first of these lines may begin before the common bytes and differ there, so it is left
    // to the line comparison.
    let lines = &one[one.len() - same..];
    memchr_iter(b'\n', lines).next().map_or(0, |end| lines.len() - end - 1)
}

/// Returns the offset of the last `count` lines.
fn context_start(lines: &str, count: usize) -> usize {
    memrchr_iter(b'\n', lines.as_bytes()).nth(count).map_or(0, |end| end + 1)
}

/// Returns the length in bytes of the first `count` lines.
fn context_length(lines: &str, count: usize) -> usize {
    let Some(last) = count.checked_sub(1) else { return 0 };
    memchr_iter(b'\n', lines.as_bytes()).nth(last).map_or(lines.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn middle<'a>(old: &'a str, new: &'a str, context: usize) -> (&'a str, &'a str, usize) {
        let TrimmedTexts { old, new, skipped } = TrimmedTexts::of(old, new, context);
        (old, new, skipped)
    }

    #[test]
    fn only_the_context_is_left_around_a_difference() {
        let old = "1\n2\n3\nx\n4\n5\n6\n";
        let new = "1\n2\n3\ny\nz\n4\n5\n6\n";
        assert_eq!(middle(old, new, 0), ("x\n", "y\nz\n", 3));
        assert_eq!(middle(old, new, 1), ("3\nx\n4\n", "3\ny\nz\n4\n", 2));
        assert_eq!(middle(old, new, usize::MAX), (old, new, 0));
    }

    #[test]
    fn a_common_suffix_does_not_overlap_the_prefix() {
        assert_eq!(middle("a\na\n", "a\na\na\n", 0), ("", "a\n", 2));
        assert_eq!(middle("a", "a\n", 1), ("a", "a\n", 0));
        assert_eq!(middle("same\n", "same\n", 0), ("", "", 1));
    }

    #[test]
    fn long_texts_are_compared_in_chunks() {
        let long = "line\n".repeat(5000);
        let old = format!("{long}x\n{long}");
        let new = format!("{long}yy\n{long}");
        assert_eq!(middle(&old, &new, 1), ("line\nx\nline\n", "line\nyy\nline\n", 4999));
    }
}
