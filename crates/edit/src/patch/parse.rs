//! From text to [`Patch`].

use super::error::{LineProblem, ParseError};
use super::{FilePatch, Patch, envelope, unified};

/// Bounds the text of one patch.
pub const MAX_PATCH_BYTES: usize = 8 * 1024 * 1024;

/// Bounds the files that one patch is about.
pub const MAX_FILES: usize = 1000;

/// Bounds the hunks of one patch, each of which may be looked for in a whole file.
pub const MAX_HUNKS: usize = 10_000;

/// Reads a patch in any of the forms that agents and tools write.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    if text.len() > MAX_PATCH_BYTES {
        return Err(ParseError::TooLong { limit: MAX_PATCH_BYTES });
    }
    let mut cursor = Cursor::new(text);
    let files = match envelope::start(&cursor) {
        Some(start) => {
            cursor.at = start;
            envelope::parse(&mut cursor)?
        }
        None => unified::parse(&mut cursor)?,
    };
    if files.is_empty() {
        return Err(ParseError::Empty);
    }
    Ok(Patch { files })
}

/// The lines of a patch and how far they are read.
pub(super) struct Cursor<'a> {
    lines: Vec<&'a str>,
    at: usize,
    hunks: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let lines: Vec<_> = text.split('\n').collect();
        // Only a patch that went through a tool for CRLF has them in its headers too. In any other
        // one they belong to the files.
        let (last, ended) = lines.split_last().unwrap_or((&"", &[]));
        let returns = !ended.is_empty() && ended.iter().all(|line| line.ends_with('\r'));
        let bare = |line: &'a str| line.strip_suffix('\r').unwrap_or(line);
        let lines = if returns {
            ended.iter().chain([last]).map(|line| bare(line)).collect()
        } else {
            lines
        };
        Self { lines, at: 0, hunks: 0 }
    }

    /// Returns the line `ahead` lines after the next one.
    pub(super) fn look(&self, ahead: usize) -> Option<&'a str> {
        self.lines.get(self.at + ahead).copied()
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.look(0)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Returns what follows a prefix of the next line, and passes that line.
    pub(super) fn take(&mut self, prefix: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(prefix)?;
        self.advance();
        Some(rest)
    }

    /// Says what is wrong with the next line.
    pub(super) fn error(&self, problem: LineProblem) -> ParseError {
        ParseError::Line { line: self.at + 1, problem }
    }

    /// Says what is wrong with the line before the next.
    pub(super) fn error_before(&self, problem: LineProblem) -> ParseError {
        ParseError::Line { line: self.at.max(1), problem }
    }

    /// Counts a hunk, of which there may be so many in a patch.
    pub(super) fn count_hunk(&mut self) -> Result<(), ParseError> {
        self.hunks += 1;
        let fits = self.hunks <= MAX_HUNKS;
        if fits { Ok(()) } else { Err(ParseError::TooManyHunks { limit: MAX_HUNKS }) }
    }
}

/// Adds a file, of which there may be so many in a patch.
pub(super) fn push_file(files: &mut Vec<FilePatch>, file: FilePatch) -> Result<(), ParseError> {
    if files.len() >= MAX_FILES {
        return Err(ParseError::TooManyFiles { limit: MAX_FILES });
    }
    files.push(file);
    Ok(())
}
