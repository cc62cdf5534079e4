//! Positions of the protocol, and byte offsets in a text.
//!
//! The protocol counts lines from 0 and columns in code units of an encoding that client and server negotiate. What ends
//! a line is not negotiated: the specification says `\n`, `\r\n` and `\r`, some servers know `\n` alone, and TypeScript
//! adds two characters of Unicode. Conversions here follow the server, and Carrel's own places ([`Place`]) count lines
//! by `\n` as all its tools do.
//!
//! A column beyond the end of its line means the end of the line, as the specification says, and one inside a
//! character means the start of that. A line that the text does not have is an error of the server.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A position as the protocol counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) character: u32,
}

/// A range as the protocol counts it. The end is excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Range {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

/// The unit of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PositionEncoding {
    Utf8,
    /// The unit of a server that names none.
    #[default]
    Utf16,
    Utf32,
}

/// The characters that end a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineBreaks {
    /// `\n`, and `\r\n` with it.
    Newline,
    /// The same, and `\r` alone.
    CarriageReturn,
    /// The same, U+2028 and U+2029.
    JavaScript,
}

/// A place in a text, for people and tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The byte offset in the file.
    pub offset: usize,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 1.
    pub byte_column: usize,
    /// The column in characters, counted from 1.
    pub char_column: usize,
}

/// A part of a text. The end is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the fields are the two ends")]
pub struct TextRange {
    pub start: Place,
    pub end: Place,
}

/// The lines of a text as a server sees them.
#[derive(Clone, Debug)]
pub(crate) struct TextIndex<'t> {
    text: &'t str,
    /// The offset of each line.
    starts: Vec<usize>,
    /// The same for Carrel's lines, where they differ.
    own_starts: Option<Vec<usize>>,
    encoding: PositionEncoding,
}

impl PositionEncoding {
    /// The names of the protocol, the preferred first.
    pub(crate) const NAMES: [&str; 3] = ["utf-8", "utf-32", "utf-16"];

    /// Returns the encoding that a server has chosen, by the specification or by the older extension of clangd.
    pub(crate) fn of_initialize_result(result: &Value) -> Self {
        let chosen = [&result["capabilities"]["positionEncoding"], &result["offsetEncoding"]];
        match chosen.into_iter().find_map(Value::as_str) {
            Some("utf-8") => Self::Utf8,
            Some("utf-32") => Self::Utf32,
            _ => Self::Utf16,
        }
    }

    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

impl LineBreaks {
    fn starts(self, text: &str) -> Vec<usize> {
        let bytes = text.as_bytes();
        let feeds = memchr::memchr_iter(b'\n', bytes).map(|feed| feed + 1);
        let mut starts: Vec<_> = std::iter::once(0).chain(feeds).collect();
        let of_feeds = starts.len();
        if self != Self::Newline {
            let returns = memchr::memchr_iter(b'\r', bytes).map(|at| at + 1);
            starts.extend(returns.filter(|next| bytes.get(*next) != Some(&b'\n')));
        }
        if self == Self::JavaScript {
            let separators = memchr::memchr_iter(0xe2, bytes);
            starts.extend(separators.filter(|at| is_separator(&bytes[*at..])).map(|at| at + 3));
        }
        if starts.len() > of_feeds {
            starts.sort_unstable();
        }
        starts
    }
}

/// Returns whether U+2028 or U+2029 comes first.
fn is_separator(bytes: &[u8]) -> bool {
    matches!(bytes, [0xe2, 0x80, 0xa8 | 0xa9, ..])
}

impl<'t> TextIndex<'t> {
    pub(crate) fn new(text: &'t str, encoding: PositionEncoding, breaks: LineBreaks) -> Self {
        let starts = breaks.starts(text);
        let own = || LineBreaks::Newline.starts(text);
        let own_starts = if breaks == LineBreaks::Newline {
            None
        } else {
            Some(own()).filter(|own| *own != starts)
        };
        Self { text, starts, own_starts, encoding }
    }

    /// Returns the byte offset of a position; `None` if the text has no such line. The line after the last one, with
    /// which servers write the end of a text, is its end.
    pub(crate) fn offset(&self, position: Position) -> Option<usize> {
        let line = usize::try_from(position.line).ok()?;
        if line == self.starts.len() && position.character == 0 {
            return Some(self.text.len());
        }
        let start = *self.starts.get(line)?;
        let mut left = usize::try_from(position.character).ok()?;
        for (index, character) in self.line(line).char_indices() {
            let width = self.encoding.width(character);
            if left < width {
                return Some(start + index);
            }
            left -= width;
        }
        Some(start + self.line(line).len())
    }

    /// Returns the position of a byte offset. One inside a character is that of its start, and one beyond the text is
    /// its end.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        let before = &self.text[self.starts[line]..offset];
        let character: usize = before.chars().map(|character| self.encoding.width(character)).sum();
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        Position { line: number(line), character: number(character) }
    }

    pub(crate) fn byte_range(&self, range: Range) -> Option<std::ops::Range<usize>> {
        let (start, end) = (self.offset(range.start)?, self.offset(range.end)?);
        (start <= end).then_some(start..end)
    }

    pub(crate) fn text_range(&self, range: Range) -> Option<TextRange> {
        let range = self.byte_range(range)?;
        Some(TextRange { start: self.place(range.start), end: self.place(range.end) })
    }

    fn place(&self, offset: usize) -> Place {
        let starts = self.own_starts.as_ref().unwrap_or(&self.starts);
        let line = starts.partition_point(|start| *start <= offset);
        let before = &self.text[starts[line - 1]..offset];
        Place {
            offset,
            line,
            byte_column: before.len() + 1,
            char_column: before.chars().count() + 1,
        }
    }

