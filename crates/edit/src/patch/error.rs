//! Why a patch could not be read or applied.

use crate::document::Unencodable;

/// A text that is no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is longer than the limit.
    #[error("the patch has more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The patch is about more files than the limit.
    #[error("the patch is about more than {limit} files")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// The patch holds more hunks than the limit.
    #[error("the patch has more than {limit} hunks")]
    TooManyHunks {
        /// The limit.
        limit: usize,
    },
    /// There is no change in the text.
    #[error(
        "no change found in the patch: it must hold `--- a/file` and `+++ b/file` lines before \
         hunks, or begin with `*** Begin Patch`"
    )]
    Empty,
    /// The patch changes bytes that are no text.
    #[error("{path} is changed by a binary patch, which cannot be applied; write the file instead")]
    Binary {
        /// The file, or the line that says so.
        path: String,
    },
    /// A line is not understood.
    #[error("line {line} of the patch: {problem}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: LineProblem,
    },
}

/// What is wrong with a line of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineProblem {
    /// Nothing says what happens to the line.
    #[error("it begins with neither a space, `+` nor `-`, and it is no header")]
    NoSign,
    /// A hunk header that cannot be read.
    #[error("a hunk header must be like `@@ -1,4 +1,5 @@`")]
    HunkHeader,
    /// A hunk without a file.
    #[error("the hunk follows no `+++ file` line")]
    HunkWithoutFile,
    /// A hunk without lines.
    #[error("the hunk has no lines")]
    EmptyHunk,
    /// A name that cannot be read.
    #[error("the file name is empty, not properly quoted, or no UTF-8")]
    Name,
    /// A section that names no file.
    #[error("nothing says which file this is about")]
    NoName,
    /// A section that changes nothing.
    #[error("nothing is changed in this file")]
    NoHunks,
    /// An envelope that is not closed, as if the patch had been cut off.
    #[error("the patch ends without `*** End Patch`")]
    Unclosed,
    /// A line between the sections of an envelope that is no header.
    #[error("expected `*** Update File:`, `*** Add File:`, `*** Delete File:` or `*** End Patch`")]
    Section,
    /// A line of a new file without its sign.
    #[error("every line of a new file must begin with `+`")]
    NotAdded,
}

/// A patch that does not fit its file. Nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {}{problem}", .hunk.map(|hunk| format!("hunk {hunk}: ")).unwrap_or_default())]
pub struct ApplyError {
    /// The file.
    pub path: String,
    /// The hunk, counted from 1 in its file.
    pub hunk: Option<usize>,
    /// What does not fit.
    pub problem: ApplyProblem,
}

/// What does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyProblem {
    /// The file to change does not exist.
    #[error("there is no such file")]
    Missing,
    /// The file to make exists.
    #[error("the file exists already")]
    Exists,
    /// The lines of the hunk are not there.
    #[error("line {line} does not match: the patch has {expected:?}, the file has {found:?}")]
    Mismatch {
        /// The line of the file, counted from 1.
        line: usize,
        /// The line in the patch, shortened.
        expected: String,
        /// The line in the file, shortened.
        found: String,
    },
    /// The hunk needs lines behind the end of the file.
    #[error("the file ends at line {count}, before {expected:?} of the patch")]
    PastEnd {
        /// How many lines there are.
        count: usize,
        /// The line in the patch, shortened.
        expected: String,
    },
    /// The first line of the hunk is not there, nor is said where it should be.
    #[error("its first line {expected:?} is not in the file after the hunk before")]
    NotFound {
        /// The line in the patch, shortened.
        expected: String,
    },
    /// The hunk fits in several places.
    #[error("it fits in several places, among them lines {first} and {second}; add context")]
    Ambiguous {
        /// The first line of a place, counted from 1.
        first: usize,
        /// The first line of another place.
        second: usize,
    },
    /// A line that a hunk is to come after is not there.
    #[error("there is no line {anchor:?} to begin after")]
    AnchorNotFound {
        /// The line in the patch, shortened.
        anchor: String,
    },
    /// A file that is to be removed holds more than the patch says.
    #[error("the patch removes the file, but {count} of its lines would be left")]
    NotEmptied {
        /// How many lines.
        count: usize,
    },
    /// The changed files are too large together.
    #[error("the changed files would have more than {limit} bytes together")]
    ResultTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The file cannot hold the new text.
    #[error(transparent)]
    Unencodable(#[from] Unencodable),
}

/// Bounds how much of a line is repeated in a message.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// Returns the start of a line.
pub(super) fn shortened(line: &str) -> String {
    let mut shown = String::new();
    crate::cut::push_cut(&mut shown, line, MAX_SHOWN_CHARACTERS);
    shown
}
