//! Patches between `*** Begin Patch` and `*** End Patch`.
//!
//! They have no line numbers: a hunk is found by its lines, after the lines that `@@` names.

use super::error::{LineProblem, ParseError};
use super::hunk::{Place, signed};
use super::parse::{Cursor, push_file};
use super::{FilePatch, Hunk, HunkLine, Operation, Sign};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const UPDATE: &str = "*** Update File: ";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";
/// Every line that belongs to the envelope begins with it.
const MARK: &str = "*** ";

/// Returns where the sections start, if the text is an envelope.
pub(super) fn start(cursor: &Cursor<'_>) -> Option<usize> {
    let mut at = 0;
    // Agents fence code.
    while cursor.look(at)?.trim().is_empty() || cursor.look(at)?.starts_with("```") {
        at += 1;
    }
    (cursor.look(at)?.trim_end() == BEGIN).then_some(at + 1)
}

/// Reads all sections and the end.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Vec<FilePatch>, ParseError> {
    let mut files = Vec::new();
    loop {
        skip_blank(cursor);
        let Some(line) = cursor.peek() else {
            return Err(cursor.error_before(LineProblem::Unclosed));
        };
        if line.trim_end() == END {
            return Ok(files);
        }
        push_file(&mut files, section(cursor)?)?;
    }
}

fn section(cursor: &mut Cursor<'_>) -> Result<FilePatch, ParseError> {
    if let Some(name) = cursor.take(ADD) {
        let path = path(cursor, name)?;
        let hunks = added(cursor)?;
        return Ok(FilePatch { operation: Operation::Create { path }, mode: None, hunks });
    }
    if let Some(name) = cursor.take(DELETE) {
        let path = path(cursor, name)?;
        return Ok(FilePatch { operation: Operation::Delete { path }, mode: None, hunks: vec![] });
    }
    match cursor.take(UPDATE) {
        Some(name) => updated(cursor, name),
        None => Err(cursor.error(LineProblem::Section)),
    }
}

fn path(cursor: &Cursor<'_>, name: &str) -> Result<String, ParseError> {
    let name = name.trim();
    let valid = !name.is_empty() && !name.contains('\0');
    if valid { Ok(name.to_owned()) } else { Err(cursor.error_before(LineProblem::Name)) }
}

fn at_mark(cursor: &Cursor<'_>) -> bool {
    cursor.peek().is_none_or(|line| line.starts_with(MARK))
}

fn skip_blank(cursor: &mut Cursor<'_>) {
    while cursor.peek().is_some_and(|line| line.trim().is_empty()) {
        cursor.advance();
    }
}

/// Reads the lines of a new file.
fn added(cursor: &mut Cursor<'_>) -> Result<Vec<Hunk>, ParseError> {
    let mut lines = Vec::new();
    while let Some(text) = cursor.take("+") {
        lines.push(HunkLine::new(Sign::Add, text));
    }
    skip_blank(cursor);
    if !at_mark(cursor) {
        return Err(cursor.error(LineProblem::NotAdded));
    }
    cursor.count_hunk()?;
    let hunk = Hunk { lines, ..Hunk::default() };
    Ok(if hunk.lines.is_empty() { vec![] } else { vec![hunk] })
}

fn updated(cursor: &mut Cursor<'_>, name: &str) -> Result<FilePatch, ParseError> {
    let from = path(cursor, name)?;
    let to = match cursor.take(MOVE) {
        Some(name) => Some(path(cursor, name)?),
        None => None,
    };
    let mut hunks = Vec::new();
    skip_blank(cursor);
    while !at_mark(cursor) {
        hunks.push(hunk(cursor)?);
    }
    let operation = match to {
        Some(to) => Operation::Rename { from, to },
        None if hunks.is_empty() => return Err(cursor.error_before(LineProblem::NoHunks)),
        None => Operation::Modify { path: from },
    };
    Ok(FilePatch { operation, mode: None, hunks })
}

fn hunk(cursor: &mut Cursor<'_>) -> Result<Hunk, ParseError> {
    cursor.count_hunk()?;
    let mut hunk = Hunk::default();
    while let Some(header) = cursor.take("@@") {
        let place = Place::parse(header);
        let place = place.ok_or_else(|| cursor.error_before(LineProblem::HunkHeader))?;
        hunk.lines_before = place.lines_before;
        hunk.anchors.extend(place.anchor);
    }
    hunk.lines = body(cursor)?;
    if hunk.lines.is_empty() {
        return Err(cursor.error_before(LineProblem::EmptyHunk));
    }
    if cursor.peek().is_some_and(|line| line.trim_end() == END_OF_FILE) {
        cursor.advance();
        hunk.at_end = true;
    }
    Ok(hunk)
}

fn body(cursor: &mut Cursor<'_>) -> Result<Vec<HunkLine>, ParseError> {
    let mut lines = Vec::new();
    // Empty lines at the end stand between hunks rather than in the file.
    let mut kept = 0;
    while let Some(line) = cursor.peek().filter(|line| !line.starts_with("@@")) {
        if line.starts_with(MARK) {
            break;
        }
        if line.is_empty() {
            lines.push(HunkLine::new(Sign::Context, ""));
        } else {
            lines.push(signed(line).ok_or_else(|| cursor.error(LineProblem::NoSign))?);
            kept = lines.len();
        }
        cursor.advance();
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
    fn an_envelope_that_is_cut_off_or_broken_is_refused() {
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
