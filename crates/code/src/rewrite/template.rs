//! Templates of replacements: text with metavariables, filled with what a match captured.
//!
//! A template is written as if it stood at the left edge. Its lines take the indentation of the line that the match
//! begins on, and the lines of what it captured are moved by the difference between their old line and their
//! new one. Lines that begin inside of a literal are left as they are.

use std::collections::HashSet;
use std::ops::Range;

use crate::line_index::LineIndex;
use crate::structural_edit::{ParsedSource, leading_white_space, literal_rows_of};
use crate::structural_search::{Capture, CodeMatch, metavariables};

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
}

/// The text of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<Piece>,
}

/// The source that a template is filled from.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    text: &'a str,
    lines: LineIndex,
    literal_rows: HashSet<usize>,
}

impl<'a> Surroundings<'a> {
    pub(super) fn of(source: &'a ParsedSource<'_>) -> Self {
        let lines = LineIndex::of(source.text());
        Self { text: source.text(), lines, literal_rows: literal_rows_of(source.tree()) }
    }

    /// Returns the indentation of the line of a place.
    fn indentation(&self, at: usize) -> &'a str {
        leading_white_space(&self.text[self.lines.start_of_line(at)..])
    }
}

impl Template {
    pub(super) fn parse(text: &str) -> Self {
        let text = text.replace("\r\n", "\n");
        let mut pieces = Vec::new();
        let mut at = 0;
        let mut literal = String::new();
        for variable in metavariables(&text) {
            let before = &text[at..variable.range.start];
            let is_escaped = before.ends_with('\\');
            literal.push_str(before.strip_suffix('\\').unwrap_or(before));
            if is_escaped || variable.is_nameless() {
                literal.push_str(&text[variable.range.clone()]);
            } else {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
                pieces.push(Piece::Variable(variable.name.to_owned()));
            }
            at = variable.range.end;
        }
        literal.push_str(&text[at..]);
        pieces.push(Piece::Text(literal));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Self { pieces }
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Returns the text for a match.
    pub(super) fn fill(&self, source: &Surroundings<'_>, found: &CodeMatch) -> String {
        let ending = source.lines.ending(source.text, found.range.start);
        let mut filling = Filling {
            source,
            indent: source.indentation(found.range.start),
            ending,
            text: String::new(),
            is_in_comment: false,
        };
        let mut skips_comma = false;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => {
                    let text = if skips_comma { without_comma(text) } else { text };
                    filling.push_text(text);
                    skips_comma = false;
                }
                Piece::Variable(name) => {
                    let capture = found.captures.iter().find(|capture| capture.name == *name);
                    match capture.filter(|capture| !capture.nodes.is_empty()) {
                        Some(capture) => filling.push_capture(capture),
                        None => skips_comma = !filling.drop_comma(),
                    }
                }
            }
        }
        let rest = &source.text[found.replaced.end..];
        filling.behind_comment(rest);
        filling.text
    }
}

/// Removes the comma that separated a list from what follows, after a list that is empty.
fn without_comma(text: &str) -> &str {
    text.strip_prefix(',').map_or(text, |rest| rest.trim_start_matches([' ', '\t']))
}

/// A replacement in the making.
struct Filling<'a> {
    source: &'a Surroundings<'a>,
    /// The indentation of the line that the match begins on.
    indent: &'a str,
    ending: &'static str,
    text: String,
    /// The text ends with a directive, or with a comment up to the end of its line.
    is_in_comment: bool,
}

impl Filling<'_> {
    /// Begins a new line after a comment, unless the following text does, and returns that text.
    fn behind_comment<'f>(&mut self, following: &'f str) -> &'f str {
        let rest = following.trim_start_matches([' ', '\t', '\r']);
        if !self.is_in_comment || following.is_empty() {
            return following;
        }
        self.is_in_comment = false;
        if rest.is_empty() || rest.starts_with('\n') {
            return following;
        }
        let indent = self.line_indentation();
        self.text.extend([self.ending, &indent]);
        rest
    }

    fn push_text(&mut self, text: &str) {
        let text = self.behind_comment(text);
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.text.push_str(self.ending);
                if !line.is_empty() {
                    self.text.push_str(self.indent);
                }
            }
            self.text.push_str(line);
        }
    }

    fn push_capture(&mut self, capture: &Capture) {
        self.behind_comment("$");
        if capture.begins_line && !self.text.trim_end_matches([' ', '\t']).ends_with('\n') {
            self.text.push_str(self.ending);
        }
        self.is_in_comment = capture.ends_line;
        let Range { start, end } = capture.range;
        let captured = &self.source.text[start..end];
        if !captured.contains('\n') {
            self.text.push_str(captured);
            return;
        }
        let old = self.source.indentation(start);
        let new = self.line_indentation();
        let first_row = self.source.lines.line(start) - 1;
        for (index, line) in captured.split('\n').enumerate() {
            if index > 0 {
                self.text.push('\n');
            }
            let is_moved = index > 0
                && !line.trim().is_empty()
                && !self.source.literal_rows.contains(&(first_row + index));
            match line.strip_prefix(old).filter(|_| is_moved) {
                Some(rest) => self.text.extend([new.as_str(), rest]),
                None => self.text.push_str(line),
            }
        }
    }

    /// Returns the indentation of the line that is being written.
    fn line_indentation(&self) -> String {
        match self.text.rfind('\n') {
            Some(feed) => leading_white_space(&self.text[feed + 1..]).to_owned(),
            None => self.indent.to_owned(),
        }
    }

    /// Removes the comma before an empty list. Tells whether there was one.
    fn drop_comma(&mut self) -> bool {
        let Some(text) = self.text.trim_end_matches([' ', '\t']).strip_suffix(',') else {
            return false;
        };
        let length = text.len();
        self.text.truncate(length);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_template_is_text_and_variables() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let variable = |name: &str| Piece::Variable(name.to_owned());
        for (template, expected) in [
            ("f($A, $$$B)", vec![text("f("), variable("A"), text(", "), variable("B"), text(")")]),
            ("\\$A $x $_ $$$", vec![text("$A $x $_ $$$")]),
            ("$A$B", vec![variable("A"), variable("B")]),
            ("", vec![]),
        ] {
            assert_eq!(Template::parse(template).pieces, expected, "{template}");
        }
    }
}
