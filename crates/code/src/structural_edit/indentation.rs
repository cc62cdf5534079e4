//! Indentation: that of a place in a file, and texts moved to it.

use std::collections::HashSet;

use tree_sitter::Node;

use crate::language::Language;
use crate::syntax::SyntaxTree;

/// The lines at the start of a file that tell its unit of indentation.
const MAX_SAMPLE_LINES: usize = 2_000;

/// The widest unit of indentation.
const MAX_UNIT: usize = 8;

/// The style of indentation of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Indentation {
    /// The white space that one level adds.
    pub(crate) unit: String,
}

impl Indentation {
    /// Finds the style of a source: that of its first indented line, or the custom of its language.
    pub(crate) fn of(language: Language, source: &str) -> Self {
        let lines = source.lines().take(MAX_SAMPLE_LINES);
        let mut indents = lines.filter(|line| !line.trim().is_empty()).map(leading_white_space);
        // One space is the inside of a block comment.
        let first = indents.find(|indent| indent.starts_with('\t') || indent.len() > 1);
        let unit = match first {
            Some(indent) if indent.starts_with('\t') => "\t".to_owned(),
            Some(indent) if indent.len() <= MAX_UNIT => indent.to_owned(),
            _ => custom(language).to_owned(),
        };
        Self { unit }
    }
}

const fn custom(language: Language) -> &'static str {
    match language {
        Language::Go => "\t",
        Language::JavaScript
        | Language::TypeScript
        | Language::Tsx
        | Language::Ruby
        | Language::Lua
        | Language::Json
        | Language::Yaml
        | Language::Html
        | Language::Css
        | Language::Scala => "  ",
        _ => "    ",
    }
}

/// Returns the white space at the start of a line.
pub(crate) fn leading_white_space(line: &str) -> &str {
    let length = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &line[..length]
}

/// Returns the rows of a fragment that begin inside of a literal, whose white space is its value.
///
/// Strings that document a Python definition are not among them.
pub(crate) fn literal_rows(language: Language, fragment: &str) -> HashSet<usize> {
    let (opening, offset) = match language {
        Language::Php => ("<?php\n", 1),
        _ => ("", 0),
    };
    if !fragment.contains('\n') {
        return HashSet::new();
    }
    let Ok(tree) = SyntaxTree::parse(language, &format!("{opening}{fragment}")) else {
        return HashSet::new();
    };
    literal_rows_of(&tree).into_iter().map(|row| row - offset).collect()
}

/// Returns the rows of a tree that begin inside of a literal.
pub(crate) fn literal_rows_of(tree: &SyntaxTree) -> HashSet<usize> {
    literals(tree.root()).into_iter().flat_map(|(first, last)| first + 1..=last).collect()
}

/// Collects the first and last row of the literals below a node that span several.
fn literals(root: Node<'_>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        let rows = (node.start_position().row, node.end_position().row);
        let is_literal = rows.0 != rows.1 && is_literal(node);
        if is_literal && !is_documentation(node) {
            found.push(rows);
        }
        if !is_literal && rows.0 != rows.1 && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

fn is_literal(node: Node<'_>) -> bool {
    let kind = node.kind();
    let is_text = kind.contains("string") || kind.contains("heredoc") || kind == "nowdoc";
    is_text && node.is_named() && !node.has_error()
}

fn is_documentation(node: Node<'_>) -> bool {
    node.kind() == "string"
        && node.parent().is_some_and(|parent| parent.kind() == "expression_statement")
}

/// Moves the lines of a text so that the least indented of its block begins with `target`.
///
/// The first line may lack the indentation that the others have, as text does that was copied from its first
/// letter on. Deeper levels keep their distance; where the file is indented by tabs, so are they.
pub(crate) fn reindent(
    text: &str,
    target: &str,
    style: &Indentation,
    literal_rows: &HashSet<usize>,
) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let base = base_indentation(&lines, literal_rows);
    // Lines that are where they belong stay as they are, with labels and directives at the left edge.
    if base == target {
        return text.to_owned();
    }
    if base.is_empty() && is_in_place(&lines, target, literal_rows) {
        return format!("{target}{text}");
    }
    let unit = (style.unit == "\t").then(|| own_unit(&lines, base, literal_rows)).flatten();
    let mut moved = String::with_capacity(text.len() + lines.len() * target.len());
    for (row, line) in lines.iter().enumerate() {
        if row > 0 {
            moved.push('\n');
        }
        if literal_rows.contains(&row) {
            moved.push_str(line);
        } else if !line.trim().is_empty() {
            moved.push_str(target);
            push_relative(&mut moved, relative(line, base), unit);
        }
    }
    moved
}

/// Returns the indentation that all lines of a text have in common, by its first line with text.
pub(crate) fn base_indentation<'t>(lines: &[&'t str], literal_rows: &HashSet<usize>) -> &'t str {
    let mut rows = lines.iter().enumerate().filter(|(row, line)| {
        !line.trim().is_empty() && (*row == 0 || !literal_rows.contains(row))
    });
    let Some((row, first)) = rows.next() else { return "" };
    let base = leading_white_space(first);
    let others = rows.map(|(_, line)| leading_white_space(line)).min_by_key(|indent| indent.len());
    match others {
        // The first line lacks what all others have, and opens no block.
        Some(others) if row == 0 && base.is_empty() && !opens_block(first) => others,
        _ => base,
    }
}

