//! Changes that a server proposes, as byte ranges of known contents.
//!
//! Nothing is applied here. A change says which content each of its edits is about, so that it can only be applied to
//! that, and is given as a whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use serde_json::Value;

use crate::fault::{Fault, QueryError};
use crate::position::TextIndex;
use crate::protocol::{self, DocumentChange, TextEdit};
use crate::server::LanguageServer;
use crate::stamp::ContentHash;

/// A change of files of the workspace. Edits come before operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// The edits of each file, in path order.
    pub files: Vec<FileEdits>,
    /// Operations on whole files, in this order.
    pub operations: Vec<FileOperation>,
}

/// The edits of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdits {
    /// The file, relative to the workspace.
    pub path: PathBuf,
    /// The content that the edits are about.
    pub content: ContentHash,
    /// The edits, in their order, none of which overlap.
    pub edits: Vec<ByteEdit>,
}

/// The replacement of a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteEdit {
    /// The bytes that are replaced.
    pub range: Range<usize>,
    /// The text in their place.
    pub text: String,
}

/// An operation on a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are paths relative to the workspace, and a text")]
pub enum FileOperation {
    Create { path: PathBuf, text: String },
    Rename { from: PathBuf, to: PathBuf },
    Delete { path: PathBuf },
}

/// The edits of files that exist, by their present paths, and the operations.
#[derive(Default)]
struct Draft {
    edits: BTreeMap<PathBuf, Vec<TextEdit>>,
    operations: Vec<FileOperation>,
}

impl LanguageServer {
    /// Converts a workspace edit.
    pub(crate) async fn workspace_change(&self, edit: Value) -> Result<WorkspaceChange, Fault> {
        let changes = protocol::document_changes(edit).map_err(|reason| self.malformed(reason))?;
        let mut draft = Draft::default();
        for change in changes {
            self.add(&mut draft, change)?;
        }
        let paths: BTreeSet<PathBuf> = draft.edits.keys().cloned().collect();
        let mut read = self.read(paths).await?;
        let mut files = Vec::new();
        for (path, edits) in draft.edits {
            let file = read.remove(&path);
            let Some((hash, text)) = file.and_then(|read| Some((read.hash(), read.into_text()?)))
            else {
                return Err(QueryError::NotText { path }.into());
            };
            let edits = byte_edits(&self.index(&text), edits)
                .map_err(|reason| self.malformed(format!("{}: {reason}", path.display())))?;
            files.push(FileEdits { path, content: hash, edits });
        }
        Ok(WorkspaceChange { files, operations: draft.operations })
    }

    fn add(&self, draft: &mut Draft, change: DocumentChange) -> Result<(), Fault> {
        match change {
            DocumentChange::Edits { uri, edits } => {
                let path = self.inside(&uri)?;
                if let Some(text) = draft.created(&path) {
                    let inserted = edits.into_iter().map(|edit| edit.new_text);
                    text.extend(inserted);
                } else {
                    draft.edits.entry(draft.present(path)).or_default().extend(edits);
                }
            }
            DocumentChange::Create { uri } => {
                let path = self.inside(&uri)?;
                draft.operations.push(FileOperation::Create { path, text: String::new() });
            }
            DocumentChange::Rename { old, new } => {
                let (from, to) = (self.inside(&old)?, self.inside(&new)?);
                draft.operations.push(FileOperation::Rename { from, to });
            }
            DocumentChange::Delete { uri } => {
                let path = self.inside(&uri)?;
                draft.operations.push(FileOperation::Delete { path });
            }
        }
        Ok(())
    }

    fn inside(&self, uri: &str) -> Result<PathBuf, Fault> {
        self.relative(uri).map_err(|path| {
            let path = path.display().to_string();
            QueryError::Outside { server: self.definition.name, path }.into()
        })
    }

    pub(crate) fn malformed(&self, reason: String) -> QueryError {
        QueryError::Malformed { server: self.definition.name, reason }
    }
}

