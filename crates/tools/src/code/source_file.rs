//! One source file with its definitions, as it is now.

use std::path::Path;

use carrel_code::{Definition, FileDefinitions, Language, SkipReason, signature_of};
use carrel_domain::{Code, Failure};

use super::symbol_indexes::SymbolIndexes;
use crate::files::{LoadedFile, WorkspaceFiles, shown};
use crate::read_tracker::{ContentHash, ReadExtent};

/// A source file with its definitions.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// The path for replies.
    pub(super) shown: String,
    pub(super) source: String,
    pub(super) definitions: Vec<Definition>,
    /// A part of the file was not understood, so that definitions may be missing.
    pub(super) has_error: bool,
    loaded: LoadedFile,
    hash: ContentHash,
}

impl SourceFile {
    /// Loads a file and its definitions. Parses it only if the index does not know it in this state.
    pub(super) fn load(
        files: &WorkspaceFiles,
        indexes: &SymbolIndexes,
        path: &Path,
    ) -> Result<Self, Failure> {
        let mut loaded = files.load(path)?;
        let shown = shown(path);
        if Language::of_path(&loaded.key.path).is_none() {
            return Err(unsupported(&shown));
        }
        let hash = loaded.hash();
        let source = String::from_utf8(std::mem::take(&mut loaded.bytes))
            .map_err(|_| skipped(&shown, SkipReason::NotUtf8))?;
        let found = indexes.with(&files.workspace, |index| {
            index.definitions_of(&loaded.key.path, &loaded.metadata, &source)
        });
        let FileDefinitions { definitions, has_error } =
            found.map_err(|reason| skipped(&shown, reason))?;
        Ok(Self { shown, source, definitions, has_error, loaded, hash })
    }

    /// Returns the path without links, relative to the workspace.
    pub(super) fn path(&self) -> &Path {
        &self.loaded.key.path
    }

    /// Returns the lines of the file without their endings.
    pub(super) fn lines(&self) -> Vec<&str> {
        carrel_edit::lines(&self.source).map(|line| line.text).collect()
    }

    /// Returns the byte offset of a character, both counted from 1.
    pub(super) fn offset_of(&self, line: usize, column: usize) -> Option<usize> {
        let begin = match line.checked_sub(1)? {
            0 => 0,
            feeds => self.source.match_indices('\n').nth(feeds - 1)?.0 + 1,
        };
        let text = carrel_edit::lines(&self.source[begin..]).next()?.text;
        let at = text.char_indices().nth(column.checked_sub(1)?).map_or(text.len(), |(at, _)| at);
        Some(begin + at)
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

    /// Records lines that a reply shows as read, and returns the short hash of the file.
    pub(super) fn record_shown(
        &self,
        files: &WorkspaceFiles,
        ranges: impl IntoIterator<Item = (usize, usize)>,
    ) -> String {
        let total = self.lines().len();
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