/// Tells whether all lines but the first have the indentation of the target already, as a definition has that was
/// copied from its first letter on.
fn is_in_place(lines: &[&str], target: &str, literal_rows: &HashSet<usize>) -> bool {
    let Some((first, others)) = lines.split_first() else { return false };
    let rows = others
        .iter()
        .enumerate()
        .filter(|(row, line)| !line.trim().is_empty() && !literal_rows.contains(&(row + 1)));
    let mut widths = rows.map(|(_, line)| leading_white_space(line).len()).peekable();
    // Below a colon, the first line is deeper than the one above it by the rules of the language.
    let least = target.len() + usize::from(first.trim_end().ends_with(':'));
    let is_deeper = widths.peek().is_some_and(|second| *second >= least);
    is_deeper && !first.trim().is_empty() && widths.all(|width| width >= target.len())
}

/// Tells whether the lines below a line belong to it.
fn opens_block(line: &str) -> bool {
    let line = line.trim_end();
    let word = line.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    line.ends_with(['{', '(', '[', ':', ',', '\\', '|', '=', '>'])
        || matches!(word, "do" | "then" | "else" | "begin" | "ensure" | "rescue" | "in")
        || starts_block(line)
        || line.matches(['(', '[', '{']).count() > line.matches([')', ']', '}']).count()
}

/// Tells whether the line begins a block that ends with a keyword, as in Ruby and Lua.
fn starts_block(line: &str) -> bool {
    let word = line.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    matches!(
        word,
        "def"
            | "class"
            | "module"
            | "if"
            | "unless"
            | "while"
            | "until"
            | "case"
            | "function"
            | "local"
            | "begin"
            | "for"
            | "switch"
            | "select"
    )
}

fn relative<'t>(line: &'t str, base: &str) -> &'t str {
    line.strip_prefix(base).unwrap_or_else(|| line.trim_start_matches([' ', '\t']))
}

/// Returns the width of one level of a text that is indented by spaces.
fn own_unit(lines: &[&str], base: &str, literal_rows: &HashSet<usize>) -> Option<usize> {
    if lines.iter().any(|line| line.starts_with('\t')) {
        return None;
    }
    let widths = lines.iter().enumerate().filter(|(row, _)| !literal_rows.contains(row));
    let widths = widths.filter(|(_, line)| !line.trim().is_empty()).map(|(_, line)| {
        let relative = relative(line, base);
        relative.len() - relative.trim_start_matches(' ').len()
    });
    widths.filter(|width| *width > 1).min()
}

fn push_relative(moved: &mut String, line: &str, unit: Option<usize>) {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    match unit {
        Some(unit) => {
            moved.extend(std::iter::repeat_n('\t', spaces / unit));
            moved.push_str(&line[spaces - spaces % unit..]);
        }
        None => moved.push_str(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn moved(text: &str, target: &str, unit: &str) -> String {
        reindent(text, target, &Indentation { unit: unit.to_owned() }, &HashSet::new())
    }

    #[test]
    fn a_text_of_any_base_indentation_is_moved_as_a_whole() {
        for (text, expected) in [
            ("a\nif b:\n    c", "  a\n  if b:\n      c"),
            ("        a\n        if b:\n            c", "  a\n  if b:\n      c"),
            ("a\n    b\n    c", "  a\n  b\n  c"),
            ("a\n\n\tb", "  a\n\n  b"),
            ("    a\n  b", "  a\n  b"),
            ("if a {\n    b\n  }", "  if a {\n    b\n  }"),
            ("if a {\n  b\n}", "  if a {\n    b\n  }"),
            ("if a:\n    b\n  c", "  if a:\n    b\n  c"),
            ("if a:\n  b\n  c", "  if a:\n    b\n    c"),
            ("a = (b +\n     c)", "  a = (b +\n     c)"),
            ("", ""),
        ] {
            assert_eq!(moved(text, "  ", "  "), expected, "{text:?}");
        }
    }

    #[test]
    fn spaces_become_tabs_in_a_file_of_tabs() {
        assert_eq!(moved("if a {\n    b\n}", "\t", "\t"), "\tif a {\n\t\tb\n\t}");
        assert_eq!(moved("a {\n  b {\n    c\n}", "\t", "\t"), "\ta {\n\t\tb {\n\t\t\tc\n\t}");
    }

    #[test]
    fn the_first_indented_line_tells_the_unit() {
        let unit = |source: &str| Indentation::of(Language::Python, source).unit;
        assert_eq!(unit("def f():\n  pass\n"), "  ");
        assert_eq!(unit("/*\n * a\n */\nf\n\tb\n"), "\t");
        assert_eq!(unit("a\n"), "    ");
    }

    #[test]
    fn lines_inside_of_literals_are_told_from_documentation() {
        let rows = |language, text: &str| {
            let mut rows: Vec<_> = literal_rows(language, text).into_iter().collect();
            rows.sort_unstable();
            rows
        };
        assert_eq!(rows(Language::Python, "\"\"\"Doc.\n\nMore.\n\"\"\"\nx = '''a\nb'''\n"), [5]);
        assert_eq!(rows(Language::Go, "x := `a\nb\nc`\ny := 1\n"), [1, 2]);
        assert_eq!(rows(Language::Php, "$x = <<<E\n  a\n  E;\n$y = 'b\nc';\n"), [1, 2, 4]);
    }
}
