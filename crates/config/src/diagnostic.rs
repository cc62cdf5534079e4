//! Places in a workflow file, and what there is to say about them.

use std::fmt;
use std::path::Path;

/// A place in a file, counted from 1 as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

impl Position {
    /// The first character of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// Returns the place that follows a text which starts at the top of a file.
    pub(crate) fn after(text: &str) -> Self {
        let line = text.matches('\n').count() + 1;
        let column = text.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Self { line, column }
    }

    /// Returns this place of a part as a place of the file that the part starts in at `start`.
    pub(crate) fn within(self, start: Self) -> Self {
        let shift = if self.line == 1 { start.column - 1 } else { 0 };
        Self { line: start.line + self.line - 1, column: self.column + shift }
    }
}

/// One remark about a workflow file: what is wrong or doubtful, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where it is, when it is about a place in the file.
    pub position: Option<Position>,
    /// The setting it is about, such as `hooks.timeout_ms`.
    pub key: Option<String>,
    /// One sentence for a person.
    pub message: String,
}

impl Diagnostic {
    /// A remark about a place.
    pub(crate) fn at(position: Position, message: impl Into<String>) -> Self {
        Self { position: Some(position), key: None, message: message.into() }
    }

    /// A remark about a setting, with the place it is written at if it is written.
    pub(crate) fn about(
        key: impl Into<String>,
        position: Option<Position>,
        message: impl Into<String>,
    ) -> Self {
        Self { position, key: Some(key.into()), message: message.into() }
    }

    /// Prints the remark behind the file's name: `WORKFLOW.md:7:3: …`.
    pub fn located<'a>(&'a self, file: &'a Path) -> impl fmt::Display + 'a {
        Located { diagnostic: self, file }
    }
}

struct Located<'a> {
    diagnostic: &'a Diagnostic,
    file: &'a Path,
}

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(Position { line, column }) = self.diagnostic.position {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.diagnostic.message)
    }
}
