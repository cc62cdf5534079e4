//! Printing of hunks within a budget of lines.

use std::fmt::Write as _;
use std::ops::Range;

use super::{LineChange, Options};
use crate::truncate::push_truncated;

const NO_FINAL_NEWLINE: &str = "\\ No newline at end of file";

pub(super) struct HunkPrinter {
    options: Options,
    /// Number of leading lines that were trimmed from both texts.
    skipped: usize,
    text: String,
    lines: usize,
    lines_left_out: usize,
}

impl HunkPrinter {
    pub(super) fn new(options: Options, skipped: usize) -> Self {
        Self { options, skipped, text: String::new(), lines: 0, lines_left_out: 0 }
    }

    /// Prints one hunk: neighbouring changes and their context.
    pub(super) fn hunk(&mut self, old: &[&str], new: &[&str], changes: &[LineChange]) {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return };
        let before = self.options.context.min(first.old.start);
        let after = self.options.context.min(old.len() - last.old.end);
        let old_range = first.old.start - before..last.old.end + after;
        let new_range = first.new.start - before..last.new.end + after;
        self.header(&old_range, &new_range);
        let mut shown = old_range.start;
        for change in changes {
            self.lines(" ", &old[shown..change.old.start]);
            self.lines("-", &old[change.old.clone()]);
            self.lines("+", &new[change.new.clone()]);
            shown = change.old.end;
        }
        self.lines(" ", &old[shown..old_range.end]);
    }

    fn lines(&mut self, sign: &str, lines: &[&str]) {
        for line in lines {
            self.line(sign, line);
        }
    }

    /// Takes one line from the budget; returns false and counts the line as left out if none is
    /// left.
    fn reserve_line(&mut self) -> bool {
        let reserve_line = self.lines < self.options.max_lines;
        self.lines += usize::from(reserve_line);
        self.lines_left_out += usize::from(!reserve_line);
        reserve_line
    }

    fn header(&mut self, old: &Range<usize>, new: &Range<usize>) {
        if self.reserve_line() {
            let described =
                |range: &Range<usize>| header_range(range.start + self.skipped, range.len());
            // Writing to a string does not fail.
            let _ = writeln!(self.text, "@@ -{} +{} @@", described(old), described(new));
        }
    }

    fn line(&mut self, sign: &str, line: &str) {
        if !self.reserve_line() {
            return;
        }
        self.text.push_str(sign);
        let ended = line.strip_suffix('\n');
        push_truncated(&mut self.text, ended.unwrap_or(line), self.options.max_line_characters);
        self.text.push('\n');
        if ended.is_none() {
            self.text.push_str(NO_FINAL_NEWLINE);
            self.text.push('\n');
        }
    }

    /// Returns the text and the number of lines left out of it.
    pub(super) fn finish(mut self) -> (String, usize) {
        if self.lines_left_out > 0 {
            let noun = if self.lines_left_out == 1 { "line" } else { "lines" };
            // Writing to a string does not fail.
            let _ = writeln!(self.text, "… {} more {noun}", self.lines_left_out);
        }
        (self.text, self.lines_left_out)
    }
}

/// Formats a range for a hunk header. An empty range is named by the line before it.
fn header_range(start: usize, length: usize) -> String {
    match length {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}
