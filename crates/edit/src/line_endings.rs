//! Line endings of replacement text.
//!
//! Agents see no carriage returns and write none, but files may have CRLF endings, or both kinds.
//! Text that replaces other text therefore takes the endings of what it replaces: lines that are
//! equal at the start and at the end keep their own ending, lines between take those of the
//! replaced lines at the same position, and further lines repeat the last one. A text without any
//! ending takes that of the line it is inserted into. The result of an edit differs from the file
//! only where the agent meant it to.

use memchr::memchr;

use crate::lines::{Line, LineEnding, lines, with_line_feeds};

/// Returns `new` with the line endings of `old`; `fallback` is used where `old` has none.
pub(crate) fn adapt_endings(old: &str, new: &str, fallback: LineEnding) -> String {
    if fallback == LineEnding::Lf && memchr(b'\r', old.as_bytes()).is_none() {
        return with_line_feeds(new).into_owned();
    }
    let old: Vec<Line<'_>> = lines(old).collect();
    let new: Vec<Line<'_>> = lines(new).collect();
    let sources = EndingSources::between(&old, &new);
    let mut adapted = String::new();
    for (index, line) in new.iter().enumerate() {
        adapted.push_str(line.text);
        if line.ending.is_some() {
            let source = sources.of(index).and_then(|source| source.ending);
            adapted.push_str(source.unwrap_or(fallback).as_str());
        }
    }
    adapted
}

/// The mapping from lines of the new text to the old line whose ending they take.
struct EndingSources<'a> {
    old: &'a [Line<'a>],
    new_count: usize,
    same_start: usize,
    same_end: usize,
}

impl<'a> EndingSources<'a> {
    fn between(old: &'a [Line<'a>], new: &[Line<'_>]) -> Self {
        let same = |(a, b): &(&Line<'_>, &Line<'_>)| a.text == b.text;
        let same_start = old.iter().zip(new).take_while(same).count();
        let old_rest = &old[same_start..];
        let new_rest = &new[same_start..];
        let same_end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
        Self { old, new_count: new.len(), same_start, same_end }
    }

    fn of(&self, index: usize) -> Option<&'a Line<'a>> {
        let from_end = self.new_count - index;
        if index < self.same_start {
            return self.old.get(index);
        }
        if from_end <= self.same_end {
            return self.old.get(self.old.len() - from_end);
        }
        let changed = &self.old[..self.old.len() - self.same_end];
        // Inserted lines past the changed ones are nearest to the last of them.
        changed.get(index).or(changed.last())
    }
}

/// A forward scan that finds the ending of the line at a position. Positions must ascend, so that
/// thousands of replacements cost one pass over the text.
pub(crate) struct EndingLookup<'a> {
    text: &'a str,
    /// End of the last scanned line.
    end: usize,
    ending: LineEnding,
}

impl<'a> EndingLookup<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, end: 0, ending: LineEnding::Lf }
    }

    /// Returns the ending of the line at `position`; the unterminated last line has that of the
    /// line before it.
    pub(crate) fn at(&mut self, position: usize) -> LineEnding {
        while self.end <= position && self.end < self.text.len() {
            let start = self.end;
            let length = memchr(b'\n', &self.text.as_bytes()[start..]);
            self.end = length.map_or(self.text.len(), |length| start + length + 1);
            self.ending = Line::new(&self.text[start..self.end]).ending.unwrap_or(self.ending);
        }
        self.ending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn new_text_takes_the_endings_of_what_it_replaces() {
        let cases = [
            ("a\nb", "x\r\ny\n", LineEnding::Lf, "x\ny\n"),
            ("a\r\nb", "x\ny\nz", LineEnding::CrLf, "x\r\ny\r\nz"),
            ("word", "x\ny", LineEnding::CrLf, "x\r\ny"),
            // The first and the last line stay; the inserted line takes the ending of its neighbour.
            ("a\r\nb\nc\r\n", "a\nb\nnew\nc\n", LineEnding::Lf, "a\r\nb\nnew\nc\r\n"),
            ("a\r\nb\nc\r\n", "x\ny\nz\n", LineEnding::Lf, "x\r\ny\nz\r\n"),
            ("a\nb\r\n", "new\na\nb\n", LineEnding::CrLf, "new\r\na\nb\r\n"),
            ("", "x\ny\n", LineEnding::CrLf, "x\r\ny\r\n"),
            ("a\r\n", "lone\rcr\n", LineEnding::CrLf, "lone\rcr\r\n"),
        ];
        for (old, new, near, want) in cases {
            assert_eq!(adapt_endings(old, new, near), want, "{old:?} -> {new:?}");
        }
    }

    #[test]
    fn an_unterminated_line_takes_the_ending_before_it() {
        let mut near = EndingLookup::new("a\r\nb\nc\r\nd");
        let found: Vec<_> = [0, 3, 5, 8, 9].into_iter().map(|at| near.at(at)).collect();
        let lf = LineEnding::Lf;
        let crlf = LineEnding::CrLf;
        assert_eq!(found, [crlf, lf, crlf, crlf, crlf]);
        assert_eq!(EndingLookup::new("").at(0), lf);
    }
}
