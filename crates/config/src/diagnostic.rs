//! Diagnostics of a settings file: a message, the setting it is about and the position in the file.
//!
//! The same type serves errors and warnings of both files. A message is one sentence for the operator that says
//! what to write instead wherever that is known, and never shows a value that may be a secret.

use std::fmt::Write as _;
use std::path::Path;

/// A position in a file, with lines and columns from 1 as editors count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The character within the line, from 1; not the byte.
    pub column: usize,
}

impl Position {
    /// The first character of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// Returns the position behind a text that starts at the top of a file.
    pub(crate) fn after(text: &str) -> Self {
        let line = text.matches('\n').count() + 1;
        let column = text.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Self { line, column }
    }

    /// Translates a position within a part of a file whose first character is at `start`.
    pub(crate) fn within(self, start: Self) -> Self {
        let shift = if self.line == 1 { start.column - 1 } else { 0 };
        Self { line: start.line + self.line - 1, column: self.column + shift }
    }
}

/// An error or a warning about a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The position in the file; `None` if the diagnostic is about the file as a whole, or about a setting
    /// that is missing.
    pub position: Option<Position>,
    /// The dotted path of the setting, such as `hooks.timeout_ms`.
    pub key: Option<String>,
    /// One sentence, which names the setting.
    pub message: String,
}

impl Diagnostic {
    pub(crate) fn at(position: Position, message: impl Into<String>) -> Self {
        Self { position: Some(position), key: None, message: message.into() }
    }

    pub(crate) fn about(
        key: impl Into<String>,
        position: Option<Position>,
        message: impl Into<String>,
    ) -> Self {
        Self { position, key: Some(key.into()), message: message.into() }
    }

    /// Formats the diagnostic behind the file's name: `WORKFLOW.md:7:3: …`.
    pub fn located(&self, file: &Path) -> String {
        let file = file.display();
        match self.position {
            Some(Position { line, column }) => format!("{file}:{line}:{column}: {}", self.message),
            None => format!("{file}: {}", self.message),
        }
    }
}

/// Diagnostics in one message; a file that is wrong throughout would otherwise fill a screen.
const MAX_LISTED: usize = 10;

/// Formats the diagnostics of a file as one line, the first ten with their positions.
pub(crate) fn one_line<'a>(
    file: &Path,
    diagnostics: impl Iterator<Item = &'a Diagnostic>,
) -> String {
    let all: Vec<String> = diagnostics.map(|diagnostic| diagnostic.located(file)).collect();
    let mut line = all[..all.len().min(MAX_LISTED)].join("; ");
    if all.len() > MAX_LISTED {
        let more = all.len() - MAX_LISTED;
        write!(line, " (and {more} more)").expect("writing to a string cannot fail");
    }
    line
}
