//! Writing hunks within a budget.

use std::fmt::Write as _;
use std::ops::Range;

use super::{Change, Options};
use crate::cut::push_cut;

/// Follows a line that is not ended.
const NO_FINAL_NEWLINE: &str = "\\ No newline at end of file";

/// A diff that is being written.
pub(super) struct Page {
    options: Options,
    /// How many lines of both files stand before those that are given.
    skipped: usize,
    text: String,
    lines: usize,
    lines_left_out: usize,
}

impl Page {
    pub(super) fn new(options: Options, skipped: usize) -> Self {
        Self { options, skipped, text: String::new(), lines: 0, lines_left_out: 0 }
    }

    /// Writes changes that stand close together, and their context.
    pub(super) fn hunk(&mut self, old: &[&str], new: &[&str], changes: &[Change]) {
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

    /// Takes room for one more line, or counts it among those that are left out.
    fn has_room(&mut self) -> bool {
        let has_room = self.lines < self.options.max_lines;
        self.lines += usize::from(has_room);
        self.lines_left_out += usize::from(!has_room);
        has_room
    }

    fn header(&mut self, old: &Range<usize>, new: &Range<usize>) {
        if self.has_room() {
            let place = |range: &Range<usize>| place(range.start + self.skipped, range.len());
            // Writing to a string does not fail.
            let _ = writeln!(self.text, "@@ -{} +{} @@", place(old), place(new));
        }
    }

    fn line(&mut self, sign: &str, line: &str) {
        if !self.has_room() {
            return;
        }
        self.text.push_str(sign);
        let ended = line.strip_suffix('\n');
        push_cut(&mut self.text, ended.unwrap_or(line), self.options.max_line_characters);
        self.text.push('\n');
        if ended.is_none() {
            self.text.push_str(NO_FINAL_NEWLINE);
            self.text.push('\n');
        }
    }

    /// Returns the text, and how many lines are left out of it.
    pub(super) fn finish(mut self) -> (String, usize) {
        if self.lines_left_out > 0 {
            let noun = if self.lines_left_out == 1 { "line" } else { "lines" };
            // Writing to a string does not fail.
            let _ = writeln!(self.text, "… {} more {noun}", self.lines_left_out);
        }
        (self.text, self.lines_left_out)
    }
}

/// Writes a range as hunk headers do: an empty one is named by the line before it.
fn place(start: usize, length: usize) -> String {
    match length {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}
