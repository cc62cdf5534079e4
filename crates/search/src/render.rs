//! Reports as text in the format of grep: `path:line:text` for matches, `path-line-text` for
//! context.
//!
//! The size of a page is counted with the same formatting code into a counter, so a page never
//! exceeds the requested bytes by a formatting difference.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use crate::{FileMatches, GrepReport, Line, LineKind, Mode};

/// Separator between groups of lines that are not adjacent.
const GROUP_BREAK: &str = "--\n";

/// Minimum bytes of a unit as text: a path of one byte, a number and two separators. Bounds the
/// units of a page.
pub(crate) const MIN_UNIT_BYTES: usize = 4;

/// Formats a path on one line, with control characters escaped: a line break in a name must not
/// look like another result.
pub(crate) fn shown(path: &Path) -> Cow<'_, str> {
    let text = path.to_string_lossy();
    if text.chars().any(char::is_control) {
        let escape = |c: char| if c.is_control() { c.escape_default().collect() } else { c.into() };
        return text.chars().map(escape).collect::<Vec<String>>().concat().into();
    }
    text
}

impl GrepReport {
    /// Formats the page as text. Every line starts with its path: `path:line:text` for matches,
    /// `path-line-text` for context, `path` or `path:count` in the other modes.
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
            add(text, format_args!("{}", FormattedLine { path, line }));
            previous = Some(line.number);
        }
    }
}

/// Returns true unless a line directly follows the previous one of the same file.
fn breaks(previous: Option<u64>, line: &Line) -> bool {
    previous.is_none_or(|number| number + 1 != line.number)
}

/// Returns the bytes of a line as text, with a separator before it if there is context.
pub(crate) fn line_cost(path: &str, line: &Line, previous: Option<u64>, context: bool) -> usize {
    let group = if context && breaks(previous, line) { GROUP_BREAK.len() } else { 0 };
    let mut length = Length(group);
    add(&mut length, format_args!("{}", FormattedLine { path, line }));
    length.0
}

/// Returns the bytes of a file as text in the modes without lines.
pub(crate) fn file_cost(path: &str, count: Option<u64>) -> usize {
    let mut length = Length(path.len() + 1);
    if let Some(count) = count {
        add(&mut length, format_args!(":{count}"));
    }
    length.0
}

struct FormattedLine<'a> {
    path: &'a str,
    line: &'a Line,
}

impl std::fmt::Display for FormattedLine<'_> {
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
