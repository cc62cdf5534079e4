//! Entry point of the patch parser, and the line reader that both formats share.
//!
//! The format is detected by its first line: `*** Begin Patch`, after blank lines and code fences,
//! is an envelope; everything else is parsed as unified diffs. Input is bounded in bytes, files and
//! hunks, since each hunk may be compared with a whole file.

use super::{FilePatch, LineProblem, ParseError, Patch, envelope, unified};

/// Bounds the bytes of one patch.
pub const MAX_PATCH_BYTES: usize = 8 * 1024 * 1024;

/// Bounds the sections of one patch.
pub const MAX_FILES: usize = 1000;

/// Bounds the hunks of one patch.
pub const MAX_HUNKS: usize = 10_000;

/// Parses a unified diff or an envelope, with prose and code fences around it.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    if text.len() > MAX_PATCH_BYTES {
        return Err(ParseError::TooLong { limit: MAX_PATCH_BYTES });
    }
    let mut reader = PatchReader::new(text);
    let files = match envelope::start(&reader) {
        Some(start) => {
            reader.at = start;
            envelope::parse(&mut reader)?
        }
        None => unified::parse(&mut reader)?,
    };
    if files.is_empty() {
        return Err(ParseError::Empty);
    }
    Ok(Patch { files })
}

/// The lines of a patch and the current position.
pub(super) struct PatchReader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    hunks: usize,
}

impl<'a> PatchReader<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let lines: Vec<_> = text.split('\n').collect();
        // If every line ends with a carriage return, headers included, the patch itself was
        // converted to CRLF. Otherwise the returns belong to lines of the files.
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

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&'a str> {
        self.lines.get(self.at + ahead).copied()
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.peek_at(0)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Consumes the next line if it has a prefix, and returns the rest of it.
    pub(super) fn take(&mut self, prefix: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(prefix)?;
        self.advance();
        Some(rest)
    }

    /// Creates an error at the next line.
    pub(super) fn error(&self, problem: LineProblem) -> ParseError {
        ParseError::Line { line: self.at + 1, problem }
    }

    /// Creates an error at the line consumed last.
    pub(super) fn error_before(&self, problem: LineProblem) -> ParseError {
        ParseError::Line { line: self.at.max(1), problem }
    }

    pub(super) fn count_hunk(&mut self) -> Result<(), ParseError> {
        self.hunks += 1;
        let fits = self.hunks <= MAX_HUNKS;
        if fits { Ok(()) } else { Err(ParseError::TooManyHunks { limit: MAX_HUNKS }) }
    }
}

pub(super) fn push_file(files: &mut Vec<FilePatch>, file: FilePatch) -> Result<(), ParseError> {
    if files.len() >= MAX_FILES {
        return Err(ParseError::TooManyFiles { limit: MAX_FILES });
    }
    files.push(file);
    Ok(())
}
