//! Patches of several files: parsing, matching and application in memory.
//!
//! [`parse`] reads unified diffs, with or without git headers, and the envelope that begins with
//! `*** Begin Patch`; both become a [`Patch`]. [`apply`] changes one document, [`apply_all`] a set
//! of them, all or none. Nothing is read or written here: paths are plain text that the caller
//! checks.
//!
//! Patches written by models are often wrong in what can be derived without them: line numbers,
//! hunk counts, carriage returns, the final newline. These are corrected or ignored. The lines of a
//! hunk, however, are what it changes, and must be in the file. A hunk is looked for in this order,
//! and the first step that finds it decides:
//!
//! 1. at the line that its header names, shifted by the offset of the hunk before it;
//! 2. anywhere after the hunk before it, ignoring line endings. Among several positions the nearest
//!    to the named line wins, or the first after an anchor line; two at the same distance are an
//!    error;
//! 3. anywhere, ignoring trailing white space, if there is exactly one position;
//! 4. without up to [`MAX_FUZZ`] lines of context at each end, if there is exactly one position.
//!
//! A hunk that matches at several positions without a reason to prefer one is refused with both
//! line numbers. Editing the wrong copy of repeated code would be worse than a failed call.

mod apply;
mod envelope;
mod error;
mod file_header;
mod file_name;
mod file_writer;
mod hunk;
mod hunk_matching;
mod line_comparison;
mod parse;
mod unified;

pub use apply::{AppliedHunk, FileChange, MAX_RESULT_BYTES, PatchedDocument, apply, apply_all};
pub use error::{ApplyError, ApplyProblem, LineProblem, ParseError};
pub use hunk_matching::MAX_FUZZ;
pub use parse::{MAX_FILES, MAX_HUNKS, MAX_PATCH_BYTES, parse};

/// A parsed patch: changes of files, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// At least one section. A file that occurs twice is changed twice, in order.
    pub files: Vec<FilePatch>,
}

/// The section of a patch about one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// The operation and its paths.
    pub operation: Operation,
    /// New file mode from a git header, such as `0o100755`.
    pub mode: Option<u32>,
    /// Changes of its text, in the order of the file.
    pub hunks: Vec<Hunk>,
}

/// The operation of a section. Paths are as written in the patch and not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is a path, named after its role")]
pub enum Operation {
    /// Creates a file that must not exist.
    Create { path: String },
    /// Removes a file, whose text must be what the hunks say.
    Delete { path: String },
    /// Changes a file in its location.
    Modify { path: String },
    /// Moves a file and applies the hunks to it.
    Rename { from: String, to: String },
    /// Copies a file and applies the hunks to the copy.
    Copy { from: String, to: String },
}

impl Operation {
    /// Returns the path of the file that is read; `None` for [`Self::Create`].
    pub fn source(&self) -> Option<&str> {
        match self {
            Self::Create { .. } => None,
            Self::Delete { path } | Self::Modify { path } => Some(path),
            Self::Rename { from, .. } | Self::Copy { from, .. } => Some(from),
        }
    }

    /// Returns the path of the file that is written; `None` for [`Self::Delete`].
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::Delete { .. } => None,
            Self::Create { path } | Self::Modify { path } => Some(path),
            Self::Rename { to, .. } | Self::Copy { to, .. } => Some(to),
        }
    }

    /// Returns the path for messages: the source of a rename or copy.
    pub fn path(&self) -> &str {
        match self {
            Self::Create { path } | Self::Delete { path } | Self::Modify { path } => path,
            Self::Rename { from, .. } | Self::Copy { from, .. } => from,
        }
    }
}

/// A contiguous change of lines, with its context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Number of lines before it according to the hunk header, if it has numbers.
    pub lines_before: Option<usize>,
    /// Lines of the file that precede it, in order but not adjacent: the text after `@@` in an
    /// envelope, such as `class A` and `def f():`.
    pub anchors: Vec<String>,
    /// True if it must match at the end of the file (`*** End of File`).
    pub at_end: bool,
    /// Context, removed and added lines.
    pub lines: Vec<HunkLine>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    /// The role of the line.
    pub sign: Sign,
    /// Text without its line feed; a carriage return before it is included.
    pub text: String,
    /// False if `\ No newline at end of file` follows.
    pub terminated: bool,
}

/// The role of a line in a hunk, from its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A space: the line stays.
    Context,
    /// `-`: the line is removed.
    Remove,
    /// `+`: the line is added.
    Add,
}

impl HunkLine {
    fn new(sign: Sign, text: &str) -> Self {
        Self { sign, text: text.to_owned(), terminated: true }
    }

    /// Returns true if the line is in the file before the patch.
    pub fn is_old(&self) -> bool {
        match self.sign {
            Sign::Context | Sign::Remove => true,
            Sign::Add => false,
        }
    }

    fn without_return(&self) -> &str {
        self.text.strip_suffix('\r').unwrap_or(&self.text)
    }
}
