//! Edits of one document: replacements of text and of line ranges.
//!
//! A text to find must occur exactly once unless all occurrences are requested, so an edit never
//! changes a line that the agent did not have in mind. Matching is exact, with two exceptions that
//! follow from the way text is shown (see [`Window`](crate::Window)):
//!
//! - A line feed in the request matches any line ending, and the new text takes the endings of the
//!   text it replaces. A request that contains carriage returns and matches with them is taken
//!   literally.
//! - If every line of the request starts with ascending line numbers and a tab, and does not match
//!   as it is, the numbers are removed. They were copied from a window.
//!
//! Nothing else is tolerated. White space that differs is the usual reason for a failed match; the
//! error then names the line that matches except for white space, or the closest one with the
//! characters that differ, and the agent corrects its request. Guessing instead would sometimes edit the wrong line of indentation-sensitive code.
//!
//! A request makes all of its edits or none, and stays within [`Limits`] on the sizes of texts, the
//! number of replacements and the result, because `replace_all` of a short text in a large file can
//! multiply its size.
//!
//! ```
//! use carrel_edit::{Document, replace::{self, Edit, Request}};
//!
//! let document = Document::decode(b"one\r\ntwo\r\n".to_vec());
//! let edits = [Edit::once("one\ntwo", "1\n2\n3")];
//! let edited = replace::apply(&document, &Request::new("numbers.txt", &edits))?;
//! assert_eq!(edited.document.text(), "1\r\n2\r\n3\r\n");
//! # Ok::<(), replace::EditError>(())
//! ```

mod apply;
mod closest_lines;
mod error;
mod limits;
mod line_numbers;
mod line_range;
mod near_match;
mod text_search;

pub use apply::apply;
pub use error::{Difference, EditError, EditProblem, MAX_LISTED_MATCHES, NearMatch, RangeProblem};
pub use limits::{Limits, Size};

use std::ops::Range;
use std::rc::Rc;

use crate::document::Document;

/// One edit of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Replaces occurrences of a text.
    Find {
        /// The text to find; must not be empty.
        old: String,
        /// The replacement.
        new: String,
        /// The required number of occurrences of `old`.
        occurrences: Occurrences,
    },
    /// Replaces whole lines.
    ///
    /// The ending of the last line is replaced too. If lines follow and `new` is not empty, a
    /// missing final line feed is added, so that two lines are never joined.
    Lines {
        /// First line, counted from 1. One past the last line appends.
        start: usize,
        /// Last line, inclusive; a number past the end means the end.
        end: usize,
        /// The new lines; empty to delete the range.
        new: String,
    },
}

/// The number of occurrences that a text to find must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrences {
    /// Exactly once.
    One,
    /// At least once; all are replaced.
    All,
}

/// The text that each edit of a request refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditOrder {
    /// All edits refer to the text before the first edit; they must not overlap.
    Original,
    /// Each edit refers to the result of the edit before it.
    Sequential,
}

impl EditOrder {
    /// Returns [`Self::Original`] if any edit has line numbers, since they are those of the window
    /// that the agent read, and [`Self::Sequential`] for edits by text alone.
    pub fn default_for(edits: &[Edit]) -> Self {
        let by_line = |edit: &Edit| matches!(edit, Edit::Lines { .. });
        if edits.iter().any(by_line) { Self::Original } else { Self::Sequential }
    }
}

/// Edits of one file, of which either all are made or none.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Path of the file, for error messages only.
    pub path: &'a str,
    /// The edits, at least one.
    pub edits: &'a [Edit],
    /// The text that they refer to.
    pub order: EditOrder,
    /// Bounds on their sizes.
    pub limits: Limits,
}

impl<'a> Request<'a> {
    /// Creates a request with [`EditOrder::default_for`] its edits and [`Limits::GENEROUS`].
    pub fn new(path: &'a str, edits: &'a [Edit]) -> Self {
        Self { path, edits, order: EditOrder::default_for(edits), limits: Limits::GENEROUS }
    }
}

/// A document after the edits of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedDocument {
    /// The changed document, in the encoding of the original.
    pub document: Document,
    /// One entry for each edit, in the order of the request.
    pub applied: Vec<AppliedEdit>,
}

impl EditedDocument {
    /// Returns the number of replacements of all edits.
    pub fn replacements(&self) -> usize {
        self.applied.iter().map(|applied| applied.replacements).sum()
    }
}

/// The effect of one edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct AppliedEdit {
    /// Number of replaced occurrences; 1 for a line range.
    pub replacements: usize,
    /// Line of the first replacement, in the text that the edit refers to.
    pub line: usize,
    /// True if line numbers were removed from the text to find.
    pub prefixes_removed: bool,
}

/// A byte range of a text and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Splice {
    range: Range<usize>,
    /// Shared, because one text may replace a million occurrences.
    new: Rc<str>,
}
