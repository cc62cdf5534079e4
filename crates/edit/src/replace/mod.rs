//! Changes to places that are named by their text or by their lines.
//!
//! A place named by text must occur exactly once, unless all occurrences are meant. It is found
//! exactly, with two exceptions that come from how text is shown: a line feed in the request stands
//! for any line ending, and line numbers that were copied along with the text are taken off. The
//! text that is put there takes the line endings of what it replaces. A caller that writes carriage
//! returns into the text to find, and finds it so, is taken at its word in both.

mod error;
mod find;
mod limits;
mod near;
mod prefix;
mod range;
mod run;

pub use error::{EditError, EditProblem, MAX_LISTED_MATCHES, NearMatch, RangeProblem};
pub use limits::{Limits, Size};
pub use run::apply;

use std::ops::Range;
use std::rc::Rc;

use crate::document::Document;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Replaces text wherever it stands.
    Find {
        /// The text to find.
        old: String,
        /// The text to put there.
        new: String,
        /// How often `old` may occur.
        occurrences: Occurrences,
    },
    /// Replaces whole lines.
    ///
    /// The ending of the last line is replaced too. When lines follow and `new` is neither empty
    /// nor ended, it is ended, so that two lines never run together.
    Lines {
        /// The first line, counted from 1. One past the last line appends.
        start: usize,
        /// The last line; a number past the end means the end.
        end: usize,
        /// The lines to put there.
        new: String,
    },
}

/// How often a text to find may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrences {
    /// Exactly once.
    One,
    /// At least once; all are replaced.
    All,
}

/// Which text the edits of one request are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditOrder {
    /// All are about the text as it was before the first; they must not overlap.
    Original,
    /// Each is about the text that the one before it left.
    Sequential,
}

impl EditOrder {
    /// Returns what agents mean: line numbers are those they were shown, and a list of texts to
    /// find is worked off in order.
    pub fn usual(edits: &[Edit]) -> Self {
        let by_line = |edit: &Edit| matches!(edit, Edit::Lines { .. });
        if edits.iter().any(by_line) { Self::Original } else { Self::Sequential }
    }
}

/// Edits to one file. Either all of them are made or none.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// How the file is called in messages.
    pub path: &'a str,
    /// The edits in order.
    pub edits: &'a [Edit],
    /// Which text they are about.
    pub order: EditOrder,
    /// How large they may be.
    pub limits: Limits,
}

impl<'a> Request<'a> {
    /// Makes a request with the usual placement and generous limits.
    pub fn new(path: &'a str, edits: &'a [Edit]) -> Self {
        Self { path, edits, order: EditOrder::usual(edits), limits: Limits::GENEROUS }
    }
}

/// A document after its edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedDocument {
    /// The changed document, stored as the original is.
    pub document: Document,
    /// What each edit did, in the order of the request.
    pub applied: Vec<AppliedEdit>,
}

impl EditedDocument {
    /// Returns how many places were replaced in all.
    pub fn replacements(&self) -> usize {
        self.applied.iter().map(|applied| applied.replacements).sum()
    }
}

/// What one edit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct AppliedEdit {
    /// How many places it replaced.
    pub replacements: usize,
    /// The line of the first place, in the text that the edit was about.
    pub line: usize,
    /// Whether line numbers were taken off the text to find.
    pub prefixes_removed: bool,
}

/// A place in a text and what is put there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Region {
    range: Range<usize>,
    /// Shared, because a text may be replaced in millions of places.
    new: Rc<str>,
}
