//! The text of a file after its hunks.

use super::locate::Located;
use super::matching::Closeness;
use super::{HunkLine, Sign};
use crate::endings::adapt;
use crate::lines::{Line, LineEnding, LineFacts};

/// A file that is written anew, from the start to the end.
pub(super) struct Writer<'a> {
    file: &'a [&'a str],
    /// How many lines of the file are done with.
    done: usize,
    usual: LineEnding,
    text: String,
}

impl<'a> Writer<'a> {
    pub(super) fn new(file: &'a [&'a str], original: &str) -> Self {
        let usual = LineFacts::of(original).usual_ending();
        Self { file, done: 0, usual, text: String::with_capacity(original.len()) }
    }

    /// Writes the lines before a hunk, and then the hunk.
    pub(super) fn hunk(&mut self, located: &Located, lines: &[HunkLine]) {
        self.keep(located.at - self.done);
        let lines = &lines[located.lines.clone()];
        match located.closeness {
            Closeness::Exact => self.exact(lines),
            Closeness::Endings | Closeness::Spaces => self.adapted(lines),
        }
    }

    /// Writes the rest of the file.
    pub(super) fn finish(mut self) -> String {
        self.keep(self.file.len() - self.done);
        self.text
    }

    /// Returns how many lines of the file are done with.
    pub(super) fn done(&self) -> usize {
        self.done
    }

    fn keep(&mut self, count: usize) {
        for &raw in &self.file[self.done..self.done + count] {
            self.push(raw);
        }
        self.done += count;
    }

    fn push(&mut self, raw: &str) {
        // Lines may come after one that was the last and not ended.
        if !self.text.is_empty() && !self.text.ends_with('\n') && !raw.is_empty() {
            self.text.push_str(self.usual.as_str());
        }
        self.text.push_str(raw);
    }

    /// Writes a hunk that knows the endings.
    fn exact(&mut self, lines: &[HunkLine]) {
        for line in lines {
            match line.sign {
                Sign::Context => self.keep(1),
                Sign::Remove => self.done += 1,
                Sign::Add if line.ended => self.push(&format!("{}\n", line.text)),
                Sign::Add => self.push(&line.text),
            }
        }
    }

    /// Writes a hunk whose new lines take the endings of the file.
    fn adapted(&mut self, lines: &[HunkLine]) {
        for run in lines.chunk_by(|a, b| (a.sign == Sign::Context) == (b.sign == Sign::Context)) {
            if run.first().is_some_and(|line| line.sign == Sign::Context) {
                self.keep(run.len());
            } else {
                self.adapted_run(run);
            }
        }
        let unfinished = self.file.last().is_some_and(|line| !line.ends_with('\n'));
        if unfinished && self.done == self.file.len() {
            // Nothing was said about the end of the file, so it stays as it is.
            let ended = Line::new(self.text.as_str());
            let length = ended.ending.map_or(0, |ending| ending.as_str().len());
            self.text.truncate(self.text.len() - length);
        }
    }

    /// Writes lines that come in the place of others.
    fn adapted_run(&mut self, run: &[HunkLine]) {
        let removed = run.iter().filter(|line| line.sign == Sign::Remove).count();
        let old = self.file[self.done..self.done + removed].concat();
        let added = run.iter().filter(|line| line.sign == Sign::Add);
        let new: String = added.flat_map(|line| [line.bare(), "\n"]).collect();
        let new = adapt(&old, &new, self.near());
        self.push(&new);
        self.done += removed;
    }

    /// Returns the ending of the nearest line that has one.
    fn near(&self) -> LineEnding {
        let before = self.done.checked_sub(1).and_then(|at| self.file.get(at));
        let mut nearest = self.file.get(self.done).into_iter().chain(before);
        nearest.find_map(|line| Line::new(line).ending).unwrap_or(self.usual)
    }
}
