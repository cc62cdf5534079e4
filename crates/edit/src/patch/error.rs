//! Errors of parsing and applying patches. They name the line of the patch, or the file and hunk,
//! and both versions of a line that does not match, so that a model can correct the patch.

use crate::document::Unencodable;

/// The reason why a text could not be parsed as a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum ParseError {
    /// The text exceeds [`MAX_PATCH_BYTES`](super::MAX_PATCH_BYTES).
    #[error("the patch has more than {limit} bytes")]
    TooLong { limit: usize },
    /// The patch has more sections than [`MAX_FILES`](super::MAX_FILES).
    #[error("the patch changes more than {limit} files")]
    TooManyFiles { limit: usize },
    /// The patch has more hunks than [`MAX_HUNKS`](super::MAX_HUNKS).
    #[error("the patch has more than {limit} hunks")]
    TooManyHunks { limit: usize },
    /// No section was found in the text.
    #[error(
        "no change found in the patch: it must hold `--- a/file` and `+++ b/file` lines before \
         hunks, or begin with `*** Begin Patch`"
    )]
    Empty,
    /// A section is a binary patch.
    #[error("{path} is changed by a binary patch, which cannot be applied; write the file instead")]
    Binary {
        /// The file, or the line of the patch if no file is named.
        path: String,
    },
    /// A line, counted from 1, could not be parsed.
    #[error("line {line} of the patch: {problem}")]
    Line { line: usize, problem: LineProblem },
}

/// The reason why a line of a patch could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define the variants")]
pub enum LineProblem {
    #[error("it begins with neither a space, `+` nor `-`, and it is not a header")]
    NoSign,
    #[error("a hunk header must be like `@@ -1,4 +1,5 @@`")]
    HunkHeader,
    #[error("the hunk follows no `+++ file` line")]
    HunkWithoutFile,
    #[error("the hunk has no lines")]
    EmptyHunk,
    #[error("the file name is empty, not properly quoted, or not UTF-8")]
    Name,
    #[error("the section names no file")]
    NoName,
    #[error("the section changes nothing")]
    NoHunks,
    #[error("the patch ends without `*** End Patch`")]
    Unclosed,
    #[error("expected `*** Update File:`, `*** Add File:`, `*** Delete File:` or `*** End Patch`")]
    Section,
    #[error("every line of a new file must begin with `+`")]
    NotAdded,
}

/// A patch that does not apply. No file is changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {}{problem}", .hunk.map(|hunk| format!("hunk {hunk}: ")).unwrap_or_default())]
pub struct ApplyError {
    /// Path of the file, as in the patch.
    pub path: String,
    /// Number of the hunk in its file, counted from 1.
    pub hunk: Option<usize>,
    /// The reason.
    pub problem: ApplyProblem,
}

impl ApplyError {
    /// Creates the error of a whole file.
    pub(super) fn of_file(path: &str, problem: ApplyProblem) -> Self {
        Self { path: path.to_owned(), hunk: None, problem }
    }
}

/// The reason why a patch does not apply. Quoted lines are truncated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum ApplyProblem {
    #[error("there is no such file")]
    Missing,
    #[error("the file exists already")]
    Exists,
    /// A line of the hunk differs, at the position where the longest part of it matches.
    #[error("line {line} does not match: the patch has {expected:?}, the file has {found:?}")]
    Mismatch { line: usize, expected: String, found: String },
    #[error("the file ends at line {count}, before {expected:?} of the patch")]
    PastEnd { count: usize, expected: String },
    /// The first line of a hunk without line numbers is not in the rest of the file.
    #[error("its first line {expected:?} is not in the file after the hunk before")]
    NotFound { expected: String },
    /// The hunk matches at several positions, none of which is preferable.
    #[error("it matches at several positions, among them lines {first} and {second}; add context")]
    Ambiguous { first: usize, second: usize },
    /// An anchor line is not in the rest of the file.
    #[error("the anchor line {anchor:?} was not found")]
    AnchorNotFound { anchor: String },
    /// A file to remove has lines that the patch does not remove.
    #[error("the patch removes the file, but {count} of its lines would be left")]
    NotEmptied { count: usize },
    /// The results exceed [`MAX_RESULT_BYTES`](super::MAX_RESULT_BYTES) together.
    #[error("the changed files would have more than {limit} bytes together")]
    ResultTooLarge { limit: usize },
    #[error(transparent)]
    Unencodable(#[from] Unencodable),
}

/// Bounds the part of a line that is quoted in a message.
const MAX_SHOWN_CHARACTERS: usize = 200;

pub(super) fn shortened(line: &str) -> String {
    let mut shown = String::new();
    crate::truncate::push_truncated(&mut shown, line, MAX_SHOWN_CHARACTERS);
    shown
}
