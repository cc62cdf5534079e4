//! The request of a text search: the pattern, the files and the page to return.

use std::time::Duration;

/// Default of [`GrepRequest::line_bytes`].
pub const DEFAULT_LINE_BYTES: usize = 500;

/// Default of [`GrepRequest::output_bytes`].
pub const DEFAULT_OUTPUT_BYTES: usize = 256 * 1024;

/// Default time limit of a search.
pub const DEFAULT_TIME: Duration = Duration::from_secs(30);

/// Bounds the context lines on each side of a match, which the searcher holds in memory.
pub const MAX_CONTEXT_LINES: usize = 1000;

/// The syntax of the pattern: that of Rust's `regex` crate, or literal text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines both variants")]
pub enum Syntax {
    #[default]
    Regex,
    Literal,
}

/// Case sensitivity; `Smart` is insensitive unless the pattern has a capital letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines the special variant")]
pub enum Case {
    #[default]
    Sensitive,
    Insensitive,
    Smart,
}

/// The unit that a search returns and that its pages count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Matching lines with their context.
    #[default]
    Content,
    /// Files with a matching line.
    FilesWithMatches,
    /// Files with the number of their matching lines.
    Count,
}

/// A text search.
///
/// Pages are counted in units: lines, context included, in [`Mode::Content`], and files in the
/// other modes. Consecutive pages have no gap and no overlap as long as the files do not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepRequest {
    /// The pattern.
    pub pattern: String,
    /// Syntax of the pattern.
    pub syntax: Syntax,
    /// Case sensitivity.
    pub case: Case,
    /// Matches whole words only.
    pub whole_word: bool,
    /// Allows matches across lines; `.` then matches line endings too.
    pub multiline: bool,
    /// Context lines before a match, at most [`MAX_CONTEXT_LINES`].
    pub before: usize,
    /// Context lines after a match, at most [`MAX_CONTEXT_LINES`].
    pub after: usize,
    /// Globs that select files; a leading `!` excludes, and the last match decides. They never add
    /// files that the scope skips.
    pub globs: Vec<String>,
    /// File types such as `rust`, as ripgrep defines them.
    pub types: Vec<String>,
    /// Unit of the result.
    pub mode: Mode,
    /// Number of units to skip.
    pub offset: u64,
    /// Maximum number of units; `None` for as many as fit.
    pub limit: Option<u64>,
    /// Searches all files even if the page is full, so that the totals are known.
    pub totals: bool,
    /// Maximum bytes of one line.
    pub line_bytes: usize,
    /// Maximum bytes of the page as text. One unit is always returned.
    pub output_bytes: usize,
    /// Time limit; the report then contains the matches found so far.
    pub time: Duration,
}

impl GrepRequest {
    /// Creates a request for all lines that match a regular expression, with default bounds.
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

    /// Returns the context lines before and after a match; none in modes without lines.
    pub(crate) fn context(&self) -> (usize, usize) {
        match self.mode {
            Mode::Content => {
                (self.before.min(MAX_CONTEXT_LINES), self.after.min(MAX_CONTEXT_LINES))
            }
            Mode::FilesWithMatches | Mode::Count => (0, 0),
        }
    }
}
