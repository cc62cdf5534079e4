//! Bounds on sources that the hand-written parts of some parsers do not check themselves.
//!
//! A parser of tree-sitter keeps the state of its hand-written scanner in a buffer of 1,024 bytes. The scanners of
//! YAML and Python write their stack of indentations into it, and that of Ruby its stack of heredocs, and each
//! can write a byte or two behind the end, upon which the parser aborts the process. Sources that could come near
//! are refused before they are parsed. The counts below are upper bounds of what the scanners hold.

use std::collections::VecDeque;

use crate::language::Language;

/// Levels of indentation in YAML. The scanner holds 253, two for each level that is counted here.
const MAX_YAML_LEVELS: usize = 120;

/// Levels of indentation in Python. The scanner holds at least 383; the interpreter takes 100.
const MAX_PYTHON_LEVELS: usize = 300;

/// Bytes of the words of heredocs in Ruby that are open at a time, with four for each.
const MAX_HEREDOC_BYTES: usize = 500;

/// Interpolations of a source in Ruby that has heredocs. The scanner takes five bytes for each literal around one.
const MAX_INTERPOLATIONS: usize = 100;

/// Tells whether a source stays far from the limits of its scanner.
pub(crate) fn is_within(language: Language, source: &str) -> bool {
    match language {
        Language::Yaml => levels(source, yaml_columns) <= MAX_YAML_LEVELS,
        Language::Python => levels(source, first_column) <= MAX_PYTHON_LEVELS,
        Language::Ruby => is_ruby_within(source),
        _ => true,
    }
}

/// Returns the most columns that are open at a time, each further to the right than the one before.
fn levels(source: &str, columns: impl Fn(&str, &mut dyn FnMut(usize))) -> usize {
    let mut open: Vec<usize> = Vec::new();
    let mut most = 0;
    for line in source.lines() {
        let mut is_first = true;
        columns(line, &mut |column| {
            if is_first {
                while open.last().is_some_and(|last| *last >= column) {
                    open.pop();
                }
                is_first = false;
            }
            open.push(column);
            most = most.max(open.len());
        });
    }
    most
}

/// Passes the column of the first character that is no white space.
fn first_column(line: &str, pass: &mut dyn FnMut(usize)) {
    let text = line.trim_start_matches([' ', '\t', '\u{c}']);
    if !text.trim().is_empty() {
        pass(line.len() - text.len());
    }
}

/// Passes the columns of the indicators at the start of a line, and of the text behind them.
fn yaml_columns(line: &str, pass: &mut dyn FnMut(usize)) {
    let bytes = line.as_bytes();
    for (column, byte) in bytes.iter().enumerate() {
        let is_blank = |byte: Option<&u8>| matches!(byte, None | Some(b' ' | b'\t' | b'\r'));
        match byte {
            b' ' | b'\t' => {}
            b'-' | b'?' | b':' if is_blank(bytes.get(column + 1)) => pass(column),
            _ => {
                pass(column);
                return;
            }
        }
    }
}

/// A heredoc that is open, as far as its lines tell.
struct Heredoc<'s> {
    word: &'s str,
    /// Its last line may be indented.
    is_indented: bool,
}

/// Counts the heredocs that may be open at each line, and the interpolations of the whole source.
///
/// Both are upper bounds for any source: a heredoc counts as closed only by the line that closes the first open one,
/// and an interpolation never does, since its end cannot be told from a brace in a string.
fn is_ruby_within(source: &str) -> bool {
    let mut open: VecDeque<Heredoc<'_>> = VecDeque::new();
    let mut bytes = 0;
    let mut most = 0;
    for line in source.lines() {
        let is_end = |first: &Heredoc<'_>| {
            let line = if first.is_indented { line.trim_start() } else { line };
            line.trim_end_matches('\r') == first.word
        };
        if open.front().is_some_and(is_end) {
            bytes -= open.pop_front().map_or(0, |first| first.bytes());
        }
        for heredoc in heredocs(line) {
            bytes += heredoc.bytes();
            open.push_back(heredoc);
        }
        most = most.max(bytes);
    }
    // Without a heredoc the scanner checks its own bound.
    most == 0 || (most <= MAX_HEREDOC_BYTES && source.matches("#{").count() <= MAX_INTERPOLATIONS)
}

impl Heredoc<'_> {
    fn bytes(&self) -> usize {
        self.word.len() + 4
    }
}

fn heredocs(line: &str) -> impl Iterator<Item = Heredoc<'_>> {
    line.split("<<").skip(1).filter_map(|rest| {
        let is_indented = rest.starts_with(['~', '-']);
        let rest = rest.strip_prefix(['~', '-']).unwrap_or(rest);
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
        let word = if let Some(quote) = quote {
            rest[1..].split(quote).next()?
        } else {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let word = &rest[..end.unwrap_or(rest.len())];
            Some(word).filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))?
        };
        Some(Heredoc { word, is_indented })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn nested(levels: usize, opening: &str) -> String {
        (0..levels).fold(String::new(), |mut text, level| {
            let _ = writeln!(text, "{}{opening}", " ".repeat(level));
            text
        })
    }

    #[test]
    fn sources_that_people_write_are_within() {
        let repetition = "x:\n  - y: 1\n".repeat(1_000);
        assert!(is_within(Language::Yaml, &repetition));
        assert!(is_within(Language::Yaml, &nested(60, "a:")));
        assert!(is_within(Language::Yaml, &format!("a: |\n  {}\n", "-".repeat(300))));
        assert!(is_within(Language::Python, &nested(100, "if a:")));
        let heredocs = "puts <<~A, <<-'B'\n  #{x}\nA\nB\nlist <<ITEM\n".repeat(20);
        assert!(is_within(Language::Ruby, &heredocs));
    }

    #[test]
    fn sources_near_the_limit_of_a_scanner_are_not() {
        assert!(!is_within(Language::Yaml, &"- ".repeat(200)));
        assert!(!is_within(Language::Yaml, &nested(200, "a:")));
        assert!(!is_within(Language::Yaml, &"? ".repeat(200)));
        assert!(!is_within(Language::Python, &nested(400, "if a:")));
        assert!(!is_within(Language::Ruby, &format!("puts <<{}\n", "A".repeat(1_000))));
        assert!(!is_within(Language::Ruby, &format!("f({})\n", "<<A, ".repeat(200))));
        let interpolations = "\"#{} }\"\n".repeat(200);
        assert!(is_within(Language::Ruby, &interpolations), "without a heredoc there is no danger");
        assert!(!is_within(Language::Ruby, &format!("puts <<A\nA\n{interpolations}")));
        // Lines that look like the end of a heredoc and are none.
        let inside_another = "f(<<B, <<A)\nA\n".repeat(100);
        assert!(!is_within(Language::Ruby, &inside_another));
        let indented = "f(<<A)\n  A\n".repeat(200);
        assert!(!is_within(Language::Ruby, &indented));
        assert!(is_within(Language::Rust, &"{".repeat(2_000)));
    }
}
