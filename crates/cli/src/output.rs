//! Output: data on stdout as JSON or tables, notes on stderr.
//!
//! Text from outside passes [`printable`] first: control characters and marks that reverse the direction of
//! text are escaped, so that no file name can rewrite the terminal. A closed stdout is no error.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use carrel_config::Environment;
use carrel_domain::Code;
use serde::Serialize;

use crate::error::{CliError, Result};
use crate::progress::ProgressMode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text and tables, for people.
    Text,
    /// One JSON value, for programs.
    Json,
}

/// One start of the program: the forms of its output and of its progress, and the environment.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) format: Format,
    pub(crate) progress: ProgressMode,
    pub(crate) environment: Environment,
}

impl Invocation {
    /// Prints data as one JSON value or with `text`, and returns the exit status of success.
    pub(crate) fn print(
        &self,
        data: &impl Serialize,
        text: impl FnOnce() -> Result<()>,
    ) -> Result<ExitCode> {
        match self.format {
            Format::Json => json(data)?,
            Format::Text => text()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes data to stdout. A reader that has gone away is no error.
pub(crate) fn write(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritten(&error)),
        _ => Ok(()),
    }
}

pub(crate) fn unwritten(error: &io::Error) -> CliError {
    CliError::of(Code::Io, error).context("could not write the output")
}

/// Writes a line of text with control characters escaped.
pub(crate) fn line(text: &str) -> Result<()> {
    write(format!("{}\n", printable(text)).as_bytes())
}

/// Writes a line to stderr, and ignores a stderr that is closed.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec(value).map_err(|error| unwritten(&error.into()))?;
    text.push(b'\n');
    write(&text)
}

/// Lays rows out in columns below a heading.
pub(crate) fn table<const N: usize>(
    heading: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    columns(&std::iter::once(heading.map(str::to_owned)).chain(rows).collect::<Vec<_>>())
}

/// Lists the fields that have a value, a line for each.
pub(crate) fn sheet<const N: usize>(fields: [(&str, Option<String>); N]) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        if let Some(value) = value {
            writeln!(text, "{name:<10} {}", printable(&value))
                .expect("writing to a string cannot fail");
        }
    }
    text
}

/// Lays rows out in columns.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
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
        assert_eq!(columns(&rows), "A     B\nlong  入\n");
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\u{1b}[31m\nb é \u{202e}"), "a\\u{1b}[31m\\nb é \\u{202e}");
    }
}