    /// Returns a line without what ends it.
    fn line(&self, line: usize) -> &'t str {
        let Some(end) = self.starts.get(line + 1) else { return &self.text[self.starts[line]..] };
        let text = &self.text[self.starts[line]..*end];
        match text.strip_suffix('\n') {
            Some(rest) => rest.strip_suffix('\r').unwrap_or(rest),
            None => text.strip_suffix(['\r', '\u{2028}', '\u{2029}']).unwrap_or(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    const ENCODINGS: [PositionEncoding; 3] =
        [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32];
    const BREAKS: [LineBreaks; 3] =
        [LineBreaks::Newline, LineBreaks::CarriageReturn, LineBreaks::JavaScript];

    /// The position of each character and of the end, counted one character after the other.
    fn naive(text: &str, encoding: PositionEncoding, breaks: LineBreaks) -> Vec<(usize, Position)> {
        let mut at = Position::default();
        let mut found = Vec::new();
        let mut characters = text.char_indices().peekable();
        while let Some((offset, character)) = characters.next() {
            found.push((offset, at));
            let is_pair = character == '\r' && characters.peek().is_some_and(|next| next.1 == '\n');
            let ends = match character {
                '\n' => true,
                '\r' => breaks != LineBreaks::Newline && !is_pair,
                '\u{2028}' | '\u{2029}' => breaks == LineBreaks::JavaScript,
                _ => false,
            };
            if ends {
                at = Position { line: at.line + 1, character: 0 };
            } else {
                let mut buffer = [0; 4];
                let units = match encoding {
                    PositionEncoding::Utf8 => character.encode_utf8(&mut buffer).len(),
                    PositionEncoding::Utf16 => character.encode_utf16(&mut [0; 2]).len(),
                    PositionEncoding::Utf32 => 1,
                };
                at.character += u32::try_from(units).unwrap();
            }
        }
        found.push((text.len(), at));
        found
    }

    fn texts() -> impl Strategy<Value = String> {
        let pieces =
            ["a", "\n", "\r\n", "\r", "\u{e9}", "\u{20ac}", "\u{1f600}", "\u{2028}", "\t", "xyz"];
        prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24)
            .prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn positions_are_those_of_a_walk_over_the_characters(text in texts()) {
            for (encoding, breaks) in ENCODINGS.iter().flat_map(|e| BREAKS.map(|b| (*e, b))) {
                let index = TextIndex::new(&text, encoding, breaks);
                for (offset, position) in naive(&text, encoding, breaks) {
                    prop_assert_eq!(index.position(offset), position);
                    // What ends a line is beyond its last column, which is that of its first character.
                    let is_feed = text[..offset].ends_with('\r') && text[offset..].starts_with('\n');
                    let offset = if is_feed { offset - 1 } else { offset };
                    prop_assert_eq!(index.offset(position), Some(offset));
                }
            }
        }

        #[test]
        fn a_column_beyond_the_line_is_its_end(text in texts(), beyond in 1_u32..1000) {
            for (encoding, breaks) in ENCODINGS.iter().flat_map(|e| BREAKS.map(|b| (*e, b))) {
                let index = TextIndex::new(&text, encoding, breaks);
                let mut ends = std::collections::BTreeMap::new();
                for (offset, position) in naive(&text, encoding, breaks) {
                    let is_feed = text[..offset].ends_with('\r') && text[offset..].starts_with('\n');
                    if !is_feed {
                        ends.insert(position.line, (offset, position.character));
                    }
                }
                for (line, (offset, character)) in ends {
                    let position = Position { line, character: character + beyond };
                    prop_assert_eq!(index.offset(position), Some(offset));
                }
            }
        }

        #[test]
        fn places_count_the_lines_of_all_tools(text in texts(), at in 0_usize..64) {
            let offset = text.floor_char_boundary(at);
            for breaks in BREAKS {
                let index = TextIndex::new(&text, PositionEncoding::Utf16, breaks);
                let before = &text[..offset];
                let line = before.rsplit('\n').next().unwrap_or_default();
                let expected = Place {
                    offset,
                    line: before.matches('\n').count() + 1,
                    byte_column: line.len() + 1,
                    char_column: line.chars().count() + 1,
                };
                prop_assert_eq!(index.place(offset), expected);
            }
        }
    }

    #[test]
    fn a_column_inside_a_character_is_its_start() {
        let index = TextIndex::new("a\u{1f600}b", PositionEncoding::Utf16, LineBreaks::Newline);
        let offset = |character| index.offset(Position { line: 0, character });
        assert_eq!([0, 1, 2, 3, 4].map(offset), [0, 1, 1, 5, 6].map(Some));
    }

    #[test]
    fn a_line_that_does_not_exist_is_no_offset() {
        let index = TextIndex::new("a\nb", PositionEncoding::Utf8, LineBreaks::Newline);
        let offset = |line, character| index.offset(Position { line, character });
        assert_eq!([offset(2, 0), offset(2, 1), offset(3, 0)], [Some(3), None, None]);
    }

    #[test]
    fn the_encoding_is_the_one_that_the_server_chose() {
        for (result, encoding) in [
            (json!({ "capabilities": { "positionEncoding": "utf-8" } }), PositionEncoding::Utf8),
            (json!({ "capabilities": {}, "offsetEncoding": "utf-32" }), PositionEncoding::Utf32),
            (json!({ "capabilities": {} }), PositionEncoding::Utf16),
            (json!({ "capabilities": { "positionEncoding": "ebcdic" } }), PositionEncoding::Utf16),
        ] {
            assert_eq!(PositionEncoding::of_initialize_result(&result), encoding);
        }
    }
}
