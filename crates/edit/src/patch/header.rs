//! What stands above the hunks of a file.

use super::Operation;
use super::error::{LineProblem, ParseError};
use super::name::{Name, git_names, without_prefixes};
use super::parse::Cursor;

/// What the lines above the hunks say.
#[derive(Debug, Default)]
pub(super) struct Header {
    git_names: Option<(Name, Name)>,
    names: Option<(Name, Name)>,
    rename: (Option<String>, Option<String>),
    copy: (Option<String>, Option<String>),
    created: bool,
    deleted: bool,
    pub(super) mode: Option<u32>,
}

impl Header {
    /// Reads the lines from `diff --git` to the first hunk.
    pub(super) fn parse_git(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let mut header = Self::default();
        if let Some(names) = cursor.take("diff --git ") {
            header.git_names = git_names(names);
        }
        while header.extended_line(cursor)? {}
        if at_names(cursor) {
            header.parse_names(cursor)?;
        }
        Ok(header)
    }

    /// Reads a `---` and a `+++` line.
    pub(super) fn parse_plain(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let mut header = Self::default();
        header.parse_names(cursor)?;
        Ok(header)
    }

    fn parse_names(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
        let mut name = |prefix| {
            let name = cursor.take(prefix).and_then(Name::parse);
            name.ok_or_else(|| cursor.error_before(LineProblem::Name))
        };
        self.names = Some(without_prefixes(name("--- ")?, name("+++ ")?));
        Ok(())
    }

    /// Reads one line that git puts between `diff --git` and `---`.
    fn extended_line(&mut self, cursor: &mut Cursor<'_>) -> Result<bool, ParseError> {
        let Some(line) = cursor.peek() else { return Ok(false) };
        if line.starts_with("GIT binary patch") || is_binary_note(line) {
            let path = self.path().unwrap_or_else(|| line.to_owned());
            return Err(ParseError::Binary { path });
        }
        let Some(found) = Extended::parse(line) else { return Ok(false) };
        cursor.advance();
        let path = |text| match Name::parse(text) {
            Some(Name::Path(path)) => Ok(Some(path)),
            Some(Name::None) | None => Err(cursor.error_before(LineProblem::Name)),
        };
        match found {
            Extended::Created(mode) => (self.created, self.mode) = (true, octal(mode)),
            Extended::Deleted => self.deleted = true,
            Extended::NewMode(mode) => self.mode = octal(mode),
            Extended::RenameFrom(name) => self.rename.0 = path(name)?,
            Extended::RenameTo(name) => self.rename.1 = path(name)?,
            Extended::CopyFrom(name) => self.copy.0 = path(name)?,
            Extended::CopyTo(name) => self.copy.1 = path(name)?,
            Extended::Ignored => {}
        }
        Ok(true)
    }

    /// Says what happens to which file, unless no file is named.
    pub(super) fn operation(&self) -> Option<Operation> {
        if let (Some(from), Some(to)) = self.rename.clone() {
            return Some(Operation::Rename { from, to });
        }
        if let (Some(from), Some(to)) = self.copy.clone() {
            return Some(Operation::Copy { from, to });
        }
        match self.names.as_ref().or(self.git_names.as_ref())?.clone() {
            (Name::None, Name::None) => None,
            (Name::None, Name::Path(path)) => Some(Operation::Create { path }),
            (Name::Path(path), Name::None) => Some(Operation::Delete { path }),
            (Name::Path(path), Name::Path(_)) if self.deleted => Some(Operation::Delete { path }),
            (Name::Path(_), Name::Path(path)) if self.created => Some(Operation::Create { path }),
            // Names like `file.orig` and `file` differ; the file that exists is the second.
            (Name::Path(_), Name::Path(path)) => Some(Operation::Modify { path }),
        }
    }

    fn path(&self) -> Option<String> {
        self.operation().map(|operation| operation.path().to_owned())
    }
}

/// Tells whether a `---` and a `+++` line come next.
pub(super) fn at_names(cursor: &Cursor<'_>) -> bool {
    let starts = |ahead, prefix| cursor.look(ahead).is_some_and(|line| line.starts_with(prefix));
    starts(0, "--- ") && starts(1, "+++ ")
}

/// Tells whether a line says that files differ which are no text.
pub(super) fn is_binary_note(line: &str) -> bool {
    line.starts_with("Binary files ") && line.ends_with(" differ")
}

/// A line between `diff --git` and `---`.
enum Extended<'a> {
    Created(&'a str),
    Deleted,
    NewMode(&'a str),
    RenameFrom(&'a str),
    RenameTo(&'a str),
    CopyFrom(&'a str),
    CopyTo(&'a str),
    Ignored,
}

impl<'a> Extended<'a> {
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
