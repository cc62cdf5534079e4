//! Bounds on the size of edits.
//!
//! [`Limits::GENEROUS`] protects memory and time only. [`Limits::STRICT`] is for projects that
//! request small, reviewable steps (`[edit] limits = "strict"` in `carrel.toml`).

use std::fmt;

use memchr::memchr_iter;

/// A bound on a text in three units, each of which must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of line feeds plus one.
    pub lines: usize,
    /// Unicode scalar values.
    pub characters: usize,
    /// Bytes in UTF-8.
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

    /// Returns true if a text exceeds none of the bounds.
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

/// Bounds on the edits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One text to find.
    pub find: Size,
    /// One replacement of a text; line ranges are not bound by it.
    pub replace: Size,
    /// The sum of all replaced text, unless the request is a single line range.
    pub batch: Size,
    /// Number of edits, each of which may copy the file once.
    pub edits: usize,
    /// Number of replacements of all edits, each of which takes memory of its own.
    pub replacements: usize,
    /// Bytes of the resulting file.
    pub result_bytes: usize,
}

impl Limits {
    /// Bounds memory and time and is far above what an agent writes.
    pub const GENEROUS: Self = Self {
        find: Size::bytes(1024 * 1024),
        replace: Size::bytes(8 * 1024 * 1024),
        batch: Size::bytes(64 * 1024 * 1024),
        edits: 200,
        // Bounds repeated edits that each double the number of occurrences.
        replacements: 1_000_000,
        result_bytes: 64 * 1024 * 1024,
    };

    /// Bounds edits to a few lines each; larger blocks need a single line range.
    pub const STRICT: Self = Self {
        find: Size::text(8, 500),
        replace: Size::text(24, 1600),
        batch: Size::text(32, 2400),
        ..Self::GENEROUS
    };
}

/// The text that a request has replaced so far.
#[derive(Debug)]
pub(super) struct BatchUsage {
    total: Size,
    limit: Size,
    pub(super) replacements_left: usize,
}

impl BatchUsage {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { total: Size::ZERO, limit: limits.batch, replacements_left: limits.replacements }
    }

    /// Adds one replaced text; returns false if the sum exceeds the limit.
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
    fn each_unit_bounds_alone() {
        let find = Limits::STRICT.find;
        assert!(find.holds(&"x\n".repeat(7)));
        assert!(!find.holds(&"x\n".repeat(8)));
        assert!(find.holds(&"ä".repeat(500)));
        assert!(!find.holds(&"ä".repeat(501)));
    }

    #[test]
    fn limits_are_printed_in_the_units_that_are_bounded() {
        assert_eq!(Limits::STRICT.find.to_string(), "8 lines and 500 characters");
        assert_eq!(Limits::GENEROUS.find.to_string(), "1048576 bytes");
    }
}
