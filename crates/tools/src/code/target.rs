//! The target of a question: a symbol by its name path, or the name at a place of a file.

use carrel_code::{Definition, IndexView};
use carrel_domain::{Code, Failure};
use schemars::JsonSchema;
use serde::Deserialize;

use super::source_file::SourceFile;
use super::symbol_query::SymbolQuery;
use crate::files::WorkspaceFiles;
use crate::tool_context::ToolContext;

/// A symbol by its name path, or by its place.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TargetInput {
    /// The name, or a path of names such as `Type::method` or `module.function`.
    #[schemars(extend("x-brief" = "name or path such as Type::method; or give a place"))]
    symbol: Option<String>,
    /// The file of the place; with `symbol`, only there.
    #[schemars(extend("x-brief" = ""))]
    file_path: Option<String>,
    /// The line of the place, from 1.
    #[schemars(extend("x-brief" = ""))]
    line: Option<u64>,
    /// The character in the line, from 1.
    #[schemars(extend("x-brief" = ""))]
    col: Option<u64>,
}

/// The target of a question.
#[derive(Debug)]
pub(super) struct Target {
    /// The words for it in replies: `echo`, or `symbol at src/a.py:3:7`.
    pub(super) label: String,
    /// Its last name.
    pub(super) name: String,
    query: Option<SymbolQuery>,
    /// The file and the line of a place.
    place: Option<(std::path::PathBuf, usize)>,
}

impl Target {
    /// Finds the name that is asked for. Reads the file of a place.
    pub(super) fn of(
        context: &ToolContext,
        files: &WorkspaceFiles,
        input: &TargetInput,
    ) -> Result<Self, Failure> {
        let path = input.file_path.as_deref();
        if let Some(symbol) = &input.symbol {
            let query = SymbolQuery::new(&files.workspace, symbol, path, input.line)?;
            let (label, name) = (symbol.trim().to_owned(), query.name().to_owned());
            return Ok(Self { label, name, query: Some(query), place: None });
        }
        let required =
            |name: &str, rule: &str| Failure::argument(name, format!("{name} is required{rule}"));
        let path = path
            .filter(|path| !path.is_empty())
            .ok_or_else(|| required("file_path", ", or symbol"))?;
        let line =
            input.line.filter(|line| *line > 0).ok_or_else(|| required("line", " (1-based)"))?;
        let col = input.col.filter(|col| *col > 0).ok_or_else(|| required("col", " (1-based)"))?;
        let file =
            SourceFile::load(files, &context.toolbox.symbols, &files.workspace.relative(path))?;
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let (line, col) = (number(line), number(col));
        let lines = file.lines();
        let text = lines.get(line - 1).ok_or_else(|| {
            let message = format!("{} has {} lines and no line {line}", file.shown, lines.len());
            Failure::new(Code::InvalidRange, message).with("line", line)
        })?;
        let name = name_at(text, col).ok_or_else(|| {
            let message =
                format!("there is no name at {}:{line}:{col}: {}", file.shown, text.trim());
            Failure::new(Code::SymbolNotFound, message).with("col", col)
        })?;
        let label = format!("symbol at {}:{line}:{col}", file.shown);
        let place = Some((file.path().to_owned(), line));
        Ok(Self { label, name: name.to_owned(), query: None, place })
    }

    /// Returns the definitions of the name, the nearest to the place first.
    pub(super) fn definitions(&self, view: &IndexView<'_>) -> Result<Vec<Definition>, Failure> {
        let Some((file, line)) = &self.place else {
            return self.query.as_ref().map_or(Ok(Vec::new()), |query| query.find(view));
        };
        let path = carrel_code::NamePath::parse(&self.name);
        let mut found = path.map_or_else(Vec::new, |path| view.definitions(&path));
        let distance = |one: &Definition| {
            let common = one.file.components().zip(file.components()).take_while(|(a, b)| a == b);
            let lines = if one.file == *file { one.line.abs_diff(*line) } else { 0 };
            (one.file != *file, std::cmp::Reverse(common.count()), lines)
        };
        found.sort_by_key(distance);
        Ok(found)
    }
}

/// Returns the name that a character of a line belongs to. A place right behind a name counts.
fn name_at(line: &str, col: usize) -> Option<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let at = line.char_indices().nth(col - 1).map_or(line.len(), |(at, _)| at);
    let begin = line[..at]
        .rfind(|c| !is_part(c))
        .map_or(0, |before| before + line[before..].chars().next().map_or(1, char::len_utf8));
    let end = line[at..].find(|c| !is_part(c)).map_or(line.len(), |end| at + end);
    let is_in_line = col <= line.chars().count() + 1;
    Some(&line[begin..end]).filter(|name| is_in_line && !name.is_empty())
}

/// Returns the character of a line, from 1, at which a name begins.
pub(super) fn column_of(line: &str, name: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_whole = |at: usize| {
        let before = line[..at].chars().next_back().is_some_and(is_part);
        let after = line[at + name.len()..].chars().next().is_some_and(is_part);
        !before && !after
    };
    let found = line.match_indices(name).map(|(at, _)| at).find(|at| is_whole(*at));
    line[..found.unwrap_or(0)].chars().count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn the_name_at_a_character_is_whole() {
        let line = "  let größe = über.count(a_b);";
        for (col, name) in [
            (1, None),
            (3, Some("let")),
            (7, Some("größe")),
            (11, Some("größe")),
            (12, Some("größe")),
            (13, None),
            (15, Some("über")),
            (19, Some("über")),
            (20, Some("count")),
            (28, Some("a_b")),
            (31, None),
            (99, None),
        ] {
            assert_eq!(name_at(line, col), name, "{col}");
        }
    }

    #[test]
    fn the_column_of_a_name_is_that_of_the_whole_word() {
        assert_eq!(column_of("def echo_all(echo): pass", "echo"), 14);
        assert_eq!(column_of("ä echo", "echo"), 3);
        assert_eq!(column_of("nothing", "echo"), 1);
    }
}
