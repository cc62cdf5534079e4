//! Headers above the hunks of a file: `diff --git`, the extended lines of git, and `---`/`+++`.
//!
//! Agents omit parts of them, so the operation is derived from what is present: explicit renames
//! and copies first, then `/dev/null` or a mode line for creation and removal, otherwise a
//! modification.

use super::Operation;
use super::error::{LineProblem, ParseError};
use super::file_name::{FileName, git_names, without_prefixes};
use super::parse::PatchReader;

/// Starts of the lines that git writes between `diff --git` and `---`.
const EXTENDED_KEYS: [&str; 11] = [
    "new file mode ",
    "deleted file mode ",
    "new mode ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "old mode ",
    "similarity index ",
    "dissimilarity index ",
    "index ",
];

#[derive(Debug, Default)]
pub(super) struct FileHeader {
    git_names: Option<(FileName, FileName)>,
    names: Option<(FileName, FileName)>,
    rename: (Option<String>, Option<String>),
    copy: (Option<String>, Option<String>),
    created: bool,
    deleted: bool,
    pub(super) mode: Option<u32>,
}

impl FileHeader {
    /// Parses the lines from `diff --git`, or from `---` without git headers, to the first hunk.
    pub(super) fn parse(reader: &mut PatchReader<'_>) -> Result<Self, ParseError> {
        let mut header = Self::default();
        if let Some(names) = reader.take("diff --git ") {
            header.git_names = git_names(names);
            while header.extended_line(reader)? {}
        }
        if at_names(reader) {
            header.parse_names(reader)?;
        }
        Ok(header)
    }

    fn parse_names(&mut self, reader: &mut PatchReader<'_>) -> Result<(), ParseError> {
        let mut name = |prefix| {
            let name = reader.take(prefix).and_then(FileName::parse);
            name.ok_or_else(|| reader.error_before(LineProblem::Name))
        };
        self.names = Some(without_prefixes(name("--- ")?, name("+++ ")?));
        Ok(())
    }

    /// Parses one line between `diff --git` and `---`; returns false at any other line.
    fn extended_line(&mut self, reader: &mut PatchReader<'_>) -> Result<bool, ParseError> {
        let Some(line) = reader.peek() else { return Ok(false) };
        if line.starts_with("GIT binary patch") || is_binary_note(line) {
            let path = self.path().unwrap_or_else(|| line.to_owned());
            return Err(ParseError::Binary { path });
        }
        let after_key = |key: &&'static str| Some((*key, line.strip_prefix(*key)?));
        let Some((key, rest)) = EXTENDED_KEYS.iter().find_map(after_key) else { return Ok(false) };
        reader.advance();
        let path = |text| match FileName::parse(text) {
            Some(FileName::Path(path)) => Ok(Some(path)),
            Some(FileName::None) | None => Err(reader.error_before(LineProblem::Name)),
        };
        match key {
            "new file mode " => (self.created, self.mode) = (true, octal(rest)),
            "deleted file mode " => self.deleted = true,
            "new mode " => self.mode = octal(rest),
            "rename from " => self.rename.0 = path(rest)?,
            "rename to " => self.rename.1 = path(rest)?,
            "copy from " => self.copy.0 = path(rest)?,
            "copy to " => self.copy.1 = path(rest)?,
            _ => {}
        }
        Ok(true)
    }

    /// Returns the operation and its paths; `None` if no file is named.
    pub(super) fn operation(&self) -> Option<Operation> {
        if let (Some(from), Some(to)) = self.rename.clone() {
            return Some(Operation::Rename { from, to });
        }
        if let (Some(from), Some(to)) = self.copy.clone() {
            return Some(Operation::Copy { from, to });
        }
        match self.names.as_ref().or(self.git_names.as_ref())?.clone() {
            (FileName::None, FileName::None) => None,
            (FileName::None, FileName::Path(path)) => Some(Operation::Create { path }),
            (FileName::Path(path), FileName::None) => Some(Operation::Delete { path }),
            (FileName::Path(path), FileName::Path(_)) if self.deleted => {
                Some(Operation::Delete { path })
            }
            (FileName::Path(_), FileName::Path(path)) if self.created => {
                Some(Operation::Create { path })
            }
            // In `--- file.orig`, `+++ file` the second name is the one that exists.
            (FileName::Path(_), FileName::Path(path)) => Some(Operation::Modify { path }),
        }
    }

    fn path(&self) -> Option<String> {
        self.operation().map(|operation| operation.path().to_owned())
    }
}

/// Returns true if a `---` and a `+++` line come next.
pub(super) fn at_names(reader: &PatchReader<'_>) -> bool {
    let starts = |ahead, prefix| reader.peek_at(ahead).is_some_and(|line| line.starts_with(prefix));
    starts(0, "--- ") && starts(1, "+++ ")
}

/// Returns true for the line `Binary files a/x and b/x differ`.
pub(super) fn is_binary_note(line: &str) -> bool {
    line.starts_with("Binary files ") && line.ends_with(" differ")
}

fn octal(mode: &str) -> Option<u32> {
    u32::from_str_radix(mode.trim_end(), 8).ok()
}
