//! Application of a parsed patch to documents.
//!
//! Every hunk is matched against the original text of its file, and never before the end of the
//! hunk before it, so hunks cannot overlap or be reordered. The offset at which a hunk is found is
//! added to the expectation for the next one: an insertion above shifts all hunks below it by the
//! same number.
//!
//! `apply_all` keeps the state of every file in memory. A later section sees the result of an
//! earlier one, and no change is returned unless all sections apply; the caller then writes the
//! files in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::{ApplyError, ApplyProblem};
use super::file_writer::FileWriter;
use super::hunk_matching::{HunkMatch, match_hunk};
use super::line_comparison::FileLines;
use super::{FilePatch, Hunk, Operation, Patch};
use crate::document::Document;
use crate::lines::{LineFacts, raw_lines};

/// Bounds the resulting text of all files of one patch together.
pub const MAX_RESULT_BYTES: usize = 256 * 1024 * 1024;

/// One file after its section of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedDocument {
    /// The changed document, or `None` if the section removes the file.
    pub document: Option<Document>,
    /// One entry for each hunk.
    pub hunks: Vec<AppliedHunk>,
}

/// The position at which a hunk was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct AppliedHunk {
    /// First line of the hunk in the file before the patch, counted from 1.
    pub line: usize,
    /// Distance in lines from the line that the header names, if it names one.
    pub offset: Option<i64>,
    /// Number of context lines that were dropped at each end, at most.
    pub fuzz: usize,
}

/// The change that a section of a patch makes to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The operation and its paths.
    pub operation: Operation,
    /// New file mode from a git header.
    pub mode: Option<u32>,
    /// The document before; `None` for a new file.
    pub before: Option<Arc<Document>>,
    /// The document to write; `None` for a removed file.
    pub after: Option<Arc<Document>>,
    /// One entry for each hunk.
    pub hunks: Vec<AppliedHunk>,
}

/// Applies one section of a patch. `original` is the source file, or `None` if it does not exist.
pub fn apply(file: &FilePatch, original: Option<&Document>) -> Result<PatchedDocument, ApplyError> {
    let path = file.operation.path();
    let file_error = |problem| ApplyError::of_file(path, problem);
    let empty = Document::from_text("");
    let original = match (&file.operation, original) {
        (Operation::Create { .. }, Some(_)) => return Err(file_error(ApplyProblem::Exists)),
        (Operation::Create { .. }, None) => &empty,
        (_, None) => return Err(file_error(ApplyProblem::Missing)),
        (_, Some(original)) => original,
    };
    let (text, hunks) = rewrite(path, original.text(), &file.hunks)?;
    if let Operation::Delete { .. } = file.operation {
        let count = LineFacts::of(&text).count;
        // Without hunks, as in an envelope, the patch does not describe the contents.
        if !file.hunks.is_empty() && count > 0 {
            return Err(file_error(ApplyProblem::NotEmptied { count }));
        }
        return Ok(PatchedDocument { document: None, hunks });
    }
    let document = original.with_text(text).map_err(|error| file_error(error.into()))?;
    Ok(PatchedDocument { document: Some(document), hunks })
}

fn rewrite(
    path: &str,
    original: &str,
    hunks: &[Hunk],
) -> Result<(String, Vec<AppliedHunk>), ApplyError> {
    let file: Vec<_> = raw_lines(original).collect();
    let mut file_lines = FileLines::new(&file);
    let mut writer = FileWriter::new(&file, original);
    let mut placed = Vec::with_capacity(hunks.len());
    let mut drift = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let expected = hunk.lines_before.map(|lines| lines.saturating_add_signed(drift));
        let matched = match_hunk(&mut file_lines, hunk, writer.consumed(), expected);
        let matched = matched.map_err(|problem| ApplyError {
            path: path.to_owned(),
            hunk: Some(index + 1),
            problem,
        })?;
        writer.hunk(&matched, &hunk.lines);
        let offset = offset(hunk, &matched);
        // Lines inserted or removed above this hunk have shifted the next ones equally.
        drift = offset.unwrap_or(drift);
        let offset = offset.map(|offset| i64::try_from(offset).unwrap_or(i64::MAX));
        placed.push(AppliedHunk { line: matched.at + 1, offset, fuzz: matched.fuzz });
    }
    Ok((writer.finish(), placed))
}

fn offset(hunk: &Hunk, matched: &HunkMatch) -> Option<isize> {
    // Dropped context lines precede the matched position.
    let start = isize::try_from(matched.at).ok()? - isize::try_from(matched.lines.start).ok()?;
    Some(start - isize::try_from(hunk.lines_before?).ok()?)
}

/// Applies all sections of a patch in memory, or returns the first error.
///
/// `read` returns the document at a path, or `None` if there is no file; it is called once for each
/// path. The caller writes the returned changes in order.
pub fn apply_all(
    patch: &Patch,
    read: impl FnMut(&str) -> Option<Document>,
) -> Result<Vec<FileChange>, ApplyError> {
    let mut tree = PatchedTree { read, files: BTreeMap::new(), written: 0 };
    patch.files.iter().map(|file| tree.apply(file)).collect()
}

/// The files after the sections applied so far.
struct PatchedTree<R> {
    read: R,
    files: BTreeMap<String, Option<Arc<Document>>>,
    written: usize,
}

impl<R: FnMut(&str) -> Option<Document>> PatchedTree<R> {
    fn get(&mut self, path: &str) -> Option<Arc<Document>> {
        if let Some(known) = self.files.get(path) {
            return known.clone();
        }
        let found = (self.read)(path).map(Arc::new);
        self.files.insert(path.to_owned(), found.clone());
        found
    }

    fn apply(&mut self, file: &FilePatch) -> Result<FileChange, ApplyError> {
        let operation = file.operation.clone();
        self.check_target(&operation)?;
        let before = self.get(operation.path());
        let PatchedDocument { document, hunks } = apply(file, before.as_deref())?;
        let after = document.map(Arc::new);
        self.count(&operation, after.as_deref())?;
        self.put(&operation, after.as_ref());
        Ok(FileChange { operation, mode: file.mode, before, after, hunks })
    }

    /// Returns an error if a rename or copy would replace an existing file.
    fn check_target(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let is_taken = match operation {
            Operation::Rename { from, to } | Operation::Copy { from, to } => {
                (from != to && self.get(to).is_some()).then_some(to)
            }
            Operation::Create { .. } | Operation::Delete { .. } | Operation::Modify { .. } => None,
        };
        is_taken.map_or(Ok(()), |to| Err(ApplyError::of_file(to, ApplyProblem::Exists)))
    }

    fn count(&mut self, operation: &Operation, after: Option<&Document>) -> Result<(), ApplyError> {
        self.written += after.map_or(0, |document| document.text().len());
        if self.written <= MAX_RESULT_BYTES {
            return Ok(());
        }
        let problem = ApplyProblem::ResultTooLarge { limit: MAX_RESULT_BYTES };
        Err(ApplyError::of_file(operation.path(), problem))
    }

    fn put(&mut self, operation: &Operation, after: Option<&Arc<Document>>) {
        match operation {
            Operation::Delete { path } | Operation::Rename { from: path, .. } => {
                self.files.insert(path.clone(), None);
            }
            Operation::Create { .. } | Operation::Modify { .. } | Operation::Copy { .. } => {}
        }
        if let Some(target) = operation.target() {
            self.files.insert(target.to_owned(), after.cloned());
        }
    }
}
