//! Formatting of numbered lines, the inner loop of every read.

use memchr::memchr_iter;

use super::WindowBudget;
use crate::truncate::push_truncated;

fn skip_lines(text: &str, count: usize) -> &str {
    let Some(last) = count.checked_sub(1) else { return text };
    memchr_iter(b'\n', text.as_bytes()).nth(last).map_or("", |end| &text[end + 1..])
}

/// Digits of `usize::MAX`.
const MAX_DIGITS: usize = 20;

pub(super) struct NumberedLines {
    pub(super) text: String,
    /// Number of the line after the last one shown.
    pub(super) next: usize,
    pub(super) lines_cut: usize,
}

impl NumberedLines {
    /// Formats at most `limit` lines from line `first` on.
    pub(super) fn show(text: &str, first: usize, limit: usize, budget: WindowBudget) -> Self {
        let mut shown = Self { text: String::new(), next: first, lines_cut: 0 };
        shown.fill(skip_lines(text, first - 1), limit, budget);
        shown
    }

    fn fill(&mut self, rest: &str, limit: usize, budget: WindowBudget) {
        self.text.reserve(rest.len().saturating_add(rest.len() / 4).min(budget.bytes));
        let first = self.next;
        let mut start = 0;
        for end in memchr_iter(b'\n', rest.as_bytes()).take(limit) {
            let text = &rest[start..end];
            if !self.push(text.strip_suffix('\r').unwrap_or(text), budget) {
                return;
            }
            start = end + 1;
        }
        let unfinished = &rest[start..];
        if self.next - first < limit && !unfinished.is_empty() {
            self.push(unfinished, budget);
        }
    }

    /// Adds a line unless it exceeds the budget in bytes; the first line is always added.
    fn push(&mut self, line: &str, budget: WindowBudget) -> bool {
        let before = self.text.len();
        self.push_number();
        let cut = push_truncated(&mut self.text, line, budget.line_characters);
        self.text.push('\n');
        if before > 0 && self.text.len() > budget.bytes {
            self.text.truncate(before);
            return false;
        }
        self.next += 1;
        self.lines_cut += usize::from(cut);
        true
    }

    /// Writes the line number by hand: a window of 2,000 lines takes 60 µs instead of 170 µs with
    /// `write!`.
    fn push_number(&mut self) {
        let mut digits = [b'0'; MAX_DIGITS];
        let mut start = MAX_DIGITS;
        let mut rest = self.next;
        while rest > 0 {
            start -= 1;
            digits[start] = b"0123456789"[rest % 10];
            rest /= 10;
        }
        for &digit in &digits[start..] {
            self.text.push(char::from(digit));
        }
        self.text.push('\t');
    }
}
