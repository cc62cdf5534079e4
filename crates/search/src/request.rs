//! What to look for, and how much of it to return.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many bytes of one line are shown unless the caller says otherwise.
pub const DEFAULT_LINE_BYTES: usize = 2000;

/// How many bytes one page has as text unless the caller says otherwise.
pub const DEFAULT_OUTPUT_BYTES: usize = 256 * 1024;

/// How long a search goes on unless the caller says otherwise.
pub const DEFAULT_TIME: Duration = Duration::from_secs(30);

/// The most lines shown before or after a matching line; more is cut down to it. They are held
/// in memory while they may still be needed.
pub const MAX_CONTEXT_LINES: usize = 1000;

/// How the pattern is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Syntax {
    /// As a regular expression.
    #[default]
    Regex,
    /// As text that stands for itself.
    Literal,
}

/// Whether upper and lower case count as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// They differ.
    #[default]
    Sensitive,
    /// They are the same.
    Insensitive,
    /// They are the same unless the pattern has a capital letter.
    Smart,
}

/// What is returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The matching lines with their context.
    #[default]
    Content,
    /// The files that have a matching line.
    FilesWithMatches,
    /// The files with the number of their matching lines.
    Count,
}

/// What to look for, and how much of it to return.
///
/// A page is counted in units: the lines shown, context included, in [`Mode::Content`], and files
/// in the other modes. Pages put together are the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepRequest {
    /// The pattern, in the syntax of Rust's `regex` crate.
    pub pattern: String,
    /// How the pattern is read.
    pub syntax: Syntax,
    /// Whether upper and lower case count as the same.
    pub case: Case,
    /// Matches only where no word goes on before or after.
    pub whole_word: bool,
    /// Lets a match go over several lines; `.` matches the end of a line, too.
    pub multiline: bool,
    /// How many lines to show before a matching line.
    pub before: usize,
    /// How many lines to show after a matching line.
    pub after: usize,
    /// Which files to search, as globs; one that begins with `!` leaves files out, and the last one
    /// that matches decides. They choose among what the scope shows and never add to it.
    pub globs: Vec<String>,
    /// Which types of file to search, such as `rust`.
    pub types: Vec<String>,
    /// What is returned.
    pub mode: Mode,
    /// How many units to leave out.
    pub offset: u64,
    /// How many units to return; all that fit when absent.
    pub limit: Option<u64>,
    /// Searches everything even when the page is full, so that the totals are known.
    pub totals: bool,
    /// How many bytes of a line to show.
    pub line_bytes: usize,
    /// How many bytes the page may have as text. One unit is always returned.
    pub output_bytes: usize,
    /// How long the search may go on.
    pub time: Duration,
}

impl GrepRequest {
    /// Returns the request for all lines that match a regular expression.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            syntax: Syntax::default(),
            case: Case::default(),
            whole_word: false,
            multiline: false,
            before: 0,
            after: 0,
            globs: Vec::new(),
            types: Vec::new(),
            mode: Mode::default(),
            offset: 0,
            limit: None,
            totals: false,
            line_bytes: DEFAULT_LINE_BYTES,
            output_bytes: DEFAULT_OUTPUT_BYTES,
            time: DEFAULT_TIME,
        }
    }

    /// Returns the lines before and after a match that are really shown.
    pub(crate) fn context(&self) -> (usize, usize) {
        match self.mode {
            Mode::Content => {
                (self.before.min(MAX_CONTEXT_LINES), self.after.min(MAX_CONTEXT_LINES))
            }
            Mode::FilesWithMatches | Mode::Count => (0, 0),
        }
    }
}
