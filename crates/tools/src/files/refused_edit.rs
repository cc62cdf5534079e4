//! The refusal of an edit of a file whose content was not shown.
//!
//! The refusal shows the lines that the edit would change, which counts as reading them. An agent that sees
//! what it expected repeats the call, and needs no call of `Read` in between. If the text to replace is not
//! there, the closest lines are shown instead, from which the agent takes the right text.

use std::fmt::Write as _;

use carrel_domain::Failure;
use carrel_edit::diff::{Diff, LineChange, Options};
use carrel_edit::{Document, LineFacts};

use super::workspace_files::WorkspaceFiles;
use crate::read_tracker::{ContentHash, FileKey, ReadExtent};
use crate::session::SessionLifetime;
use crate::text::line;

/// Bounds the lines of a refusal. Any of them proves that the file was shown.
const MAX_LINES: usize = 40;

/// Lines before and after the closest ones: an agent that misremembers a text often misses a line of it.
const CONTEXT_LINES: usize = 3;

/// Characters of one line; more of it is data rather than text to read.
const MAX_LINE_CHARACTERS: usize = 500;

/// The lines that a refused edit would change, or the lines closest to the text it does not find.
#[derive(Debug)]
pub(crate) struct RefusedEdit {
    /// The same call succeeds once the lines are shown.
    applies: bool,
    /// Ranges of line numbers, counted from 1, with both ends.
    ranges: Vec<(usize, usize)>,
    /// Numbered lines, as `Read` shows them.
    text: String,
    /// The edit would change more lines than these.
    is_cut: bool,
    /// Number of lines of the file.
    lines: usize,
}

impl RefusedEdit {
    pub(crate) fn of(before: &Document, after: &Document) -> Self {
        let diff = Diff::between(before.text(), after.text(), Options::default());
        let lines: Vec<_> = carrel_edit::lines(before.text()).map(|line| line.text).collect();
        let mut refused = Self::empty(before, true);
        let mut left = MAX_LINES;
        for LineChange { old, .. } in &diff.changes {
            // An insertion changes no line; those beside it are shown.
            let insertion = old.is_empty();
            let first = if insertion { old.start.max(1) } else { old.start + 1 };
            let last = if insertion { old.start + 1 } else { old.end }.min(lines.len());
            let shown = last.min(first + left.saturating_sub(1));
            refused.is_cut |= left == 0 || shown < last;
            if left == 0 || first > shown {
                continue;
            }
            left -= shown - first + 1;
            refused.add(&lines, first, shown);
        }
        refused
    }

    /// Takes the lines around `line`, from which on `count` lines resemble the text to find.
    pub(super) fn near(before: &Document, line: usize, count: usize) -> Self {
        let lines: Vec<_> = carrel_edit::lines(before.text()).map(|line| line.text).collect();
        let first = line.saturating_sub(CONTEXT_LINES).max(1);
        let last = (line + count + CONTEXT_LINES).min(first + MAX_LINES - 1).min(lines.len());
        let mut refused = Self::empty(before, false);
        refused.add(&lines, first, last);
        refused
    }

    fn empty(before: &Document, applies: bool) -> Self {
        let lines = LineFacts::of(before.text()).count;
        Self { applies, ranges: Vec::new(), text: String::new(), is_cut: false, lines }
    }

    /// Adds the lines `first` to `last` of all `lines`.
    fn add(&mut self, lines: &[&str], first: usize, last: usize) {
        self.ranges.push((first, last));
        for (index, text) in lines[first - 1..last].iter().enumerate() {
            let text: String = text.chars().take(MAX_LINE_CHARACTERS).collect();
            writeln!(self.text, "{}\t{text}", first + index)
                .expect("writing to a string cannot fail");
        }
    }

    /// Adds the lines to a refusal, and records that they were shown.
    pub(crate) fn show(
        &self,
        files: &WorkspaceFiles,
        key: &FileKey,
        hash: ContentHash,
        refusal: Failure,
    ) -> Failure {
        for (first, last) in &self.ranges {
            let extent = ReadExtent::Lines(*first, *last, self.lines);
            files.record_read(key.clone(), hash, &extent);
        }
        if self.lines == 0 {
            files.record_read(key.clone(), hash, &ReadExtent::Whole);
        }
        let lasts = files.session.lifetime() == SessionLifetime::Lasting;
        let mut message = refusal.message;
        let end = if self.is_cut { " and more" } else { "" };
        let lines = if self.applies { "it would change these lines" } else { "the closest lines" };
        let hint = match (self.applies, lasts) {
            (true, true) => ", now shown; the same call will be made",
            (false, true) => ", now shown",
            (true | false, false) => "",
        };
        line(&mut message, &format!("[{lines}{end}{hint}]"));
        message.push_str(&self.text);
        if !lasts {
            line(&mut message, &format!("[hash {}]", hash.short()));
        }
        Failure { message, ..refusal }
    }
}

/// Adds the reason for which the edit would not apply either.
pub(super) fn with_reason(refusal: Failure, reason: &Failure) -> Failure {
    let mut message = refusal.message;
    line(&mut message, &format!("[{}]", reason.message));
    Failure { message, ..refusal }
}
