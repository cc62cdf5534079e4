//! How large edits may be.

use std::fmt;

use memchr::memchr_iter;

/// How large text may be, by each of three measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Pieces between line feeds; text without any is one.
    pub lines: usize,
    /// Characters.
    pub characters: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Size {
    const ZERO: Self = Self { lines: 0, characters: 0, bytes: 0 };

    const fn bytes(bytes: usize) -> Self {
        Self { lines: usize::MAX, characters: usize::MAX, bytes }
    }

    const fn text(lines: usize, characters: usize) -> Self {
        Self { lines, characters, bytes: usize::MAX }
    }

    /// Tells whether a text is no larger than this.
    pub fn holds(&self, text: &str) -> bool {
        self.holds_size(Self::of(text))
    }

    fn holds_size(&self, size: Self) -> bool {
        size.lines <= self.lines && size.characters <= self.characters && size.bytes <= self.bytes
    }

    fn of(text: &str) -> Self {
        let lines = memchr_iter(b'\n', text.as_bytes()).count() + 1;
        Self { lines, characters: text.chars().count(), bytes: text.len() }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            characters: self.characters + other.characters,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measures =
            [(self.lines, "lines"), (self.characters, "characters"), (self.bytes, "bytes")];
        let bounded = measures.iter().filter(|(limit, _)| *limit < usize::MAX);
        let parts: Vec<_> = bounded.map(|(limit, unit)| format!("{limit} {unit}")).collect();
        f.write_str(&parts.join(" and "))
    }
}

/// How large the edits of one request may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One text to find.
    pub find: Size,
    /// One text to put in the place of a text that was found.
    pub replace: Size,
    /// All that is replaced by a request, unless it is a single line range.
    pub batch: Size,
    /// The number of edits, each of which may copy the file once.
    pub edits: usize,
    /// The places of all edits, each of which takes memory of its own.
    pub replacements: usize,
    /// The bytes of the file afterwards.
    pub result_bytes: usize,
}

/// Keeps a text that is replaced by twice itself, again and again, from taking all memory.
const MAX_REPLACEMENTS: usize = 1_000_000;

impl Limits {
    /// Bounds memory and time, and nothing that an agent would want.
    pub const GENEROUS: Self = Self {
        find: Size::bytes(1024 * 1024),
        replace: Size::bytes(8 * 1024 * 1024),
        batch: Size::bytes(64 * 1024 * 1024),
        edits: 200,
        replacements: MAX_REPLACEMENTS,
        result_bytes: 64 * 1024 * 1024,
    };

    /// Keeps an agent to small, well-aimed edits; large blocks go by line range.
    pub const STRICT: Self = Self {
        find: Size::text(8, 500),
        replace: Size::text(24, 1600),
        batch: Size::text(32, 2400),
        edits: 200,
        replacements: MAX_REPLACEMENTS,
        result_bytes: 64 * 1024 * 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::GENEROUS
    }
}

/// What a request has replaced so far, held against a limit.
#[derive(Debug)]
pub(super) struct Batch {
    total: Size,
    limit: Size,
    /// How many more places may be replaced.
    replacements_left: usize,
}

impl Batch {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { total: Size::ZERO, limit: limits.batch, replacements_left: limits.replacements }
    }

    pub(super) fn replacements_left(&self) -> usize {
        self.replacements_left
    }

    /// Adds text that is replaced. Returns false once it is too much.
    pub(super) fn add(&mut self, text: &str) -> bool {
        self.total = self.total.plus(Size::of(text));
        self.replacements_left = self.replacements_left.saturating_sub(1);
        self.limit.holds_size(self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn each_measure_bounds_alone() {
        let find = Limits::STRICT.find;
        assert!(find.holds(&"x\n".repeat(7)));
        assert!(!find.holds(&"x\n".repeat(8)));
        assert!(find.holds(&"ä".repeat(500)));
        assert!(!find.holds(&"ä".repeat(501)));
    }

    #[test]
    fn limits_are_said_in_the_measures_that_bound() {
        assert_eq!(Limits::STRICT.find.to_string(), "8 lines and 500 characters");
        assert_eq!(Limits::GENEROUS.find.to_string(), "1048576 bytes");
    }
}
