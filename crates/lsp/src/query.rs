//! Queries: each is asked in the protocol's words and answered in Carrel's.
//!
//! Positions come in as byte offsets and go out as [`Place`](crate::Place)s in workspace files. Files outside of the
//! workspace, such as the standard library, are named and never opened. Elements of an answer that cannot be understood
//! are counted in the reason for which it is not complete.

pub(crate) mod calls;
pub(crate) mod diagnostics;
pub(crate) mod edits;
pub(crate) mod hover;
pub(crate) mod locations;
mod missed_uses;
pub(crate) mod rename;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::definition::ServerDefinition;
use crate::fault::{Fault, QueryError};
use crate::position::TextIndex;
use crate::server::LanguageServer;
use crate::stamp::ContentHash;

/// A position in a file of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The file, relative to the workspace.
    pub path: PathBuf,
    /// The byte offset in the file.
    pub offset: usize,
    /// The content that the offset is about; the present one if absent.
    pub content: Option<ContentHash>,
}

impl Target {
    /// Returns a position in the present content of a file.
    pub fn new(path: impl Into<PathBuf>, offset: usize) -> Self {
        Self { path: path.into(), offset, content: None }
    }

    /// Returns the same position for a content that was read before. Another one is an error then.
    #[must_use]
    pub fn in_content(self, content: ContentHash) -> Self {
        Self { content: Some(content), ..self }
    }
}

/// A query about one file.
pub(crate) trait Query: Sync {
    type Answer: PartialEq + Send;

    /// Returns the file that decides about the server, and that it has open when it is asked.
    fn file(&self) -> &Path;

    /// Returns whether the answer depends on files that the document does not name.
    fn concerns_other_files(&self, definition: &ServerDefinition) -> bool;

    fn ask(
        &self,
        server: &mut LanguageServer,
        until: Instant,
    ) -> impl Future<Output = Result<Finding<Self::Answer>, Fault>> + Send;
}

/// A part of an answer, and the reason why it may lack something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding<T> {
    pub(crate) value: T,
    pub(crate) incomplete: Option<String>,
}

impl<T> Finding<T> {
    pub(crate) fn complete(value: T) -> Self {
        Self { value, incomplete: None }
    }

    /// Returns a finding without `lost` elements that were not understood.
    pub(crate) fn without(value: T, lost: usize) -> Self {
        let incomplete = (lost > 0).then(|| {
            format!("{lost} results are left out: their files are not UTF-8, or their positions do not exist")
        });
        Self { value, incomplete }
    }
}

impl LanguageServer {
    /// Returns `TextDocumentPositionParams`.
    pub(crate) fn position_params(&self, target: &Target) -> Result<Value, Fault> {
        let document = self.document(&target.path)?;
        if target.content.is_some_and(|content| content != document.hash) {
            return Err(QueryError::HasChanged { path: target.path.clone() }.into());
        }
        let text = &document.text;
        if target.offset > text.len() {
            let (path, length) = (target.path.clone(), text.len());
            return Err(QueryError::NoSuchPosition { path, offset: target.offset, length }.into());
        }
        let position = self.index(text).position(target.offset);
        let document = json!({ "uri": self.documents.uri(&target.path) });
        Ok(json!({ "textDocument": document, "position": position }))
    }

    /// Returns the lines of a text as this server counts them.
    pub(crate) fn index<'t>(&self, text: &'t str) -> TextIndex<'t> {
        TextIndex::new(text, self.capabilities.encoding, self.definition.line_breaks)
    }

    /// Refuses a query that the server cannot answer.
    pub(crate) fn require(&self, capability: &str, what: &'static str) -> Result<(), Fault> {
        if self.capabilities.has(capability) {
            return Ok(());
        }
        Err(QueryError::Unsupported { server: self.definition.name, what }.into())
    }
}
