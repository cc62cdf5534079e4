//! The tree that a TOML text stands for, and where each of its parts is written.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Position};

/// Keeps a quoted value from filling an error message.
const MAX_SHOWN_CHARS: usize = 40;

/// A value and the bytes it is written with.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// A TOML text and its tree.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    text: &'a str,
    pub(crate) table: DeTable<'a>,
}

impl<'a> Document<'a> {
    /// Parses a text. Fails with everything that is not TOML, in the order of the file.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Vec<Diagnostic>> {
        let (table, errors) = DeTable::parse_recoverable(text);
        let document = Self { text, table: table.into_inner() };
        if errors.is_empty() {
            return Ok(document);
        }
        let diagnostic = |error: toml::de::Error| {
            let span = error.span().unwrap_or_default();
            let complaint = if is_bare_word(text, span.start) {
                "text must stand in quotes".to_owned()
            } else {
                format!("this is not TOML: {}", one_line(error.message()))
            };
            Diagnostic::at(document.position(&span), complaint)
        };
        Err(errors.into_iter().map(diagnostic).collect())
    }

    /// Returns the value at a dotted path.
    pub(crate) fn find(&self, path: &str) -> Option<&Value<'a>> {
        let mut names = path.split('.');
        let first = self.table.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get_ref().as_table()?.get(name))
    }

    /// Returns the place where bytes of the text begin.
    pub(crate) fn position(&self, span: &Range<usize>) -> Position {
        // The parser marks whole characters; a mark that is not one counts as the end.
        Position::after(self.text.get(..span.start).unwrap_or(self.text))
    }
}

/// Tells whether a word without quotes stands where a value belongs. It may be a secret.
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

/// Reads a whole number that fits.
pub(crate) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Names the sort of value, for messages that must not show it.
pub(crate) fn sort(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Shows a scalar briefly, and names anything larger.
pub(crate) fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text).to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => sort(value).to_owned(),
    }
}

/// Puts a text in quotes, and cuts a long one.
pub(crate) fn quoted(text: &str) -> impl fmt::Display {
    let head: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    let more = if head.len() < text.len() { "…" } else { "" };
    format!("{head:?}{more}")
}
