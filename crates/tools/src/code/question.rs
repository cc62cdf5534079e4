//! The symbol of a question: by its name path, or by a place in a file.

use std::path::Path;

use carrel_code::{Definition, IndexView, NamePath};
use carrel_domain::{Code, Failure};
use carrel_lsp::Target;
use schemars::JsonSchema;
use serde::Deserialize;

use super::semantics::target;
use super::source_file::{SourceFile, SourceText};
use super::symbol_indexes::FreshIndex;
use super::symbol_query::{SymbolQuery, ambiguous};
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

/// A question about a symbol.
#[derive(Debug)]
pub(super) struct Question {
    /// The words for the symbol in replies: `echo`, or `symbol at src/a.py:3:7`.
    pub(super) label: String,
    /// Its last name.
    pub(super) name: String,
    /// The definitions by name alone, the nearest to a place first.
    pub(super) definitions: Vec<Definition>,
    /// The place to ask a language server about; none if the name has several definitions, or none here.
    pub(super) place: Option<Target>,
    /// The part of the workspace in which there may be further definitions.
    missing: Option<String>,
}

impl TargetInput {
    /// Tells whether the symbol is given by its place.
    pub(super) fn is_place(&self) -> bool {
        self.symbol.is_none()
    }
}

impl Question {
    /// Finds the symbol that a caller means. A name that is neither defined nor used is refused with near ones.
    pub(super) fn of(
        context: &ToolContext,
        files: &WorkspaceFiles,
        input: &TargetInput,
        fresh: &FreshIndex,
    ) -> Result<Self, Failure> {
        match &input.symbol {
            Some(symbol) => Self::of_name(context, files, (symbol, input), fresh),
            None => Self::of_place(files, input, fresh),
        }
    }

    fn of_name(
        context: &ToolContext,
        files: &WorkspaceFiles,
        (symbol, input): (&str, &TargetInput),
        fresh: &FreshIndex,
    ) -> Result<Self, Failure> {
        let path = input.file_path.as_deref();
        let query = SymbolQuery::new(&files.workspace, symbol, path, input.line)?;
        let definitions = match query.find(fresh) {
            // It is defined elsewhere, as the names of libraries are, or in a file that is not indexed.
            Err(_) if !fresh.view().uses(query.name()).is_empty() => Vec::new(),
            found => found?,
        };
        let name = query.name().to_owned();
        let place = match the_one(&definitions) {
            Some(one) => place_of(context, files, one, &name),
            None => None,
        };
        let missing = fresh.missing();
        Ok(Self { label: symbol.trim().to_owned(), name, definitions, place, missing })
    }

    fn of_place(
        files: &WorkspaceFiles,
        input: &TargetInput,
        fresh: &FreshIndex,
    ) -> Result<Self, Failure> {
        let required =
            |name: &str, rule: &str| Failure::argument(name, format!("{name} is required{rule}"));
        let path = input.file_path.as_deref().filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| required("file_path", ", or symbol"))?;
        let given = |number: Option<u64>| number.filter(|number| *number > 0).map(number_of);
        let line = given(input.line).ok_or_else(|| required("line", " (1-based)"))?;
        let col = given(input.col).ok_or_else(|| required("col", " (1-based)"))?;
        let path = files.workspace.relative(path);
        let file = SourceText::load(files, &path)?;
        let text = file.line(line).ok_or_else(|| {
            let message =
                format!("{} has {} lines and no line {line}", file.shown, file.line_count());
            Failure::new(Code::InvalidRange, message).with("line", line)
        })?;
        let (name, begin) = name_at(text, col).ok_or_else(|| {
            let message =
                format!("there is no name at {}:{line}:{col}: {}", file.shown, text.trim());
            Failure::new(Code::SymbolNotFound, message).with("col", col)
        })?;
        let column = text[..begin].chars().count() + 1;
        let place = file.offset_of(line, column).map(|offset| target(&file, offset));
        let definitions = nearest(&fresh.view(), name, (file.path(), line));
        let label = format!("symbol at {}:{line}:{col}", file.shown);
        let missing = fresh.missing();
        Ok(Self { label, name: name.to_owned(), definitions, place, missing })
    }

    /// Returns the place to ask a language server about, or the refusal of a name that does not tell it.
    pub(super) fn only_place(&self) -> Result<Target, Failure> {
        if let Some(place) = &self.place {
            return Ok(place.clone());
        }
        match self.definitions.as_slice() {
            [] => {
                let label = &self.label;
                let message = match &self.missing {
                    None => {
                        format!("{label} is not defined in this workspace; give the place of a use")
                    }
                    Some(missing) => format!(
                        "{label} is not in the index; give the place of a use [incomplete: {missing}]"
                    ),
                };
                Err(Failure::new(Code::SymbolNotFound, message).with("symbol", self.label.as_str()))
            }
            found => Err(ambiguous(&self.label, found)),
        }
    }

    /// Returns the label without the words in front of a place.
    pub(super) fn short_label(&self) -> &str {
        self.label.trim_start_matches("symbol at ")
    }
}

/// Returns the only definition, or the last of overloads, which is the one with a body.
fn the_one(definitions: &[Definition]) -> Option<&Definition> {
    let (last, others) = definitions.split_last()?;
    let is_same = |one: &Definition| (&one.file, &one.path) == (&last.file, &last.path);
    (others.is_empty() || (last.kind.is_callable() && others.iter().all(is_same))).then_some(last)
}

fn number_of(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Returns the place of a definition's name; none in a file that has vanished since.
fn place_of(
    context: &ToolContext,
    files: &WorkspaceFiles,
    definition: &Definition,
    name: &str,
) -> Option<Target> {
    let file = SourceFile::load(files, &context.toolbox.symbols, &definition.file).ok()?;
    let line = definition.line;
    let text = file.lines().get(line - 1).copied().unwrap_or_default().to_owned();
    let offset = file.offset_of(line, column_of(&text, name));
    offset.map(|offset| target(&file, offset))
}

/// Returns the definitions of a name, those in the same file first, then those in near directories.
fn nearest(view: &IndexView<'_>, name: &str, (file, line): (&Path, usize)) -> Vec<Definition> {
    let mut found = NamePath::parse(name).map_or_else(Vec::new, |path| view.definitions(&path));
    let distance = |one: &Definition| {
        let common = one.file.components().zip(file.components()).take_while(|(a, b)| a == b);
        let lines = if one.file == file { one.line.abs_diff(line) } else { 0 };
        (one.file != file, std::cmp::Reverse(common.count()), lines)
    };
    found.sort_by_key(distance);
    found
}

/// Returns the name that a character of a line belongs to, and its offset. A place right behind a name counts.
fn name_at(line: &str, col: usize) -> Option<(&str, usize)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let at = line.char_indices().nth(col - 1).map_or(line.len(), |(at, _)| at);
    let begin = line[..at]
        .rfind(|c| !is_part(c))
        .map_or(0, |before| before + line[before..].chars().next().map_or(1, char::len_utf8));
    let end = line[at..].find(|c| !is_part(c)).map_or(line.len(), |end| at + end);
    let is_in_line = col <= line.chars().count() + 1;
    (is_in_line && begin < end).then(|| (&line[begin..end], begin))
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
            assert_eq!(name_at(line, col).map(|found| found.0), name, "{col}");
        }
    }

    #[test]
    fn the_column_of_a_name_is_that_of_the_whole_word() {
        assert_eq!(column_of("def echo_all(echo): pass", "echo"), 14);
        assert_eq!(column_of("ä echo", "echo"), 3);
        assert_eq!(column_of("nothing", "echo"), 1);
    }
}
