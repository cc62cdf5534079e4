//! Reports as text, one line for each thing found.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use crate::line::{Line, LineKind};
use crate::report::{FileMatches, GrepReport};
use crate::request::Mode;

/// What stands between two groups of lines that do not follow each other.
const GROUP_BREAK: &str = "--\n";

/// The fewest bytes that a unit has as text: a name of one byte, a number, and what keeps them
/// apart. It bounds how many units can fit on a page.
pub(crate) const MIN_UNIT_BYTES: usize = 4;

/// Returns a path as text on one line: a line break in a name must not look like another result.
pub(crate) fn shown(path: &Path) -> Cow<'_, str> {
    let text = path.to_string_lossy();
    if text.chars().any(char::is_control) {
        let escape = |c: char| if c.is_control() { c.escape_default().collect() } else { c.into() };
        return text.chars().map(escape).collect::<Vec<String>>().concat().into();
    }
    text
}

impl GrepReport {
    /// Returns the page as text, every line with its path: `path:line:text` for matches and
    /// `path-line-text` for context, or `path`, or `path:count`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            let path = shown(&file.path);
            match self.mode {
                Mode::Content => self.add_lines(&mut text, &path, file),
                Mode::FilesWithMatches => add(&mut text, format_args!("{path}\n")),
                Mode::Count => {
                    add(&mut text, format_args!("{path}:{}\n", file.count.unwrap_or(0)));
                }
            }
        }
        text
    }

    fn add_lines(&self, text: &mut String, path: &str, file: &FileMatches) {
        let mut previous = None;
        for line in &file.lines {
            if self.context && !text.is_empty() && breaks(previous, line) {
                text.push_str(GROUP_BREAK);
            }
            add(text, format_args!("{}", Shown { path, line }));
            previous = Some(line.number);
        }
    }
}

/// Tells whether a line does not follow directly on the one before it in the same file.
fn breaks(previous: Option<u64>, line: &Line) -> bool {
    previous.is_none_or(|number| number + 1 != line.number)
}

/// Returns how many bytes a line takes up as text, with a break before it if there is context.
pub(crate) fn line_cost(path: &str, line: &Line, previous: Option<u64>, context: bool) -> usize {
    let group = if context && breaks(previous, line) { GROUP_BREAK.len() } else { 0 };
    let mut length = Length(group);
    add(&mut length, format_args!("{}", Shown { path, line }));
    length.0
}

/// Returns how many bytes a file takes up as text in the modes that show no lines.
pub(crate) fn file_cost(path: &str, count: Option<u64>) -> usize {
    let mut length = Length(path.len() + 1);
    if let Some(count) = count {
        add(&mut length, format_args!(":{count}"));
    }
    length.0
}

/// One line as it is printed.
struct Shown<'a> {
    path: &'a str,
    line: &'a Line,
}

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, line } = self;
        let mark = match line.kind {
            LineKind::Match => ':',
            LineKind::Context => '-',
        };
        write!(f, "{path}{mark}{}{mark}", line.number)?;
        write_omitted(f, line.omitted_before)?;
        f.write_str(&line.text)?;
        write_omitted(f, line.omitted_after)?;
        f.write_char('\n')
    }
}

fn write_omitted(f: &mut std::fmt::Formatter<'_>, bytes: u64) -> std::fmt::Result {
    if bytes > 0 { write!(f, "[… {bytes} bytes …]") } else { Ok(()) }
}

/// Counts instead of writing.
struct Length(usize);

impl std::fmt::Write for Length {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

fn add(text: &mut impl std::fmt::Write, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("neither a string nor a counter refuses text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_line_break_stays_on_one_line() {
        assert_eq!(shown(Path::new("a\nb")), "a\\nb");
        assert_eq!(shown(Path::new("é\u{7f}")), "é\\u{7f}");
        assert_eq!(shown(Path::new("plain é")), "plain é");
    }
}
