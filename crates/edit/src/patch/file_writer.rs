//! Construction of the patched text, from the start of the file to its end.
//!
//! An exact match knows the line endings, so its added lines are written as they are in the patch.
//! A tolerant match takes the endings of the lines it replaces, and leaves a missing final newline
//! missing, since the patch did not mention it.

use super::hunk_matching::HunkMatch;
use super::line_comparison::LineTolerance;
use super::{HunkLine, Sign};
use crate::line_endings::adapt_endings;
use crate::lines::{Line, LineEnding, LineFacts};

pub(super) struct FileWriter<'a> {
    file: &'a [&'a str],
    /// Number of file lines that were copied or removed.
    consumed: usize,
    dominant: LineEnding,
    text: String,
}

impl<'a> FileWriter<'a> {
    pub(super) fn new(file: &'a [&'a str], original: &str) -> Self {
        let dominant = LineFacts::of(original).dominant_ending();
        Self { file, consumed: 0, dominant, text: String::with_capacity(original.len()) }
    }

    /// Copies the lines before a hunk, then writes the hunk.
    pub(super) fn hunk(&mut self, matched: &HunkMatch, lines: &[HunkLine]) {
        self.keep(matched.at - self.consumed);
        let lines = &lines[matched.lines.clone()];
        match matched.tolerance {
            LineTolerance::Exact => self.exact(lines),
            LineTolerance::IgnoreEnding | LineTolerance::IgnoreTrailingSpace => self.adapted(lines),
        }
    }

    /// Copies the rest of the file and returns the text.
    pub(super) fn finish(mut self) -> String {
        self.keep(self.file.len() - self.consumed);
        self.text
    }

    pub(super) fn consumed(&self) -> usize {
        self.consumed
    }

    fn keep(&mut self, count: usize) {
        for &raw in &self.file[self.consumed..self.consumed + count] {
            self.push(raw);
        }
        self.consumed += count;
    }

    fn push(&mut self, raw: &str) {
        // The line before was the last of the file and has no newline.
        if !self.text.is_empty() && !self.text.ends_with('\n') && !raw.is_empty() {
            self.text.push_str(self.dominant.as_str());
        }
        self.text.push_str(raw);
    }

    fn exact(&mut self, lines: &[HunkLine]) {
        for line in lines {
            match line.sign {
                Sign::Context => self.keep(1),
                Sign::Remove => self.consumed += 1,
                Sign::Add if line.terminated => self.push(&format!("{}\n", line.text)),
                Sign::Add => self.push(&line.text),
            }
        }
    }

    fn adapted(&mut self, lines: &[HunkLine]) {
        for run in lines.chunk_by(|a, b| (a.sign == Sign::Context) == (b.sign == Sign::Context)) {
            if run.first().is_some_and(|line| line.sign == Sign::Context) {
                self.keep(run.len());
            } else {
                self.adapted_run(run);
            }
        }
        let unfinished = self.file.last().is_some_and(|line| !line.ends_with('\n'));
        if unfinished && self.consumed == self.file.len() {
            // A tolerant match ignores the end of the file, so it stays unterminated.
            let ended = Line::new(self.text.as_str());
            let length = ended.ending.map_or(0, |ending| ending.as_str().len());
            self.text.truncate(self.text.len() - length);
        }
    }

    /// Writes a run of removed and added lines.
    fn adapted_run(&mut self, run: &[HunkLine]) {
        let removed = run.iter().filter(|line| line.sign == Sign::Remove).count();
        let old = self.file[self.consumed..self.consumed + removed].concat();
        let added = run.iter().filter(|line| line.sign == Sign::Add);
        let new: String = added.flat_map(|line| [line.without_return(), "\n"]).collect();
        let new = adapt_endings(&old, &new, self.nearest_ending());
        self.push(&new);
        self.consumed += removed;
    }

    fn nearest_ending(&self) -> LineEnding {
        let before = self.consumed.checked_sub(1).and_then(|at| self.file.get(at));
        let mut nearest = self.file.get(self.consumed).into_iter().chain(before);
        nearest.find_map(|line| Line::new(line).ending).unwrap_or(self.dominant)
    }
}
