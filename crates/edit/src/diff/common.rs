//! What two texts have in common at their ends, which is nearly everything after an edit.

use memchr::{memchr_iter, memrchr, memrchr_iter};

/// How much is compared at once while texts are the same.
const STEP: usize = 4096;

/// Two texts without the lines at their ends that are the same and not shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Middle<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    /// How many lines stand before it, in both.
    pub(super) skipped: usize,
}

impl<'a> Middle<'a> {
    /// Leaves out the lines that are the same at both ends, but for so many beside the first and the
    /// last difference.
    pub(super) fn of(old: &'a str, new: &'a str, context: usize) -> Self {
        let start = start_of_context(&old[..same_start(old, new)], context);
        let (skipped, old, new) = (&old[..start], &old[start..], &new[start..]);
        // What is kept at the start may be all that one text has; the rest of it is no end.
        let kept = same_start(old, new);
        let (old_rest, new_rest) = (&old[kept..], &new[kept..]);
        let end = same_end(old_rest, new_rest);
        let end = end - length_of_context(&old_rest[old_rest.len() - end..], context);
        Self {
            old: &old[..old.len() - end],
            new: &new[..new.len() - end],
            skipped: memchr_iter(b'\n', skipped.as_bytes()).count(),
        }
    }
}

/// Returns how many bytes the lines have that both texts begin with.
fn same_start(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let pairs = one.chunks(STEP).zip(other.chunks(STEP));
    let steps = pairs.take_while(|(one, other)| one == other).count();
    let at = (steps * STEP).min(one.len()).min(other.len());
    let rest = one[at..].iter().zip(&other[at..]);
    let same = at + rest.take_while(|(one, other)| one == other).count();
    memrchr(b'\n', &one[..same]).map_or(0, |end| end + 1)
}

/// Returns how many bytes the lines have that both texts end with.
fn same_end(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let pairs = one.rchunks(STEP).zip(other.rchunks(STEP));
    let steps = pairs.take_while(|(one, other)| one == other).count();
    let at = (steps * STEP).min(one.len()).min(other.len());
    let rest = one[..one.len() - at].iter().rev().zip(other[..other.len() - at].iter().rev());
    let same = at + rest.take_while(|(one, other)| one == other).count();
    // The first of these lines may begin earlier, and differently. If it does not, it is compared
    // once more, with what is left.
    let lines = &one[one.len() - same..];
    memchr_iter(b'\n', lines).next().map_or(0, |end| lines.len() - end - 1)
}

/// Returns where the last so many lines begin.
fn start_of_context(lines: &str, count: usize) -> usize {
    memrchr_iter(b'\n', lines.as_bytes()).nth(count).map_or(0, |end| end + 1)
}

/// Returns how long the first so many lines are.
fn length_of_context(lines: &str, count: usize) -> usize {
    let Some(last) = count.checked_sub(1) else { return 0 };
    memchr_iter(b'\n', lines.as_bytes()).nth(last).map_or(lines.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn middle<'a>(old: &'a str, new: &'a str, context: usize) -> (&'a str, &'a str, usize) {
        let Middle { old, new, skipped } = Middle::of(old, new, context);
        (old, new, skipped)
    }

    #[test]
    fn only_the_context_is_left_around_a_difference() {
        let (old, new) = ("1\n2\n3\nx\n4\n5\n6\n", "1\n2\n3\ny\nz\n4\n5\n6\n");
        assert_eq!(middle(old, new, 0), ("x\n", "y\nz\n", 3));
        assert_eq!(middle(old, new, 1), ("3\nx\n4\n", "3\ny\nz\n4\n", 2));
        assert_eq!(middle(old, new, usize::MAX), (old, new, 0));
    }

    #[test]
    fn an_end_is_not_counted_twice() {
        assert_eq!(middle("a\na\n", "a\na\na\n", 0), ("", "a\n", 2));
        assert_eq!(middle("a", "a\n", 1), ("a", "a\n", 0));
        assert_eq!(middle("same\n", "same\n", 0), ("", "", 1));
    }

    #[test]
    fn long_texts_are_compared_in_steps() {
        let long = "line\n".repeat(5000);
        let (old, new) = (format!("{long}x\n{long}"), format!("{long}yy\n{long}"));
        assert_eq!(middle(&old, &new, 1), ("line\nx\nline\n", "line\nyy\nline\n", 4999));
    }
}