impl Draft {
    /// Returns the path that a file has before the operations.
    fn present(&self, path: PathBuf) -> PathBuf {
        let before = |path: PathBuf, operation: &FileOperation| match operation {
            FileOperation::Rename { from, to } => {
                path.strip_prefix(to).map(|rest| from.join(rest)).unwrap_or(path)
            }
            FileOperation::Create { .. } | FileOperation::Delete { .. } => path,
        };
        self.operations.iter().rev().fold(path, before)
    }

    /// Returns the text of a file that an operation creates.
    fn created(&mut self, wanted: &PathBuf) -> Option<&mut String> {
        self.operations.iter_mut().find_map(|operation| match operation {
            FileOperation::Create { path, text } if path == wanted => Some(text),
            _ => None,
        })
    }
}

/// Converts edits, and puts them in order. Insertions at one place keep theirs.
fn byte_edits(index: &TextIndex<'_>, edits: Vec<TextEdit>) -> Result<Vec<ByteEdit>, String> {
    let mut converted = Vec::with_capacity(edits.len());
    for TextEdit { range, new_text } in edits {
        let line = range.start.line.saturating_add(1);
        let range = index.byte_range(range).ok_or_else(|| format!("there is no line {line}"))?;
        converted.push(ByteEdit { range, text: new_text });
    }
    converted.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let overlap = converted.windows(2).find(|pair| pair[0].range.end > pair[1].range.start);
    match overlap {
        Some(pair) => Err(format!("two edits overlap at byte {}", pair[1].range.start)),
        None => Ok(converted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{LineBreaks, Position, PositionEncoding};
    use pretty_assertions::assert_eq;

    fn edit(start: (u32, u32), end: (u32, u32), text: &str) -> TextEdit {
        let position = |(line, character)| Position { line, character };
        let range = crate::position::Range { start: position(start), end: position(end) };
        TextEdit { range, new_text: text.to_owned() }
    }

    fn convert(edits: Vec<TextEdit>) -> Result<Vec<ByteEdit>, String> {
        let index =
            TextIndex::new("a\u{1f600}b\nc\n", PositionEncoding::Utf16, LineBreaks::Newline);
        byte_edits(&index, edits)
    }

    #[test]
    fn edits_are_sorted_and_insertions_at_one_place_keep_their_order() {
        let converted = convert(vec![
            edit((1, 0), (1, 1), "x"),
            edit((0, 3), (0, 3), "1"),
            edit((0, 3), (0, 3), "2"),
            edit((0, 0), (0, 1), ""),
        ]);
        let byte_edit = |range, text: &str| ByteEdit { range, text: text.to_owned() };
        let expected = vec![
            byte_edit(0..1, ""),
            byte_edit(5..5, "1"),
            byte_edit(5..5, "2"),
            byte_edit(7..8, "x"),
        ];
        assert_eq!(converted, Ok(expected));
    }

    #[test]
    fn edits_that_overlap_or_lie_nowhere_are_refused() {
        let overlapping = convert(vec![edit((0, 0), (1, 0), ""), edit((0, 3), (0, 4), "")]);
        assert_eq!(overlapping, Err("two edits overlap at byte 5".to_owned()));
        let nowhere = convert(vec![edit((9, 0), (9, 0), "")]);
        assert_eq!(nowhere, Err("there is no line 10".to_owned()));
        let last = (u32::MAX, u32::MAX);
        let beyond = convert(vec![edit(last, last, "")]);
        assert_eq!(beyond, Err(format!("there is no line {}", u32::MAX)));
    }

    #[test]
    fn edits_of_a_renamed_file_are_those_of_its_present_path() {
        let rename =
            |from: &str, to: &str| FileOperation::Rename { from: from.into(), to: to.into() };
        let operations = vec![rename("a", "b"), rename("b/x", "b/y")];
        let draft = Draft { operations, ..Draft::default() };
        assert_eq!(draft.present("b/y/z.rs".into()), PathBuf::from("a/x/z.rs"));
        assert_eq!(draft.present("c".into()), PathBuf::from("c"));
    }
}
