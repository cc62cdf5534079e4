//! Output: data on stdout as JSON or tables, notes on stderr.
//!
//! Text from outside passes [`printable`] first: control characters and marks that reverse the direction of
//! text are escaped, so that no file name can rewrite the terminal. A closed stdout is no error.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::error::CliError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text and tables, for people.
    Text,
    /// One JSON value, for programs.
    Json,
}

/// Writes data to stdout. A reader that has gone away is no error.
pub(crate) fn write(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Output(error)),
        _ => Ok(()),
    }
}

/// Writes a line of text with control characters escaped.
pub(crate) fn line(text: &str) -> Result<(), CliError> {
    write(format!("{}\n", printable(text)).as_bytes())
}

/// Writes a line to stderr, and ignores a stderr that is closed.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_vec(value).map_err(|error| CliError::Output(error.into()))?;
    text.push(b'\n');
    write(&text)
}

/// Lays rows out in columns; the first row is the heading.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| printable(cell))).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            write!(line, "{cell:<width$}  ").expect("writing to a string cannot fail");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Makes text from outside safe to print: no line breaks, no escape sequences, and
/// nothing that turns the direction of what follows.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || turns_direction(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["A".into(), "B".into()], ["long".into(), "入".into()]];
        assert_eq!(table(&rows), "A     B\nlong  入\n");
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\u{1b}[31m\nb é \u{202e}"), "a\\u{1b}[31m\\nb é \\u{202e}");
    }
}
