//! Parser for patches between `*** Begin Patch` and `*** End Patch`.
//!
//! The format has no line numbers: a hunk is found by its own lines, after the anchor lines that
//! follow `@@`.
//!
//! ```text
//! *** Begin Patch
//! *** Update File: src/a.py
//! *** Move to: src/b.py
//! @@ class A
//! @@ def f():
//!      x
//! -    y
//! +    z
//! *** Add File: new.txt
//! +one
//! *** Delete File: old.txt
//! *** End Patch
//! ```
//!
//! A patch without its last line was probably cut off, so it is refused. Code fences around the
//! envelope are skipped, because models often add them.

use super::error::{LineProblem, ParseError};
use super::hunk::{HunkHeader, signed};
use super::parse::{PatchReader, push_file};
use super::{FilePatch, Hunk, HunkLine, Operation, Sign};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const UPDATE: &str = "*** Update File: ";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";
/// Prefix of every line of the envelope itself.
const MARKER: &str = "*** ";

/// Returns the index of the line after `*** Begin Patch`, if the text is an envelope.
pub(super) fn start(reader: &PatchReader<'_>) -> Option<usize> {
    let mut at = 0;
    while reader.peek_at(at)?.trim().is_empty() || reader.peek_at(at)?.starts_with("```") {
        at += 1;
    }
    (reader.peek_at(at)?.trim_end() == BEGIN).then_some(at + 1)
}

pub(super) fn parse(reader: &mut PatchReader<'_>) -> Result<Vec<FilePatch>, ParseError> {
    let mut files = Vec::new();
    loop {
        skip_blank(reader);
        let Some(line) = reader.peek() else {
            return Err(reader.error_before(LineProblem::Unclosed));
        };
        if line.trim_end() == END {
            return Ok(files);
        }
        push_file(&mut files, section(reader)?)?;
    }
}

fn section(reader: &mut PatchReader<'_>) -> Result<FilePatch, ParseError> {
    if let Some(name) = reader.take(ADD) {
        let path = path(reader, name)?;
        let hunks = added(reader)?;
        return Ok(FilePatch { operation: Operation::Create { path }, mode: None, hunks });
    }
    if let Some(name) = reader.take(DELETE) {
        let path = path(reader, name)?;
        return Ok(FilePatch { operation: Operation::Delete { path }, mode: None, hunks: vec![] });
    }
    match reader.take(UPDATE) {
        Some(name) => updated(reader, name),
        None => Err(reader.error(LineProblem::Section)),
    }
}

fn path(reader: &PatchReader<'_>, name: &str) -> Result<String, ParseError> {
    let name = name.trim();
    let valid = !name.is_empty() && !name.contains('\0');
    if valid { Ok(name.to_owned()) } else { Err(reader.error_before(LineProblem::Name)) }
}

fn at_marker(reader: &PatchReader<'_>) -> bool {
    reader.peek().is_none_or(|line| line.starts_with(MARKER))
}

fn skip_blank(reader: &mut PatchReader<'_>) {
    while reader.peek().is_some_and(|line| line.trim().is_empty()) {
        reader.advance();
    }
}

fn added(reader: &mut PatchReader<'_>) -> Result<Vec<Hunk>, ParseError> {
    let mut lines = Vec::new();
    while let Some(text) = reader.take("+") {
        lines.push(HunkLine::new(Sign::Add, text));
    }
    skip_blank(reader);
    if !at_marker(reader) {
        return Err(reader.error(LineProblem::NotAdded));
    }
    reader.count_hunk()?;
    let hunk = Hunk { lines, ..Hunk::default() };
    Ok(if hunk.lines.is_empty() { vec![] } else { vec![hunk] })
}

fn updated(reader: &mut PatchReader<'_>, name: &str) -> Result<FilePatch, ParseError> {
    let from = path(reader, name)?;
    let to = match reader.take(MOVE) {
        Some(name) => Some(path(reader, name)?),
        None => None,
    };
    let mut hunks = Vec::new();
    skip_blank(reader);
    while !at_marker(reader) {
        hunks.push(hunk(reader)?);
    }
    let operation = match to {
        Some(to) => Operation::Rename { from, to },
        None if hunks.is_empty() => return Err(reader.error_before(LineProblem::NoHunks)),
        None => Operation::Modify { path: from },
    };
    Ok(FilePatch { operation, mode: None, hunks })
}

