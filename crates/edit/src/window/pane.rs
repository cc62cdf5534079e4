//! Writing numbered lines, as fast as they can be copied.

use memchr::memchr_iter;

use super::WindowBudget;
use crate::cut::push_cut;

/// Returns the text after its first `count` lines.
fn skip_lines(text: &str, count: usize) -> &str {
    let Some(last) = count.checked_sub(1) else { return text };
    memchr_iter(b'\n', text.as_bytes()).nth(last).map_or("", |end| &text[end + 1..])
}

/// Holds any line number.
const MAX_DIGITS: usize = 20;

/// Lines on their way into a window.
pub(super) struct Pane {
    pub(super) text: String,
    /// The number of the next line.
    pub(super) next: usize,
    pub(super) lines_cut: usize,
}

impl Pane {
    /// Shows at most `limit` lines from line `first` on.
    pub(super) fn show(text: &str, first: usize, limit: usize, budget: WindowBudget) -> Self {
        let mut pane = Self { text: String::new(), next: first, lines_cut: 0 };
        pane.fill(skip_lines(text, first - 1), limit, budget);
        pane
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

    /// Adds a line unless it passes the budget.
    fn push(&mut self, line: &str, budget: WindowBudget) -> bool {
        let before = self.text.len();
        self.push_number();
        let cut = push_cut(&mut self.text, line, budget.line_characters);
        self.text.push('\n');
        if before > 0 && self.text.len() > budget.bytes {
            self.text.truncate(before);
            return false;
        }
        self.next += 1;
        self.lines_cut += usize::from(cut);
        true
    }

    /// Adds the number of the line. Formatting it in the usual way takes longer than all the rest.
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
