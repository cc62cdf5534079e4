//! Patches of several files: what they say, and what comes of them.
//!
//! [`parse`] reads unified diffs, with or without the headers of git, and the envelope that begins
//! with `*** Begin Patch`; both become a [`Patch`]. [`apply`] makes the change to one document and
//! [`apply_all`] to as many as there are, in memory and all or none.
//!
//! Patches that agents write are often wrong in what can be known without them: line numbers,
//! counts, carriage returns, a missing final newline. Those are found out or left as they are. The
//! lines that a hunk names must be there, though: white space at their ends may differ, and context
//! at the ends of a hunk is given up only where one place is left that fits.

mod apply;
mod envelope;
mod error;
mod header;
mod hunk;
mod locate;
mod matching;
mod name;
mod parse;
mod unified;
mod write;

pub use apply::{AppliedHunk, FileChange, MAX_RESULT_BYTES, PatchedDocument, apply, apply_all};
pub use error::{ApplyError, ApplyProblem, LineProblem, ParseError};
pub use locate::MAX_FUZZ;
pub use parse::{MAX_FILES, MAX_HUNKS, MAX_PATCH_BYTES, parse};

/// Changes to some files, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// At least one; the same file may occur again.
    pub files: Vec<FilePatch>,
}

/// What happens to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// What happens, and to which paths.
    pub operation: Operation,
    /// The file mode that git gives, such as `0o100755`.
    pub mode: Option<u32>,
    /// The changes to its text, from the start to the end.
    pub hunks: Vec<Hunk>,
}

/// What happens to a file. Paths are as written; nothing here says that they are safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A file is made.
    Create {
        /// Where.
        path: String,
    },
    /// A file is removed.
    Delete {
        /// Where.
        path: String,
    },
    /// A file stays where it is.
    Modify {
        /// Where.
        path: String,
    },
    /// A file is moved, and may be changed on the way.
    Rename {
        /// Where it is.
        from: String,
        /// Where it will be.
        to: String,
    },
    /// A file is copied, and the copy may be changed on the way.
    Copy {
        /// Where it is.
        from: String,
        /// Where the copy will be.
        to: String,
    },
}

impl Operation {
    /// Returns the path of the file that is read, if one is.
    pub fn source(&self) -> Option<&str> {
        match self {
            Self::Create { .. } => None,
            Self::Delete { path } | Self::Modify { path } => Some(path),
            Self::Rename { from, .. } | Self::Copy { from, .. } => Some(from),
        }
    }

    /// Returns the path of the file that is written, if one is.
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::Delete { .. } => None,
            Self::Create { path } | Self::Modify { path } => Some(path),
            Self::Rename { to, .. } | Self::Copy { to, .. } => Some(to),
        }
    }

    /// Returns the path that messages name.
    pub fn path(&self) -> &str {
        match self {
            Self::Create { path } | Self::Delete { path } | Self::Modify { path } => path,
            Self::Rename { from, .. } | Self::Copy { from, .. } => from,
        }
    }
}

/// Lines that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// How many lines come before it, where that is said.
    pub lines_before: Option<usize>,
    /// Lines that come before it, in order, each somewhere after the one before.
    pub anchors: Vec<String>,
    /// Whether it reaches to the end of the file.
    pub at_end: bool,
    /// The lines themselves.
    pub lines: Vec<HunkLine>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    /// What happens to it.
    pub sign: Sign,
    /// The text without the line feed; a carriage return before it is part of the text.
    pub text: String,
    /// Whether a line feed follows.
    pub ended: bool,
}

/// What happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It stays.
    Context,
    /// It goes.
    Remove,
    /// It comes.
    Add,
}

impl HunkLine {
    fn new(sign: Sign, text: &str) -> Self {
        Self { sign, text: text.to_owned(), ended: true }
    }

    /// Tells whether the line is in the file before the patch.
    pub fn is_old(&self) -> bool {
        match self.sign {
            Sign::Context | Sign::Remove => true,
            Sign::Add => false,
        }
    }

    /// Returns the text without the carriage return of its ending.
    fn bare(&self) -> &str {
        self.text.strip_suffix('\r').unwrap_or(&self.text)
    }
}