fn hunk(reader: &mut PatchReader<'_>) -> Result<Hunk, ParseError> {
    reader.count_hunk()?;
    let mut hunk = Hunk::default();
    while let Some(header) = reader.take("@@") {
        let parsed = HunkHeader::parse(header);
        let parsed = parsed.ok_or_else(|| reader.error_before(LineProblem::HunkHeader))?;
        hunk.lines_before = parsed.lines_before;
        hunk.anchors.extend(parsed.anchor);
    }
    hunk.lines = body(reader)?;
    if hunk.lines.is_empty() {
        return Err(reader.error_before(LineProblem::EmptyHunk));
    }
    if reader.peek().is_some_and(|line| line.trim_end() == END_OF_FILE) {
        reader.advance();
        hunk.at_end = true;
    }
    Ok(hunk)
}

fn body(reader: &mut PatchReader<'_>) -> Result<Vec<HunkLine>, ParseError> {
    let mut lines = Vec::new();
    // Empty lines at the end separate hunks and are not part of the file.
    let mut kept = 0;
    while let Some(line) = reader.peek().filter(|line| !line.starts_with("@@")) {
        if line.starts_with(MARKER) {
            break;
        }
        if line.is_empty() {
            lines.push(HunkLine::new(Sign::Context, ""));
        } else {
            lines.push(signed(line).ok_or_else(|| reader.error(LineProblem::NoSign))?);
            kept = lines.len();
        }
        reader.advance();
    }
    lines.truncate(kept);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::super::{Patch, parse};
    use super::*;
    use pretty_assertions::assert_eq;

    fn line(text: &str) -> HunkLine {
        signed(text).unwrap()
    }

    #[test]
    fn an_envelope_becomes_the_same_model() {
        let text = "```\n*** Begin Patch\n*** Add File: new.txt\n+one\n+\n\
            *** Update File: src/a.py\n*** Move to: src/b.py\n@@ class A\n\
            @@ def f():\n x\n-y\n+z\n\n@@\n+end\n*** End of File\n\
            *** Delete File: old.txt\n*** End Patch\n```\n";
        let file = |operation, hunks| FilePatch { operation, mode: None, hunks };
        let new = Hunk { lines: vec![line("+one"), line("+")], ..Hunk::default() };
        let anchors = vec!["class A".to_owned(), "def f():".to_owned()];
        let first =
            Hunk { anchors, lines: vec![line(" x"), line("-y"), line("+z")], ..Hunk::default() };
        let last = Hunk { at_end: true, lines: vec![line("+end")], ..Hunk::default() };
        let rename = Operation::Rename { from: "src/a.py".into(), to: "src/b.py".into() };
        let files = vec![
            file(Operation::Create { path: "new.txt".into() }, vec![new]),
            file(rename, vec![first, last]),
            file(Operation::Delete { path: "old.txt".into() }, vec![]),
        ];
        assert_eq!(parse(text), Ok(Patch { files }));
    }

    #[test]
    fn an_incomplete_or_malformed_envelope_is_refused() {
        let cases = [
            ("*** Add File: x\n+a\n", 3, LineProblem::Unclosed),
            ("*** Add File: x\na\n*** End Patch", 3, LineProblem::NotAdded),
            ("*** Update File: x\n*** End Patch", 2, LineProblem::NoHunks),
            ("*** Update File: x\n@@\n*** End Patch", 3, LineProblem::EmptyHunk),
            ("*** Update File: x\n@@\nabc\n*** End Patch", 4, LineProblem::NoSign),
            ("*** Rename File: x\n*** End Patch", 2, LineProblem::Section),
            ("*** Delete File:  \n*** End Patch", 2, LineProblem::Name),
        ];
        for (rest, line, problem) in cases {
            let text = format!("*** Begin Patch\n{rest}");
            assert_eq!(parse(&text), Err(ParseError::Line { line, problem }), "{rest}");
        }
    }
}
