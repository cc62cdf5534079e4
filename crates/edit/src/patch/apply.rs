//! From a patch and documents to changed documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::{ApplyError, ApplyProblem};
use super::locate::{Located, locate};
use super::matching::Matcher;
use super::write::Writer;
use super::{FilePatch, Hunk, Operation, Patch};
use crate::document::Document;
use crate::lines::{LineFacts, raw_lines};

/// Bounds the text that all files of one patch have together afterwards.
pub const MAX_RESULT_BYTES: usize = 256 * 1024 * 1024;

/// One file after its part of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedDocument {
    /// The changed document, or `None` if the file is removed.
    pub document: Option<Document>,
    /// Where the hunks were found.
    pub hunks: Vec<AppliedHunk>,
}

/// Where a hunk was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct AppliedHunk {
    /// Its first line in the file before the patch.
    pub line: usize,
    /// How many lines that is from where the patch says, if it says so.
    pub offset: Option<i64>,
    /// How many lines of context were given up at each end, at most.
    pub fuzz: usize,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// What happens, and to which paths.
    pub operation: Operation,
    /// The file mode that git gives.
    pub mode: Option<u32>,
    /// The document that was read, if one was.
    pub before: Option<Arc<Document>>,
    /// The document to write, if one is.
    pub after: Option<Arc<Document>>,
    /// Where the hunks were found.
    pub hunks: Vec<AppliedHunk>,
}

/// Applies the part of a patch that is about one file.
///
/// `original` is the file that is read, and `None` if it does not exist.
pub fn apply(file: &FilePatch, original: Option<&Document>) -> Result<PatchedDocument, ApplyError> {
    let path = file.operation.path();
    let whole = |problem| ApplyError { path: path.to_owned(), hunk: None, problem };
    let empty = Document::from_text("");
    let original = match (&file.operation, original) {
        (Operation::Create { .. }, Some(_)) => return Err(whole(ApplyProblem::Exists)),
        (Operation::Create { .. }, None) => &empty,
        (_, None) => return Err(whole(ApplyProblem::Missing)),
        (_, Some(original)) => original,
    };
    let (text, hunks) = rewrite(path, original.text(), &file.hunks)?;
    if let Operation::Delete { .. } = file.operation {
        let count = LineFacts::of(&text).count;
        // Without hunks the patch says nothing about what is in the file.
        if !file.hunks.is_empty() && count > 0 {
            return Err(whole(ApplyProblem::NotEmptied { count }));
        }
        return Ok(PatchedDocument { document: None, hunks });
    }
    let document = original.with_text(text).map_err(|error| whole(error.into()))?;
    Ok(PatchedDocument { document: Some(document), hunks })
}

/// Applies hunks to a text in order.
fn rewrite(
    path: &str,
    original: &str,
    hunks: &[Hunk],
) -> Result<(String, Vec<AppliedHunk>), ApplyError> {
    let file: Vec<_> = raw_lines(original).collect();
    let mut matcher = Matcher::new(&file);
    let mut writer = Writer::new(&file, original);
    let mut placed = Vec::with_capacity(hunks.len());
    let mut drift = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let expected = hunk.lines_before.map(|lines| lines.saturating_add_signed(drift));
        let located = locate(&mut matcher, hunk, writer.done(), expected);
        let located = located.map_err(|problem| ApplyError {
            path: path.to_owned(),
            hunk: Some(index + 1),
            problem,
        })?;
        writer.hunk(&located, &hunk.lines);
        let offset = offset(hunk, &located);
        // What shifted one hunk has shifted those behind it.
        drift = offset.unwrap_or(drift);
        let offset = offset.map(|offset| i64::try_from(offset).unwrap_or(i64::MAX));
        placed.push(AppliedHunk { line: located.at + 1, offset, fuzz: located.fuzz });
    }
    Ok((writer.finish(), placed))
}

fn offset(hunk: &Hunk, located: &Located) -> Option<isize> {
    // Lines of context that were given up at the start come before the place.
    let start = isize::try_from(located.at).ok()? - isize::try_from(located.lines.start).ok()?;
    Some(start - isize::try_from(hunk.lines_before?).ok()?)
}

/// Applies a whole patch in memory.
///
/// `read` gives the document at a path, or `None` if there is no file. A file that occurs again is
/// taken as the sections before left it. The changes are to be made in order.
pub fn apply_all(
    patch: &Patch,
    read: impl FnMut(&str) -> Option<Document>,
) -> Result<Vec<FileChange>, ApplyError> {
    let mut tree = Tree { read, files: BTreeMap::new(), written: 0 };
    patch.files.iter().map(|file| tree.apply(file)).collect()
}

/// Files as they are after some sections of a patch.
struct Tree<R> {
    read: R,
    files: BTreeMap<String, Option<Arc<Document>>>,
    written: usize,
}

impl<R: FnMut(&str) -> Option<Document>> Tree<R> {
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

    /// Refuses to move or copy onto a file that exists.
    fn check_target(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        match operation {
            Operation::Rename { from, to } | Operation::Copy { from, to } if from != to => {
                let problem = ApplyProblem::Exists;
                let exists = || ApplyError { path: to.clone(), hunk: None, problem };
                self.get(to).map_or(Ok(()), |_| Err(exists()))
            }
            Operation::Rename { .. }
            | Operation::Copy { .. }
            | Operation::Create { .. }
            | Operation::Delete { .. }
            | Operation::Modify { .. } => Ok(()),
        }
    }

    fn count(&mut self, operation: &Operation, after: Option<&Document>) -> Result<(), ApplyError> {
        self.written += after.map_or(0, |document| document.text().len());
        if self.written <= MAX_RESULT_BYTES {
            return Ok(());
        }
        let path = operation.path().to_owned();
        let problem = ApplyProblem::ResultTooLarge { limit: MAX_RESULT_BYTES };
        Err(ApplyError { path, hunk: None, problem })
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
