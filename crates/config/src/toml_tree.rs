//! TOML, parsed to the [value tree](crate::value_tree).
//!
//! The parser recovers from errors and reports all of them. It gives byte spans; positions are looked up in
//! a table with one entry for each byte, which a file of at most 64 KiB can afford and which keeps the
//! conversion linear.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Position};
use crate::value_tree::{Map, MapEntry, Node, Value};

/// Parses a text, or returns every syntax error in the order of the file.
pub(crate) fn parse(text: &str) -> Result<Map, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let positions = Positions::new(text);
    if errors.is_empty() {
        return Ok(positions.map(table.get_ref()));
    }
    let diagnostic = |error: toml::de::Error| {
        let span = error.span().unwrap_or_default();
        let message = if is_bare_word(text, span.start) {
            "text must stand in quotes".to_owned()
        } else {
            format!("this is not TOML: {}", one_line(error.message()))
        };
        Diagnostic::at(positions.at(&span), message)
    };
    Err(errors.into_iter().map(diagnostic).collect())
}

pub(crate) fn parse_literal(text: &str) -> Option<Node> {
    let mut map = parse(&format!("literal = {text}")).ok()?;
    Some(map.0.pop()?.value)
}

/// The position of each byte of a text, and of its end.
struct Positions(Vec<Position>);

impl Positions {
    fn new(text: &str) -> Self {
        let mut positions = Vec::with_capacity(text.len() + 1);
        let mut position = Position::START;
        for character in text.chars() {
            positions.extend(std::iter::repeat_n(position, character.len_utf8()));
            position = match character {
                '\n' => Position { line: position.line + 1, column: 1 },
                _ => Position { column: position.column + 1, ..position },
            };
        }
        positions.push(position);
        Self(positions)
    }

    /// Returns the position at which a span begins; one beyond the text counts as its end.
    fn at(&self, span: &Range<usize>) -> Position {
        self.0[span.start.min(self.0.len() - 1)]
    }

    fn map(&self, table: &DeTable<'_>) -> Map {
        let entries = table.iter().map(|(key, value)| MapEntry {
            key: key.get_ref().to_string(),
            position: self.at(&key.span()),
            value: self.node(value),
        });
        Map(entries.collect())
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let position = self.at(&value.span());
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Integer(integer) => {
                match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(integer) => Value::Integer(integer),
                    Err(_) => unsupported("a number", integer.to_string()),
                }
            }
            DeValue::Float(number) => unsupported("a number", number.to_string()),
            DeValue::Datetime(_) => unsupported("a date", "a date".to_owned()),
            DeValue::Array(items) => {
                Value::List(items.iter().map(|item| self.node(item)).collect())
            }
            DeValue::Table(table) => Value::Map(self.map(table)),
        };
        Node { position, value }
    }
}

fn unsupported(type_name: &'static str, shown: String) -> Value {
    Value::Unsupported { type_name, shown }
}

/// Returns whether a word without quotes stands where a value belongs. It may be a secret, so the parser's
/// message, which would quote it, is replaced.
fn is_bare_word(text: &str, start: usize) -> bool {
    let Some((before, after)) = text.split_at_checked(start) else { return false };
    let value = before.trim_end_matches([' ', '\t']).ends_with(['=', '[', ',']);
    let ends = |c: char| c.is_whitespace() || matches!(c, '#' | ',' | ']' | '}' | '"' | '\'');
    let word = &after[..after.find(ends).unwrap_or(after.len())];
    value && (word.contains(char::is_alphabetic) || word.starts_with(['/', '~', '$']))
}

fn one_line(message: &str) -> String {
    message.lines().collect::<Vec<_>>().join(", ")
}
