//! Headers above the hunks of a file: `diff --git`, the extended lines of git, and `---`/`+++`.
//!
//! Agents omit parts of them, so the operation is derived from what is present: explicit renames
//! and copies first, then `/dev/null` or a mode line for creation and removal, otherwise a
//! modification.

use super::Operation;
use super::error::{LineProblem, ParseError};
use super::file_name::{FileName, git_names, without_prefixes};
use super::parse::PatchReader;

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
    /// Parses the lines from `diff --git` to the first hunk.
    pub(super) fn parse_git(reader: &mut PatchReader<'_>) -> Result<Self, ParseError> {
        let mut header = Self::default();
        if let Some(names) = reader.take("diff --git ") {
            header.git_names = git_names(names);
        }
        while header.extended_line(reader)? {}
        if at_names(reader) {
            header.parse_names(reader)?;
        }
        Ok(header)
    }

    /// Parses a `---` and a `+++` line without git headers.
    pub(super) fn parse_plain(reader: &mut PatchReader<'_>) -> Result<Self, ParseError> {
        let mut header = Self::default();
        header.parse_names(reader)?;
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
        let Some(found) = ExtendedHeader::parse(line) else { return Ok(false) };
        reader.advance();
        let path = |text| match FileName::parse(text) {
            Some(FileName::Path(path)) => Ok(Some(path)),
            Some(FileName::None) | None => Err(reader.error_before(LineProblem::Name)),
        };
        match found {
            ExtendedHeader::Created(mode) => (self.created, self.mode) = (true, octal(mode)),
            ExtendedHeader::Deleted => self.deleted = true,
            ExtendedHeader::NewMode(mode) => self.mode = octal(mode),
            ExtendedHeader::RenameFrom(name) => self.rename.0 = path(name)?,
            ExtendedHeader::RenameTo(name) => self.rename.1 = path(name)?,
            ExtendedHeader::CopyFrom(name) => self.copy.0 = path(name)?,
            ExtendedHeader::CopyTo(name) => self.copy.1 = path(name)?,
            ExtendedHeader::Ignored => {}
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

/// An extended header line of git, between `diff --git` and `---`.
enum ExtendedHeader<'a> {
    Created(&'a str),
    Deleted,
    NewMode(&'a str),
    RenameFrom(&'a str),
    RenameTo(&'a str),
    CopyFrom(&'a str),
    CopyTo(&'a str),
    Ignored,
}

impl<'a> ExtendedHeader<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        const IGNORED: [&str; 4] =
            ["old mode ", "similarity index ", "dissimilarity index ", "index "];
        let after = |prefix| line.strip_prefix(prefix);
        after("new file mode ")
            .map(Self::Created)
            .or_else(|| after("deleted file mode ").map(|_| Self::Deleted))
            .or_else(|| after("new mode ").map(Self::NewMode))
            .or_else(|| after("rename from ").map(Self::RenameFrom))
            .or_else(|| after("rename to ").map(Self::RenameTo))
            .or_else(|| after("copy from ").map(Self::CopyFrom))
            .or_else(|| after("copy to ").map(Self::CopyTo))
            .or_else(|| IGNORED.into_iter().find_map(after).map(|_| Self::Ignored))
    }
}

fn octal(mode: &str) -> Option<u32> {
    u32::from_str_radix(mode.trim_end(), 8).ok()
}
