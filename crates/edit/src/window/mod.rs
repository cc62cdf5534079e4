//! Windows: the part of a file that an agent is shown, as numbered lines within a budget.
//!
//! A line is printed as its number, a tab, its text and a line feed. Carriage returns of endings
//! are not printed; the note says that there are any. A window always shows at least one line, even
//! if it exceeds the budget in bytes, so that reading on always makes progress.

mod numbered_lines;

use numbered_lines::NumberedLines;

use crate::document::Document;
use crate::lines::{EndingStyle, LineFacts};

/// Lines of a window whose request has no limit.
pub const DEFAULT_LINES: usize = 2000;

/// Default bound on the bytes of a window, so that a reply fits into an agent's context.
pub const MAX_WINDOW_BYTES: usize = 100 * 1024;

/// Default bound on the characters of one line; longer lines are data rather than text to read.
pub const MAX_LINE_CHARACTERS: usize = 2000;

/// Lines on each side of a requested line.
pub const DEFAULT_CONTEXT: usize = 20;

/// The lines to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Consecutive lines from an offset.
    From {
        /// Number of the first line; 0 means 1.
        offset: usize,
        /// Number of lines; `None` and 0 mean [`DEFAULT_LINES`].
        limit: Option<usize>,
    },
    /// A line with the lines around it.
    Around {
        /// Number of the line in the middle, counted from 1.
        line: usize,
        /// Lines to show on each side.
        context: usize,
    },
}

impl Default for Selection {
    fn default() -> Self {
        Self::From { offset: 1, limit: None }
    }
}

/// Bounds on the size of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBudget {
    /// Bytes of the whole window. One line is shown even if it has more.
    pub bytes: usize,
    /// Characters of one line; the rest is counted in a marker.
    pub line_characters: usize,
}

impl Default for WindowBudget {
    fn default() -> Self {
        Self { bytes: MAX_WINDOW_BYTES, line_characters: MAX_LINE_CHARACTERS }
    }
}

/// Some lines of a document, formatted, with the facts that a reader needs to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The formatted lines, each with its number and a tab in front.
    pub text: String,
    /// Numbers of the first and the last line shown, or `None` for an empty document.
    pub shown: Option<(usize, usize)>,
    /// Line counts of the whole document.
    pub facts: LineFacts,
    /// Number of the line after the last one shown, or `None` at the end of the document.
    pub next_offset: Option<usize>,
    /// Number of lines that were truncated.
    pub lines_cut: usize,
}

/// A selection of lines that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum WindowError {
    #[error("read: offset {offset} exceeds line count {count}")]
    OffsetPastEnd { offset: usize, count: usize },
    #[error("read: line {line} exceeds line count {count}")]
    LinePastEnd { line: usize, count: usize },
    #[error("read: line 0 does not exist, lines are numbered from 1")]
    LineZero,
}

impl Selection {
    /// Returns the first line and the number of lines to show.
    fn resolve(self, count: usize) -> Result<(usize, usize), WindowError> {
        match self {
            Self::From { offset, limit } => {
                let first = offset.max(1);
                // A read of a whole file starts at line 1, which an empty file does not have.
                if first > count.max(1) {
                    return Err(WindowError::OffsetPastEnd { offset, count });
                }
                Ok((first, limit.filter(|&limit| limit > 0).unwrap_or(DEFAULT_LINES)))
            }
            Self::Around { line: 0, context: _ } => Err(WindowError::LineZero),
            Self::Around { line, context: _ } if line > count => {
                Err(WindowError::LinePastEnd { line, count })
            }
            Self::Around { line, context } => {
                let first = line.saturating_sub(context).max(1);
                Ok((first, line.saturating_add(context).saturating_sub(first).saturating_add(1)))
            }
        }
    }
}

impl Window {
    /// Shows lines of a document within the default budget.
    pub fn of(document: &Document, selection: Selection) -> Result<Self, WindowError> {
        Self::within(document, selection, WindowBudget::default())
    }

    /// Shows lines of a document within a budget.
    pub fn within(
        document: &Document,
        selection: Selection,
        budget: WindowBudget,
    ) -> Result<Self, WindowError> {
        let facts = document.line_facts();
        let (first, limit) = selection.resolve(facts.count)?;
        let NumberedLines { text, next, lines_cut } =
            NumberedLines::show(document.text(), first, limit, budget);
        let shown = (next > first).then(|| (first, next - 1));
        let next_offset = (next <= facts.count).then_some(next);
        Ok(Self { text, shown, facts, next_offset, lines_cut })
    }

