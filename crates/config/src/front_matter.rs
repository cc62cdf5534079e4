//! The split of a workflow file into YAML front matter and prompt template.
//!
//! Front matter begins only if the very first line is exactly `---`, and ends with the next such line.
//! Every text can be split: without front matter all of it is the prompt, without a closing line all of
//! it is settings, and what looks like a mistake becomes a warning.

use crate::diagnostic::{Diagnostic, Position};

/// The line before and after the front matter.
const FENCE: &str = "---";

/// A part of a file and the position of its first character.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceText {
    pub(crate) text: String,
    pub(crate) start: Position,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SplitFile {
    /// The YAML text; empty when the file has no front matter.
    pub(crate) yaml: SourceText,
    /// The template, without white space at its ends.
    pub(crate) prompt: SourceText,
    pub(crate) warning: Option<Diagnostic>,
}

pub(crate) fn split(text: &str) -> SplitFile {
    let lines = split_lines(text);
    if lines.first() != Some(&FENCE) {
        return SplitFile {
            yaml: SourceText { text: String::new(), start: Position::START },
            prompt: trimmed(&lines, 1),
            warning: misplaced_fence(&lines),
        };
    }
    let inside = &lines[1..];
    let end = inside.iter().position(|line| *line == FENCE);
    let prompt = end.map_or(&[][..], |end| &inside[end + 1..]);
    let yaml = &inside[..end.unwrap_or(inside.len())];
    SplitFile {
        yaml: SourceText { text: yaml.join("\n"), start: Position { line: 2, column: 1 } },
        prompt: trimmed(prompt, yaml.len() + 3),
        warning: end.is_none().then(unterminated),
    }
}

/// Splits at CRLF, LF, CR, vertical tab and form feed, by characters: the bytes of `Å`, `х` and `入` include
/// 0x85, which is a line end in Latin-1.
fn split_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(['\n', '\r', '\u{b}', '\u{c}']) {
        lines.push(&rest[..end]);
        let width = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + width..];
    }
    lines.push(rest);
    lines
}

fn trimmed(lines: &[&str], first_line: usize) -> SourceText {
    let joined = lines.join("\n");
    let text = joined.trim_start();
    let skipped = &joined[..joined.len() - text.len()];
    let start = Position::after(skipped).within(Position { line: first_line, column: 1 });
    SourceText { text: text.trim_end().to_owned(), start }
}

fn misplaced_fence(lines: &[&str]) -> Option<Diagnostic> {
    let (index, line) = lines.iter().enumerate().find(|(_, line)| !line.trim().is_empty())?;
    let message = "this looks like front matter but is read as the prompt; front matter begins only \
                   when the first line of the file is exactly `---`";
    (line.trim() == FENCE).then(|| Diagnostic::at(Position { line: index + 1, column: 1 }, message))
}

fn unterminated() -> Diagnostic {
    let message = "the front matter has no closing `---`, so the whole file is read as settings \
                   and the built-in prompt is used";
    Diagnostic::at(Position::START, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn texts(text: &str) -> (String, String) {
        let split = split(text);
        (split.yaml.text, split.prompt.text)
    }

    #[test]
    fn item_094_files_split_by_the_table() {
        for (file, yaml, prompt) in [
            ("", "", ""),
            ("just a prompt\n", "", "just a prompt"),
            ("---\na: 1\n---\nhello\n", "a: 1", "hello"),
            ("---\na: 1\nb: 2\n", "a: 1\nb: 2\n", ""),
            ("---\n---\n\n hi \n\n", "", "hi"),
            ("---\n\n---\nx", "", "x"),
            ("---", "", ""),
            ("---\r\na: 1\r\n---\r\none\r\ntwo\r\n", "a: 1", "one\ntwo"),
            ("---\ra: 1\r---\rone\rtwo", "a: 1", "one\ntwo"),
            ("---\u{b}a: 1\u{c}---\u{b}x", "a: 1", "x"),
            ("--- \na: 1\n---\nx", "", "--- \na: 1\n---\nx"),
            ("\n---\na: 1\n---\nx", "", "---\na: 1\n---\nx"),
            ("---\na: 1\n ---\nb: 2\n---\nx\n---\ny", "a: 1\n ---\nb: 2", "x\n---\ny"),
            ("---\na: Å х 入\n---\nÅ х 入", "a: Å х 入", "Å х 入"),
        ] {
            assert_eq!(texts(file), (yaml.to_owned(), prompt.to_owned()), "{file:?}");
        }
    }

    #[test]
    fn the_prompt_has_the_position_of_its_start() {
        let start = |file: &str| split(file).prompt.start;
        assert_eq!(start("---\na: 1\n---\n\n  hello"), Position { line: 5, column: 3 });
        assert_eq!(start("hello"), Position::START);
    }

    #[test]
    fn doubtful_fences_give_a_warning() {
        let line = |file: &str| split(file).warning.map(|w| w.position.map_or(0, |p| p.line));
        assert_eq!(line("\n--- \na: 1"), Some(2));
        assert_eq!(line("---\na: 1"), Some(1));
        assert_eq!(line("---\n---\n"), None);
        assert_eq!(line("text\n---\n"), None);
    }
}
