//! Line endings of text that takes the place of other text.
//!
//! Agents see no carriage returns and write none. The text they send therefore takes the endings
//! that stood in the same place, line by line where they are mixed.

use memchr::memchr;

use crate::lines::{Line, LineEnding, lines, with_line_feeds};

/// Returns `new` with the endings of the text it replaces.
///
/// Lines that are the same at the start and at the end keep their own ending, those between take
/// the endings that stood between, and `near` is used where there was none.
pub(crate) fn adapt(old: &str, new: &str, near: LineEnding) -> String {
    if near == LineEnding::Lf && memchr(b'\r', old.as_bytes()).is_none() {
        return with_line_feeds(new).into_owned();
    }
    let old: Vec<Line<'_>> = lines(old).collect();
    let new: Vec<Line<'_>> = lines(new).collect();
    let sources = Sources::between(&old, &new);
    let mut adapted = String::new();
    for (index, line) in new.iter().enumerate() {
        adapted.push_str(line.text);
        if line.ending.is_some() {
            let source = sources.of(index).and_then(|source| source.ending);
            adapted.push_str(source.unwrap_or(near).as_str());
        }
    }
    adapted
}

/// Which old line a new line takes its ending from.
struct Sources<'a> {
    old: &'a [Line<'a>],
    new_count: usize,
    same_start: usize,
    same_end: usize,
}

impl<'a> Sources<'a> {
    fn between(old: &'a [Line<'a>], new: &[Line<'_>]) -> Self {
        let same = |(a, b): &(&Line<'_>, &Line<'_>)| a.text == b.text;
        let same_start = old.iter().zip(new).take_while(same).count();
        let (old_rest, new_rest) = (&old[same_start..], &new[same_start..]);
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
        // Beyond the changed lines, and before any, the last one of them is the nearest.
        changed.get(index).or(changed.last())
    }
}

/// Finds the ending of the line at a position, for positions in ascending order.
pub(crate) struct NearEndings<'a> {
    text: &'a str,
    /// The end of the line that was found last.
    end: usize,
    ending: LineEnding,
}

impl<'a> NearEndings<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, end: 0, ending: LineEnding::Lf }
    }

    /// Returns the ending of the line at `position`, or of the one before an unfinished line.
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
            // The first and the last line stay; the one that is put between is like its neighbour.
            ("a\r\nb\nc\r\n", "a\nb\nnew\nc\n", LineEnding::Lf, "a\r\nb\nnew\nc\r\n"),
            ("a\r\nb\nc\r\n", "x\ny\nz\n", LineEnding::Lf, "x\r\ny\nz\r\n"),
            ("a\nb\r\n", "new\na\nb\n", LineEnding::CrLf, "new\r\na\nb\r\n"),
            ("", "x\ny\n", LineEnding::CrLf, "x\r\ny\r\n"),
            ("a\r\n", "lone\rcr\n", LineEnding::CrLf, "lone\rcr\r\n"),
        ];
        for (old, new, near, want) in cases {
            assert_eq!(adapt(old, new, near), want, "{old:?} -> {new:?}");
        }
    }

    #[test]
    fn an_unfinished_line_is_near_the_ending_before_it() {
        let mut near = NearEndings::new("a\r\nb\nc\r\nd");
        let found: Vec<_> = [0, 3, 5, 8, 9].into_iter().map(|at| near.at(at)).collect();
        let (lf, crlf) = (LineEnding::Lf, LineEnding::CrLf);
        assert_eq!(found, [crlf, lf, crlf, crlf, crlf]);
        assert_eq!(NearEndings::new("").at(0), lf);
    }
}
