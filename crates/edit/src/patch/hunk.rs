//! Parser for hunks of unified diffs.
//!
//! The counts of a hunk header decide where the hunk ends, as long as they are right: they allow a
//! removed line `-- x` (printed as `--- x`) to be distinguished from a file header. Models
//! miscount, so a hunk also ends where the next header begins, and continues past its counts while
//! signed lines follow. Empty lines, which editors produce by trimming the space of an empty
//! context line, are context inside a hunk and separators after it.

use super::error::{LineProblem, ParseError};
use super::file_header::at_names;
use super::parse::PatchReader;
use super::{Hunk, HunkLine, Sign};

/// Signature separator of mails; ends a patch made by `git format-patch`.
pub(super) const SIGNATURE: &str = "-- ";

pub(super) fn parse(reader: &mut PatchReader<'_>) -> Result<Hunk, ParseError> {
    let header = reader.take("@@").unwrap_or_default();
    let header =
        HunkHeader::parse(header).ok_or_else(|| reader.error_before(LineProblem::HunkHeader))?;
    reader.count_hunk()?;
    let body = HunkBody::parse(reader, header.counts);
    if body.is_empty() {
        return Err(reader.error_before(LineProblem::EmptyHunk));
    }
    let HunkHeader { lines_before, anchor, .. } = header;
    Ok(Hunk { lines_before, anchors: anchor.into_iter().collect(), at_end: false, lines: body })
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HunkHeader {
    pub(super) lines_before: Option<usize>,
    pub(super) anchor: Option<String>,
    /// Number of lines on the old and on the new side.
    counts: Option<(usize, usize)>,
}

impl HunkHeader {
    /// Parses a hunk header after its first `@@`: numbers, an anchor line, or nothing.
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

struct HunkBody {
    lines: Vec<HunkLine>,
    /// Lines still expected on the old and on the new side, if the header has counts.
    remaining: Option<(usize, usize)>,
    /// Number of empty lines at the end, without the space of a context line.
    trailing_blank: usize,
}

impl HunkBody {
    fn parse(reader: &mut PatchReader<'_>, counts: Option<(usize, usize)>) -> Vec<HunkLine> {
        let mut body = Self { lines: Vec::new(), remaining: counts, trailing_blank: 0 };
        while let Some(line) = reader.peek() {
            if !body.accept(reader, line) {
                break;
            }
            reader.advance();
        }
        if body.remaining != Some((0, 0)) {
            // The counts are wrong, so empty lines at the end are separators.
            body.lines.truncate(body.lines.len() - body.trailing_blank);
        }
        body.lines
    }

    fn is_complete(&self) -> bool {
        matches!(self.remaining, None | Some((0, 0)))
    }

    /// Adds a line; returns false if the hunk ends before it.
    fn accept(&mut self, reader: &PatchReader<'_>, line: &str) -> bool {
        if line.starts_with('\\') {
            if let Some(last) = self.lines.last_mut() {
                last.terminated = false;
            }
            return true;
        }
        if line.is_empty() {
            return self.accept_blank(reader);
        }
        if self.ends_at(reader, line) {
            return false;
        }
        let Some(parsed) = signed(line) else { return false };
        self.push(parsed);
        self.trailing_blank = 0;
        true
    }

    fn accept_blank(&mut self, reader: &PatchReader<'_>) -> bool {
        if self.is_complete() && !body_goes_on(reader) {
            return false;
        }
        self.push(HunkLine::new(Sign::Context, ""));
        self.trailing_blank += 1;
        true
    }

    fn push(&mut self, line: HunkLine) {
        if let Some((old, new)) = &mut self.remaining {
            *old = old.saturating_sub(usize::from(line.sign != Sign::Add));
            *new = new.saturating_sub(usize::from(line.sign != Sign::Remove));
        }
        self.lines.push(line);
    }

    /// Returns true if a signed line is the start of the next file header or of a signature.
    fn ends_at(&self, reader: &PatchReader<'_>, line: &str) -> bool {
        if self.is_complete() {
            return line == SIGNATURE || at_names(reader);
        }
        let at_file =
            at_names(reader) && reader.peek_at(2).is_some_and(|line| line.starts_with("@@"));
        at_file && self.remaining != Some((1, 1))
    }
}

/// Returns true if signed lines follow the empty lines that come next.
fn body_goes_on(reader: &PatchReader<'_>) -> bool {
    let mut ahead = 0;
    while reader.peek_at(ahead) == Some("") {
        ahead += 1;
    }
    let Some(line) = reader.peek_at(ahead) else { return false };
    let names = line.starts_with("--- ")
        && reader.peek_at(ahead + 1).is_some_and(|next| next.starts_with("+++ "));
    !names && line != SIGNATURE && signed(line).is_some()
}

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
        let header = |lines_before, counts| {
            Some(HunkHeader {
                lines_before: Some(lines_before),
                anchor: None,
                counts: Some(counts),
            })
        };
        let anchor = |anchor: Option<&str>| {
            Some(HunkHeader { anchor: anchor.map(str::to_owned), ..HunkHeader::default() })
        };
        let cases = [
            (" -1,4 +1,5 @@", header(0, (4, 5))),
            (" -3 +4 @@ fn main() {", header(2, (1, 1))),
            (" -0,0 +1,2 @@", header(0, (0, 2))),
            (" -7,0 +8,2 @@", header(7, (0, 2))),
            ("", anchor(None)),
            (" ... @@", anchor(None)),
            (" fn main() {", anchor(Some("fn main() {"))),
            (" impl X @@", anchor(Some("impl X"))),
            (" -x +1 @@", None),
            (" -1,2 +1,2", None),
            (" -99999999999999999999999 +1 @@", None),
        ];
        for (header, want) in cases {
            assert_eq!(HunkHeader::parse(header), want, "{header}");
        }
    }
}
