//! Incremental output of frames to a terminal.

use std::fmt::Write as _;

use super::frame::Frame;

/// Enters the alternate screen, hides the cursor and clears.
const OPEN: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";

/// Shows the cursor and leaves the alternate screen.
const CLOSE: &str = "\x1b[?25h\x1b[?1049l";

/// The known contents of a terminal. Only lines that differ from it are written.
#[derive(Debug)]
pub struct Painter {
    shown: Vec<String>,
    size: (usize, usize),
    colors: bool,
}

impl Painter {
    /// Creates a painter for a terminal of unknown contents.
    pub fn new(colors: bool) -> Self {
        Self { shown: Vec::new(), size: (0, 0), colors }
    }

    /// Returns the sequence that prepares the terminal.
    pub fn open(&self) -> &'static str {
        OPEN
    }

    /// Returns the sequence that restores the terminal.
    pub fn close(&self) -> &'static str {
        CLOSE
    }

    /// Returns the sequence that makes a terminal of `(columns, rows)` show a frame. A changed size clears
    /// the screen first.
    pub fn paint(&mut self, frame: &Frame, size: (usize, usize)) -> String {
        let mut text = String::new();
        if size != self.size {
            text.push_str("\x1b[2J");
            self.shown.clear();
            self.size = size;
        }
        let lines: Vec<String> = frame.lines.iter().map(|line| line.ansi(self.colors)).collect();
        let count = lines.len().max(self.shown.len());
        for row in 0..count {
            let (line, shown) = (lines.get(row), self.shown.get(row));
            if line != shown {
                let line = line.map_or("", String::as_str);
                let _ = write!(text, "\x1b[{};1H{line}\x1b[K", row + 1);
            }
        }
        self.shown = lines;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{Style, StyledLine};
    use super::*;

    fn frame(lines: &[&str]) -> Frame {
        Frame { lines: lines.iter().map(|line| StyledLine::of(line, Style::Plain)).collect() }
    }

    #[test]
    fn only_lines_that_changed_are_written() {
        let mut painter = Painter::new(false);
        let first = painter.paint(&frame(&["one", "two"]), (80, 24));
        assert_eq!(first, "\x1b[2J\x1b[1;1Hone\x1b[K\x1b[2;1Htwo\x1b[K");
        assert_eq!(painter.paint(&frame(&["one", "two"]), (80, 24)), "");
        assert_eq!(painter.paint(&frame(&["one", "2"]), (80, 24)), "\x1b[2;1H2\x1b[K");
        assert_eq!(painter.paint(&frame(&["one"]), (80, 24)), "\x1b[2;1H\x1b[K");
        let resized = painter.paint(&frame(&["one"]), (60, 24));
        assert_eq!(resized, "\x1b[2J\x1b[1;1Hone\x1b[K", "another size is drawn anew");
    }
}
