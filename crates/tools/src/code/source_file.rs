//! One source file as it is now: its text, and its definitions where they are wanted.

use std::ops::Deref;
use std::path::Path;

use carrel_code::{Definition, FileDefinitions, Language, SkipReason, signature_of};
use carrel_domain::{Code, Failure};

use super::symbol_indexes::SymbolIndexes;
use crate::files::{LoadedFile, WorkspaceFiles, shown};
use crate::read_tracker::{ContentHash, ReadExtent};

/// The text of a source file.
#[derive(Debug)]
pub(super) struct SourceText {
    /// The path for replies.
    pub(super) shown: String,
    pub(super) source: String,
    loaded: LoadedFile,
    hash: ContentHash,
}

/// A source file with its definitions.
#[derive(Debug)]
pub(super) struct SourceFile {
    text: SourceText,
    pub(super) definitions: Vec<Definition>,
    /// A part of the file was not understood, so that definitions may be missing.
    pub(super) has_error: bool,
}

impl Deref for SourceFile {
    type Target = SourceText;

    fn deref(&self) -> &SourceText {
        &self.text
    }
}

impl SourceText {
    /// Loads a file of a language that is known here.
    pub(super) fn load(files: &WorkspaceFiles, path: &Path) -> Result<Self, Failure> {
        let mut loaded = files.load(path)?;
        let shown = shown(path);
        if Language::of_path(&loaded.key.path).is_none() {
            return Err(unsupported(&shown));
        }
        let hash = loaded.hash();
        let source = String::from_utf8(std::mem::take(&mut loaded.bytes))
            .map_err(|_| skipped(&shown, SkipReason::NotUtf8))?;
        Ok(Self { shown, source, loaded, hash })
    }

    /// Returns the path without links, relative to the workspace.
    pub(super) fn path(&self) -> &Path {
        &self.loaded.key.path
    }

    /// Returns the names of the innermost symbol around a line; empty at the top level. Parses the file only if the
    /// index does not know it in this state.
    pub(super) fn enclosing(
        &self,
        files: &WorkspaceFiles,
        indexes: &SymbolIndexes,
        line: usize,
    ) -> Result<String, Failure> {
        let found = indexes.with(&files.workspace, |index| {
            index.innermost_of(self.path(), &self.loaded.metadata, &self.source, line)
        });
        Ok(found.map_err(|reason| skipped(&self.shown, reason))?.join("::"))
    }

    /// Returns a line without its ending, counted from 1.
    pub(super) fn line(&self, number: usize) -> Option<&str> {
        carrel_edit::line(&self.source, number).map(|line| line.text)
    }

    pub(super) fn line_count(&self) -> usize {
        carrel_edit::line_count(&self.source)
    }

    /// Returns the digest of the content as language servers are told of it.
    pub(super) const fn content_hash(&self) -> carrel_lsp::ContentHash {
        carrel_lsp::ContentHash::from_bytes(self.hash.bytes())
    }

    /// Returns the lines of the file without their endings.
    pub(super) fn lines(&self) -> Vec<&str> {
        carrel_edit::lines(&self.source).map(|line| line.text).collect()
    }

    /// Returns the byte offset of a character, both counted from 1.
    pub(super) fn offset_of(&self, line: usize, column: usize) -> Option<usize> {
        let begin = carrel_edit::line_start(&self.source, line)?;
        let text = carrel_edit::line(&self.source[begin..], 1)?.text;
        let at = text.char_indices().nth(column.checked_sub(1)?).map_or(text.len(), |(at, _)| at);
        Some(begin + at)
    }

    /// Records lines that a reply shows as read, and returns the short hash of the file.
    pub(super) fn record_shown(
        &self,
        files: &WorkspaceFiles,
        ranges: impl IntoIterator<Item = (usize, usize)>,
    ) -> String {
        let total = self.line_count();
        for (first, last) in ranges {
            let extent = if (first, last) == (1, total) {
                ReadExtent::Whole
            } else {
                ReadExtent::Lines(first, last, total)
            };
            files.record_read(self.loaded.key.clone(), self.hash, &extent);
        }
        self.hash.short()
    }
}

impl SourceFile {
    /// Loads a file and its definitions. Parses it only if the index does not know it in this state.
    pub(super) fn load(
        files: &WorkspaceFiles,
        indexes: &SymbolIndexes,
        path: &Path,
    ) -> Result<Self, Failure> {
        let text = SourceText::load(files, path)?;
        let found = indexes.with(&files.workspace, |index| {
            index.definitions_of(text.path(), &text.loaded.metadata, &text.source)
        });
        let FileDefinitions { definitions, has_error } =
            found.map_err(|reason| skipped(&text.shown, reason))?;
        Ok(Self { text, definitions, has_error })
    }

    /// Returns the names of the innermost symbol around a line; empty at the top level.
    pub(super) fn enclosing(&self, line: usize) -> String {
        let contains = |one: &&Definition| (one.lines.0..=one.lines.1).contains(&line);
        let innermost = self.definitions.iter().rev().find(contains);
        innermost.map_or(String::new(), |one| one.path.join("::"))
    }

    /// Tells whether the name of a definition is on a line.
    pub(super) fn defines(&self, name: &str, line: usize) -> bool {
        let is_it =
            |one: &Definition| one.line == line && one.path.last().is_some_and(|last| last == name);
        self.definitions.iter().any(is_it)
    }

    /// Returns a definition up to its body on one line.
    pub(super) fn signature(&self, definition: &Definition) -> String {
        signature_of(definition, &self.source)
    }
}

pub(super) fn unsupported(shown: &str) -> Failure {
    let message = format!(
        "{shown}: files of this name have no grammar here; Read shows it, Grep searches in it"
    );
    Failure::new(Code::UnsupportedLanguage, message).with("path", shown)
}

fn skipped(shown: &str, reason: SkipReason) -> Failure {
    let code = match reason {
        SkipReason::NotUtf8 => Code::BinaryFile,
        SkipReason::TooLarge | SkipReason::TooDeep | SkipReason::NoRoom => Code::TooLarge,
        SkipReason::TimedOut => Code::Timeout,
        SkipReason::NoGrammar => Code::UnsupportedLanguage,
        SkipReason::Unreadable => Code::Io,
    };
    let message = format!("{shown} has no symbols: {}", reason.as_str());
    Failure::new(code, message).with("path", shown)
}