    /// Returns one line about what is missing or special: the shown range, the next offset, CRLF
    /// endings, truncated lines. `None` if the whole file is shown and has only LF endings.
    pub fn note(&self) -> Option<String> {
        let count = self.facts.count;
        let mut parts = Vec::new();
        match self.shown {
            Some((first, last)) if (first, last) != (1, count) => {
                parts.push(format!("showing lines {first}–{last} of {count}"));
            }
            Some(_) | None => {}
        }
        if let Some(next) = self.next_offset {
            parts.push(format!("continue with offset {next}"));
        }
        match self.facts.style() {
            EndingStyle::CrLf => parts.push("lines end with CRLF".to_owned()),
            EndingStyle::Mixed => parts.push(format!(
                "line endings are mixed: {} LF, {} CRLF",
                self.facts.lf, self.facts.crlf
            )),
            EndingStyle::Lf | EndingStyle::None => {}
        }
        if self.lines_cut > 0 {
            let noun = if self.lines_cut == 1 { "line is" } else { "lines are" };
            parts.push(format!("{} long {noun} cut", self.lines_cut));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn numbered(count: usize) -> Document {
        Document::from_text((1..=count).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat())
    }

    fn from(offset: usize, limit: usize) -> Selection {
        Selection::From { offset, limit: Some(limit) }
    }

    fn around(line: usize, context: usize) -> Selection {
        Selection::Around { line, context }
    }

    #[test]
    fn lines_are_numbered_and_the_last_one_is_ended() {
        let window =
            Window::of(&Document::from_text("alpha\nbeta\r\n\ngamma"), Selection::default());
        let window = window.unwrap();
        assert_eq!(window.text, "1\talpha\n2\tbeta\n3\t\n4\tgamma\n");
        assert_eq!((window.shown, window.next_offset), (Some((1, 4)), None));
        assert_eq!(window.note().unwrap(), "line endings are mixed: 2 LF, 1 CRLF");
    }

    #[test]
    fn an_empty_file_is_an_empty_window() {
        let window = Window::of(&Document::from_text(""), Selection::default()).unwrap();
        assert_eq!((window.text.as_str(), window.shown, window.note()), ("", None, None));
    }

    #[test]
    fn windows_are_cut_at_both_ends_of_the_file() {
        let cases = [
            (5, from(2, 2), (2, 3), Some(4)),
            (5, from(0, 0), (1, 5), None),
            (5, from(5, 9), (5, 5), None),
            (3000, Selection::default(), (1, 2000), Some(2001)),
            (6, around(3, 1), (2, 4), Some(5)),
            (3, around(3, 1), (2, 3), None),
            (100, around(50, DEFAULT_CONTEXT), (30, 70), Some(71)),
            (3, around(1, usize::MAX), (1, 3), None),
        ];
        for (count, selection, shown, next) in cases {
            let window = Window::of(&numbered(count), selection).unwrap();
            assert_eq!((window.shown, window.next_offset), (Some(shown), next), "{selection:?}");
            assert_eq!(window.facts.count, count);
            let first = format!("{}\tline {}\n", shown.0, shown.0);
            assert!(window.text.starts_with(&first), "{selection:?}");
            assert_eq!(window.text.lines().count(), shown.1 - shown.0 + 1);
        }
    }

    #[test]
    fn lines_that_do_not_exist_are_named() {
        let cases = [
            (3, from(4, 1), "read: offset 4 exceeds line count 3"),
            (0, from(2, 1), "read: offset 2 exceeds line count 0"),
            (3, around(4, 1), "read: line 4 exceeds line count 3"),
            (3, around(0, 1), "read: line 0 does not exist, lines are numbered from 1"),
        ];
        for (count, selection, want) in cases {
            let refused = Window::of(&numbered(count), selection).unwrap_err();
            assert_eq!(refused.to_string(), want);
        }
    }

    #[test]
    fn the_note_names_the_next_offset() {
        let window = Window::of(&numbered(6), around(3, 1)).unwrap();
        assert_eq!(window.note().unwrap(), "showing lines 2–4 of 6; continue with offset 5");
    }

    #[test]
    fn the_budget_ends_a_window_but_never_leaves_it_empty() {
        let document = Document::from_text("aaaa\nbbbb\ncccc\n");
        let budget = |bytes| WindowBudget { bytes, line_characters: 3 };
        let window = Window::within(&document, Selection::default(), budget(1)).unwrap();
        assert_eq!(window.text, "1\taaa… [1 more character]\n");
        assert_eq!((window.next_offset, window.lines_cut), (Some(2), 1));
        let budget = WindowBudget { bytes: 14, line_characters: 9 };
        let window = Window::within(&document, Selection::default(), budget).unwrap();
        assert_eq!((window.text.as_str(), window.next_offset), ("1\taaaa\n2\tbbbb\n", Some(3)));
    }

    #[test]
    fn a_single_line_of_three_megabytes_stays_short() {
        let window = Window::of(&Document::from_text("x".repeat(3_000_000)), Selection::default());
        let window = window.unwrap();
        assert!(window.text.ends_with("x… [2998000 more characters]\n"));
        assert!(window.text.len() < 3000);
        assert_eq!(window.facts.count, 1);
    }
}
