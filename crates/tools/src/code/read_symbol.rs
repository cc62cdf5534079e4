//! The tool `read_symbol`.

use carrel_code::Definition;
use carrel_domain::ToolGroup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::AnswerFacts;
use super::source_file::SourceFile;
use super::symbol_indexes::refresh;
use super::symbol_query::SymbolQuery;
use crate::files::{WorkspaceFiles, run_cancellable, show_hash};
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Several definitions of a name are shown together up to this many lines; the caller chooses among longer ones.
const MAX_LINES_TOGETHER: usize = 60;

/// Several definitions of a name that are shown together.
const MAX_TOGETHER: usize = 4;

pub(super) struct ReadSymbol;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The name, or a path of names such as `Type::method` or `module.function`.
    #[schemars(extend("x-brief" = "name or path such as Type::method"))]
    symbol: String,
    /// Only in this file or directory.
    #[schemars(extend("x-brief" = ""))]
    file_path: Option<String>,
    /// The definition that contains this line.
    #[schemars(extend("x-brief" = false))]
    line: Option<u64>,
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(flatten)]
    answer: AnswerFacts,
    symbols: Vec<SymbolFacts>,
}

/// A symbol that is shown.
#[derive(Debug, Serialize, JsonSchema)]
struct SymbolFacts {
    path: String,
    /// The names from the outermost symbol to this one.
    symbol: String,
    kind: &'static str,
    first_line: usize,
    last_line: usize,
    /// Of the whole file, for `expected_hash`.
    hash: String,
    /// Lines that were left out at the end.
    lines_cut: usize,
}

impl Tool for ReadSymbol {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "read_symbol",
        title: "Read a symbol",
        group: ToolGroup::Code,
        description: "Shows the source of a symbol by name, with line numbers, wherever it is \
            defined. Counts as reading.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let files = WorkspaceFiles::of(context);
        let limit = context.reply_limit(input.max_bytes);
        let own = context.clone();
        let mut reply = run_cancellable(context, move |workspace, cancel| {
            let path = input.file_path.as_deref();
            let query = SymbolQuery::new(workspace, &input.symbol, path, input.line)?;
            let fresh = refresh(&own, workspace, cancel)?;
            let mut found = query.find(&fresh)?;
            let overloads = split_overloads(&mut found);
            let lines: usize = found.iter().map(|one| one.lines.1 - one.lines.0 + 1).sum();
            if found.len() > MAX_TOGETHER || (found.len() > 1 && lines > MAX_LINES_TOGETHER) {
                return Err(query.ambiguous(&found));
            }
            let mut text = String::new();
            let mut symbols = Vec::new();
            for definition in &found {
                let file = SourceFile::load(&files, &own.toolbox.symbols, &definition.file)?;
                // The file may have changed since the index was asked.
                let Some(now) = same_symbol(&file, definition) else { continue };
                let room = limit.saturating_sub(text.len());
                symbols.push(show(&files, &file, now, room, &mut text));
            }
            if symbols.is_empty() {
                return Err(query.ambiguous(&found));
            }
            if !overloads.is_empty() {
                let lines = overloads.iter().map(ToString::to_string).collect::<Vec<_>>();
                line(&mut text, &format!("[overloads at lines {}]", lines.join(", ")));
            }
            if let Some(unread) = fresh.unread() {
                line(&mut text, &format!("[incomplete: {unread}]"));
            }
            Ok(Reply::text(text, Facts { answer: AnswerFacts::of_index(&fresh), symbols }))
        })
        .await?;
        if let [only] = reply.facts.symbols.as_slice() {
            let hash = only.hash.clone();
            show_hash(context, &mut reply.content, &hash);
        }
        Ok(reply)
    }
}

/// Leaves the longest of several definitions with the same path in one file, which are overloads, and returns the
/// lines of the others.
fn split_overloads(found: &mut Vec<Definition>) -> Vec<usize> {
    let Some(first) = found.first().cloned() else { return Vec::new() };
    let is_same = |one: &Definition| {
        (&one.file, &one.path, one.kind) == (&first.file, &first.path, first.kind)
    };
    if found.len() < 2 || !first.kind.is_callable() || !found.iter().all(is_same) {
        return Vec::new();
    }
    let longest = found.iter().max_by_key(|one| one.lines.1 - one.lines.0).cloned();
    let Some(longest) = longest else { return Vec::new() };
    found.retain(|one| one.line != longest.line);
    let others = found.iter().map(|one| one.line).collect();
    *found = vec![longest];
    others
}

/// Returns the definition of a symbol in its file as that is now.
fn same_symbol<'a>(file: &'a SourceFile, known: &Definition) -> Option<&'a Definition> {
    let same =
        file.definitions.iter().filter(|one| one.path == known.path && one.kind == known.kind);
    same.min_by_key(|one| one.line.abs_diff(known.line))
}

/// Appends the lines of a symbol, as many as there is room for, and records them as read.
fn show(
    files: &WorkspaceFiles,
    file: &SourceFile,
    definition: &Definition,
    room: usize,
    text: &mut String,
) -> SymbolFacts {
    let (first, last) = definition.lines;
    line(text, &format!("{}:{first}-{last}", file.shown));
    let begun = text.len();
    let lines = file.lines();
    let mut shown = first;
    for (number, source) in (first..=last).zip(lines.iter().skip(first - 1)) {
        let row = format!("{number}\t{source}");
        if number > first && text.len() - begun + row.len() > room {
            break;
        }
        line(text, &row);
        shown = number;
    }
    if shown < last {
        let left = last - shown;
        line(text, &format!("[{left} more lines; Read with offset {}]", shown + 1));
    }
    SymbolFacts {
        path: file.shown.clone(),
        symbol: definition.path.join("::"),
        kind: definition.kind.as_str(),
        first_line: first,
        last_line: shown,
        hash: file.record_shown(files, [(first, shown)]),
        lines_cut: last - shown,
    }
}
