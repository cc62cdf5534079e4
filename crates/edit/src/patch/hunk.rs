//! Hunks of unified diffs.
//!
//! The counts of a hunk header decide where the hunk ends as long as they are right. Where they are
//! not, which is common in patches that no tool wrote, it ends where the next header begins.

use super::error::{LineProblem, ParseError};
use super::header::at_names;
use super::parse::Cursor;
use super::{Hunk, HunkLine, Sign};

/// Ends a patch that was sent as mail.
pub(super) const SIGNATURE: &str = "-- ";

/// Reads the hunk whose header comes next.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Hunk, ParseError> {
    let header = cursor.take("@@").unwrap_or_default();
    let place = Place::parse(header).ok_or_else(|| cursor.error_before(LineProblem::HunkHeader))?;
    cursor.count_hunk()?;
    let body = Body::parse(cursor, place.counts);
    if body.is_empty() {
        return Err(cursor.error_before(LineProblem::EmptyHunk));
    }
    let Place { lines_before, anchor, .. } = place;
    Ok(Hunk { lines_before, anchors: anchor.into_iter().collect(), at_end: false, lines: body })
}

/// What a hunk header says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) lines_before: Option<usize>,
    pub(super) anchor: Option<String>,
    /// How many lines there are before and after.
    counts: Option<(usize, usize)>,
}

impl Place {
    /// Reads a hunk header after its first `@@`.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let text = header.trim();
        if !text.starts_with('-') {
            let anchor = text.trim_end_matches("@@").trim_end();
            let says_something = !matches!(anchor, "" | "..." | "…");
            let anchor = says_something.then(|| anchor.to_owned());
            return Some(Self { anchor, ..Self::default() });
        }
        let (numbers, _) = text.split_once("@@")?;
        let (old, new) = numbers.trim_end().split_once(' ')?;
        let (start, old_count) = range(old.strip_prefix('-')?)?;
        let (_, new_count) = range(new.trim_start().strip_prefix('+')?)?;
        // An empty range is named by the line before it.
        let lines_before = if old_count == 0 { start } else { start.saturating_sub(1) };
        let counts = Some((old_count, new_count));
        Some(Self { lines_before: Some(lines_before), anchor: None, counts })
    }
}

fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// The lines of a hunk on their way.
struct Body {
    lines: Vec<HunkLine>,
    /// How many lines are still to come before and after, if that is said.
    left: Option<(usize, usize)>,
    /// How many lines at the end are wholly empty, without the sign of context.
    bare: usize,
}

impl Body {
    fn parse(cursor: &mut Cursor<'_>, counts: Option<(usize, usize)>) -> Vec<HunkLine> {
        let mut body = Self { lines: Vec::new(), left: counts, bare: 0 };
        while let Some(line) = cursor.peek() {
            if !body.accept(cursor, line) {
                break;
            }
            cursor.advance();
        }
        if body.left != Some((0, 0)) {
            // What was taken for empty lines of the hunk stands between it and the next.
            body.lines.truncate(body.lines.len() - body.bare);
        }
        body.lines
    }

    fn is_complete(&self) -> bool {
        matches!(self.left, None | Some((0, 0)))
    }

    /// Adds a line, unless the hunk ends before it.
    fn accept(&mut self, cursor: &Cursor<'_>, line: &str) -> bool {
        if line.starts_with('\\') {
            if let Some(last) = self.lines.last_mut() {
                last.ended = false;
            }
            return true;
        }
        if line.is_empty() {
            return self.accept_bare(cursor);
        }
        if self.ends_at(cursor, line) {
            return false;
        }
        let Some(parsed) = signed(line) else { return false };
        self.push(parsed);
        self.bare = 0;
        true
    }

    fn accept_bare(&mut self, cursor: &Cursor<'_>) -> bool {
        if self.is_complete() && !body_goes_on(cursor) {
            return false;
        }
        self.push(HunkLine::new(Sign::Context, ""));
        self.bare += 1;
        true
    }

    fn push(&mut self, line: HunkLine) {
        if let Some((old, new)) = &mut self.left {
            *old = old.saturating_sub(usize::from(line.sign != Sign::Add));
            *new = new.saturating_sub(usize::from(line.sign != Sign::Remove));
        }
        self.lines.push(line);
    }

    /// Tells whether a line that looks like one of the hunk begins something else.
    fn ends_at(&self, cursor: &Cursor<'_>, line: &str) -> bool {
        if self.is_complete() {
            return line == SIGNATURE || at_names(cursor);
        }
        let at_file = at_names(cursor) && cursor.look(2).is_some_and(|line| line.starts_with("@@"));
        at_file && self.left != Some((1, 1))
    }
}

/// Tells whether lines of the hunk follow the empty lines that come next.
fn body_goes_on(cursor: &Cursor<'_>) -> bool {
    let mut ahead = 0;
    while cursor.look(ahead) == Some("") {
        ahead += 1;
    }
    let Some(line) = cursor.look(ahead) else { return false };
    let names = line.starts_with("--- ")
        && cursor.look(ahead + 1).is_some_and(|next| next.starts_with("+++ "));
    !names && line != SIGNATURE && signed(line).is_some()
}

/// Reads a line by its sign.
pub(super) fn signed(line: &str) -> Option<HunkLine> {
    let sign = match line.as_bytes().first()? {
        b' ' => Sign::Context,
        b'-' => Sign::Remove,
        b'+' => Sign::Add,
        _ => return None,
    };
    Some(HunkLine::new(sign, &line[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn hunk_headers_are_read_with_and_without_counts() {
        let place = |lines_before, counts| {
            Some(Place { lines_before: Some(lines_before), anchor: None, counts: Some(counts) })
        };
        let anchor = |anchor: Option<&str>| {
            Some(Place { anchor: anchor.map(str::to_owned), ..Place::default() })
        };
        let cases = [
            (" -1,4 +1,5 @@", place(0, (4, 5))),
            (" -3 +4 @@ fn main() {", place(2, (1, 1))),
            (" -0,0 +1,2 @@", place(0, (0, 2))),
            (" -7,0 +8,2 @@", place(7, (0, 2))),
            ("", anchor(None)),
            (" ... @@", anchor(None)),
            (" fn main() {", anchor(Some("fn main() {"))),
            (" impl X @@", anchor(Some("impl X"))),
            (" -x +1 @@", None),
            (" -1,2 +1,2", None),
            (" -99999999999999999999999 +1 @@", None),
        ];
        for (header, want) in cases {
            assert_eq!(Place::parse(header), want, "{header}");
        }
    }
}
