//! The one range of a text that an edit replaces, and the line endings of what is put there.

use std::borrow::Cow;
use std::ops::Range;

use super::Change;

/// A range of a text and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(crate) new: String,
}

impl Splice {
    pub(crate) fn new(range: Range<usize>, new: impl Into<String>) -> Self {
        Self { range, new: new.into() }
    }

    /// Returns the whole text with the range replaced.
    pub(crate) fn apply(&self, text: &str) -> String {
        let length = text.len() - self.range.len() + self.new.len();
        let mut result = String::with_capacity(length);
        result.push_str(&text[..self.range.start]);
        result.push_str(&self.new);
        result.push_str(&text[self.range.end..]);
        result
    }

    /// Returns the range in the result.
    pub(crate) fn new_range(&self) -> Range<usize> {
        self.range.start..self.range.start + self.new.len()
    }

    /// Returns the place in the result of something that begins here, if that is not inside of the range.
    pub(crate) fn moved_start(&self, at: usize) -> Option<usize> {
        if at >= self.range.end {
            Some(at - self.range.len() + self.new.len())
        } else {
            (at <= self.range.start).then_some(at)
        }
    }

    /// Returns the place in the result of something that ends here, if that is not inside of the range.
    pub(crate) fn moved_end(&self, at: usize) -> Option<usize> {
        if at <= self.range.start {
            Some(at)
        } else {
            (at >= self.range.end).then(|| at - self.range.len() + self.new.len())
        }
    }

    /// Describes the change from one text to the other.
    pub(crate) fn change(&self, old: &str, new: &str) -> Change {
        let new_range = self.new_range();
        Change {
            old_lines: lines_of(old, &self.range),
            new_lines: lines_of(new, &new_range),
            old: self.range.clone(),
            new: new_range,
        }
    }
}

/// Returns the line of a byte, counted from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    1 + memchr::memchr_iter(b'\n', before).count()
}

fn lines_of(text: &str, range: &Range<usize>) -> (usize, usize) {
    let first = line_of(text, range.start);
    let inside = &text.as_bytes()[range.clone()];
    // The line feed at the end belongs to the line that it ends.
    let inside = inside.strip_suffix(b"\n").unwrap_or(inside);
    (first, first + memchr::memchr_iter(b'\n', inside).count())
}

/// Returns the line ending of the line at a place, or of the line before it if it has none.
pub(crate) fn line_feed_of(text: &str, at: usize) -> &'static str {
    let bytes = text.as_bytes();
    let after = memchr::memchr(b'\n', &bytes[at..]).map(|feed| at + feed);
    let feed = after.or_else(|| memchr::memrchr(b'\n', &bytes[..at]));
    match feed {
        Some(feed) if feed > 0 && bytes[feed - 1] == b'\r' => "\r\n",
        _ => "\n",
    }
}

/// Returns a text of lines with line feeds alone, with these endings.
pub(crate) fn with_endings<'t>(text: &'t str, ending: &str) -> Cow<'t, str> {
    match ending {
        "\n" => Cow::Borrowed(text),
        ending => Cow::Owned(text.replace('\n', ending)),
    }
}

/// Returns the start of the line of a place.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |feed| feed + 1)
}

/// Returns the end of the line of a place, before its line ending.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |feed| at + feed);
    let carriage = end > at && text.as_bytes()[end - 1] == b'\r';
    end - usize::from(carriage)
}

/// Returns the start of the line below the line of a place.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |feed| at + feed + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_splice_moves_what_is_behind_it() {
        let splice = Splice::new(2..4, "xyz");
        assert_eq!(splice.apply("abcdef"), "abxyzef");
        let starts: Vec<_> = (0..=5).map(|at| splice.moved_start(at)).collect();
        assert_eq!(starts, [Some(0), Some(1), Some(2), None, Some(5), Some(6)]);
        let insertion = Splice::new(2..2, "xyz");
        assert_eq!((insertion.moved_start(2), insertion.moved_end(2)), (Some(5), Some(2)));
    }

    #[test]
    fn a_line_takes_the_ending_of_its_neighbour() {
        assert_eq!(line_feed_of("a\r\nb\nc", 0), "\r\n");
        assert_eq!(line_feed_of("a\r\nb\nc", 3), "\n");
        assert_eq!(line_feed_of("a\r\nb", 4), "\r\n");
        assert_eq!(line_feed_of("", 0), "\n");
        assert_eq!(with_endings("a\nb", "\r\n"), "a\r\nb");
        let text = "ab\r\ncd";
        assert_eq!((line_start(text, 5), line_end(text, 1), next_line(text, 1)), (4, 2, 4));
    }
}
