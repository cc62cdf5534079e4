//! Why an edit was not made.

use std::fmt;

use crate::document::Unencodable;

/// Bounds the line numbers that are given for a text that occurs too often.
pub const MAX_LISTED_MATCHES: usize = 20;

/// An edit that could not be made. The document is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .edit.map(|edit| format!("edit {edit}: ")).unwrap_or_default())]
pub struct EditError {
    /// The number of the edit, counted from 1, when the request has several.
    pub edit: Option<usize>,
    /// What is wrong with it.
    pub problem: EditProblem,
}

/// What is wrong with an edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditProblem {
    /// There is nothing to find.
    #[error("old_string must be non-empty")]
    EmptyFind,
    /// The text to find does not occur.
    #[error("old_string not found in {path}{}", hint(.near.as_ref()))]
    FindNotFound {
        /// The file.
        path: String,
        /// A place that differs in nothing but white space.
        near: Option<NearMatch>,
    },
    /// The text to find occurs more than once.
    #[error(
        "old_string matched {count} times in {path}; add context to make it unique or set \
         replace_all=true"
    )]
    MultiMatch {
        /// The file.
        path: String,
        /// How often it occurs.
        count: usize,
        /// The lines where it begins, at most [`MAX_LISTED_MATCHES`].
        lines: Vec<usize>,
    },
    /// Nothing would be different.
    #[error("nothing would change in {path}: the new text is the same as the old")]
    NoChange {
        /// The file.
        path: String,
    },
    /// The text to find is too large.
    #[error("old_string is too large: at most {limit} are allowed; name a shorter piece")]
    FindTooLarge {
        /// What is allowed.
        limit: super::Size,
    },
    /// The text to put there is too large.
    #[error("new_string is too large: at most {limit} are allowed; make several smaller edits")]
    ReplaceTooLarge {
        /// What is allowed.
        limit: super::Size,
    },
    /// The file would grow too large.
    #[error("{path} would have more than {limit} bytes")]
    ResultTooLarge {
        /// The file.
        path: String,
        /// What is allowed.
        limit: usize,
    },
    /// The edits replace too much in one request.
    #[error("the edits replace too much at once: at most {limit} are allowed")]
    BatchTooLarge {
        /// What is allowed.
        limit: super::Size,
    },
    /// The edits replace text in too many places.
    #[error("the edits are about too many places: at most {limit} are replaced at once")]
    TooManyReplacements {
        /// What is allowed.
        limit: usize,
    },
    /// There are too many edits in one request.
    #[error("there are {count} edits, at most {limit} are allowed at once")]
    TooManyEdits {
        /// How many there are.
        count: usize,
        /// What is allowed.
        limit: usize,
    },
    /// There is no edit.
    #[error("there are no edits")]
    NoEdits,
    /// A line range would leave nothing of the file.
    #[error("lines {start}..{end} are all of {path} and nothing would be left of it")]
    LineRangeTooLarge {
        /// The file.
        path: String,
        /// The first line.
        start: usize,
        /// The last line.
        end: usize,
    },
    /// A line range names no lines.
    #[error("{problem}")]
    InvalidRange {
        /// What is wrong with it.
        problem: RangeProblem,
    },
    /// Two edits are about the same text.
    #[error("edits {first} and {second} overlap")]
    Overlap {
        /// The number of the edit whose place comes first.
        first: usize,
        /// The number of the other one.
        second: usize,
    },
    /// The new lines repeat the lines that follow them.
    #[error(
        "the new lines end with lines {line}..{} of {path}, which follow the range and would \
         stand there twice; extend the range or leave them out", .line + 2
    )]
    DuplicatesContext {
        /// The file.
        path: String,
        /// The first of the lines that would be repeated.
        line: usize,
    },
    /// The file cannot hold the new text.
    #[error(transparent)]
    Unencodable(#[from] Unencodable),
}

/// What is wrong with a line range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeProblem {
    /// Lines are counted from 1.
    #[error("line 0 does not exist, lines are numbered from 1")]
    LineZero,
    /// The first line comes after the last.
    #[error("line range {start}..{end} ends before it starts")]
    Backwards {
        /// The first line.
        start: usize,
        /// The last line.
        end: usize,
    },
    /// The first line does not exist.
    #[error("line {start} is past the end, the last line is {count}")]
    PastEnd {
        /// The first line.
        start: usize,
        /// How many lines there are.
        count: usize,
    },
}

/// A place that differs from the text to find in nothing but white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMatch {
    /// The line where the place begins.
    pub line: usize,
    /// The first line of it that differs.
    pub differs: usize,
    /// What that line is in the file, shortened.
    pub text: String,
}

fn hint(near: Option<&NearMatch>) -> String {
    near.map(|near| format!("; {near}")).unwrap_or_default()
}

impl fmt::Display for NearMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, differs, text } = self;
        write!(f, "line {line} begins a match but for white space: line {differs} is {text:?}")
    }
}
