//! Errors of edits. The messages are read by models, so each names the argument or the lines to
//! correct.

use std::fmt;

use crate::document::Unencodable;

/// Bounds the line numbers in [`EditProblem::MultiMatch`].
pub const MAX_LISTED_MATCHES: usize = 20;

/// An edit that could not be applied. The document is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .edit.map(|edit| format!("edit {edit}: ")).unwrap_or_default())]
pub struct EditError {
    /// Number of the edit, counted from 1, if the request has several.
    pub edit: Option<usize>,
    /// The reason.
    pub problem: EditProblem,
}

/// The reason why an edit could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum EditProblem {
    #[error("old_string must be non-empty")]
    EmptyFind,
    #[error("old_string not found in {path}{}", hint(.near.as_deref()))]
    FindNotFound { path: String, near: Option<Box<NearMatch>> },
    #[error(
        "old_string matched {count} times in {path}; add context to make it unique or set \
         replace_all=true; it is at {}", listed(.lines, *.count)
    )]
    MultiMatch {
        path: String,
        count: usize,
        /// Lines of the first occurrences, at most [`MAX_LISTED_MATCHES`].
        lines: Vec<usize>,
    },
    /// The result would equal the original.
    #[error("nothing would change in {path}: the new text is the same as the old")]
    NoChange { path: String },
    #[error("old_string is too large: at most {limit} are allowed; name a shorter piece")]
    FindTooLarge { limit: super::Size },
    #[error("new_string is too large: at most {limit} are allowed; make several smaller edits")]
    ReplaceTooLarge { limit: super::Size },
    #[error("{path} would have more than {limit} bytes")]
    ResultTooLarge { path: String, limit: usize },
    /// The sum of the replaced text is too large.
    #[error("the edits replace too much at once: at most {limit} are allowed")]
    BatchTooLarge { limit: super::Size },
    #[error("the edits make too many replacements: at most {limit} are allowed at once")]
    TooManyReplacements { limit: usize },
    #[error("there are {count} edits, at most {limit} are allowed at once")]
    TooManyEdits { count: usize, limit: usize },
    #[error("there are no edits")]
    NoEdits,
    /// A line range covers the whole file and the new text is blank.
    #[error("lines {start}..{end} are all lines of {path}, which would become empty")]
    LineRangeTooLarge { path: String, start: usize, end: usize },
    #[error("{problem}")]
    InvalidRange { problem: RangeProblem },
    #[error("edits {first} and {second} overlap")]
    Overlap { first: usize, second: usize },
    /// The new lines end with the lines that follow the range.
    #[error(
        "the new lines repeat lines {line}..{} of {path}, which follow the range; extend the range \
         or leave them out", .line + 2
    )]
    DuplicatesContext { path: String, line: usize },
    #[error(transparent)]
    Unencodable(#[from] Unencodable),
}

/// A range of lines that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum RangeProblem {
    #[error("line 0 does not exist, lines are numbered from 1")]
    LineZero,
    #[error("line range {start}..{end} ends before it starts")]
    Backwards { start: usize, end: usize },
    #[error("line {start} is past the end, the last line is {count}")]
    PastEnd { start: usize, count: usize },
}

/// The position in a file that the text to find resembles most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMatch {
    /// Line of the position.
    pub line: usize,
    /// First line of the match that differs from the text to find.
    pub differs: usize,
    /// That line as it is in the file, truncated.
    pub text: String,
    /// The kind of the difference.
    pub difference: Difference,
}

/// The difference of a near match from the text to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Only white space differs.
    WhiteSpace,
    /// Characters of the line differ; either part may be empty.
    Characters {
        /// The part in the file.
        file: String,
        /// The part in the text to find.
        wanted: String,
    },
}

fn hint(near: Option<&NearMatch>) -> String {
    near.map(|near| format!("; {near}")).unwrap_or_default()
}

/// Returns the lines of the first occurrences, each once, and the number of the others.
fn listed(lines: &[usize], count: usize) -> String {
    let mut numbers: Vec<_> = lines.iter().map(usize::to_string).collect();
    numbers.dedup();
    let noun = if numbers.len() == 1 { "line" } else { "lines" };
    let others = count.saturating_sub(lines.len());
    let rest = if others > 0 { format!(" and {others} more places") } else { String::new() };
    format!("{noun} {}{rest}", numbers.join(", "))
}

impl fmt::Display for NearMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, differs, text, difference } = self;
        match difference {
            Difference::WhiteSpace => {
                write!(f, "line {line} matches except for white space: line {differs} is {text:?}")
            }
            Difference::Characters { file, wanted } => {
                write!(f, "the closest is line {line}: ")?;
                if differs != line {
                    write!(f, "line {differs} is ")?;
                }
                write!(f, "{text:?}, with {file:?} where old_string has {wanted:?}")
            }
        }
    }
}
