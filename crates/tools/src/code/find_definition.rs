//! The tool `find_definition`.

use carrel_domain::ToolGroup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::AnswerFacts;
use super::outline::cut;
use super::source_file::SourceFile;
use super::symbol_indexes::refresh;
use super::target::{Target, TargetInput, column_of};
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// The definitions of a name that a reply shows.
const MAX_SHOWN: usize = 20;

/// Bytes of a source line in a reply.
pub(super) const MAX_SOURCE_LINE: usize = 160;

pub(super) struct FindDefinition;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    #[serde(flatten)]
    target: TargetInput,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(flatten)]
    answer: AnswerFacts,
    /// The name that was looked for.
    name: String,
    total: usize,
    definitions: Vec<Place>,
}

/// The place of a definition.
#[derive(Debug, Serialize, JsonSchema)]
struct Place {
    path: String,
    line: usize,
    column: usize,
    /// The names from the outermost symbol to this one.
    symbol: String,
    kind: &'static str,
}

impl Tool for FindDefinition {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "find_definition",
        title: "Find definitions",
        group: ToolGroup::Code,
        in_default_set: false,
        description: "Where a symbol is defined, by name or by the place of a use.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let files = WorkspaceFiles::of(context);
        let own = context.clone();
        run_cancellable(context, move |workspace, cancel| {
            let fresh = refresh(&own, workspace, cancel)?;
            let target = Target::of(&own, &files, &input.target)?;
            let found = target.definitions(&fresh.view())?;
            let answer = AnswerFacts::of_index(&fresh);
            let (label, total) = (&target.label, found.len());
            let mut text = match total {
                0 => format!("no definition found at {}", label.trim_start_matches("symbol at ")),
                _ => format!("Found {total} definition(s) for {label}:"),
            };
            let mut definitions = Vec::new();
            for (number, one) in found.iter().take(MAX_SHOWN).enumerate() {
                let file = SourceFile::load(&files, &own.toolbox.symbols, &one.file)?;
                let source = file.lines().get(one.line - 1).copied().unwrap_or_default().to_owned();
                let column = column_of(&source, one.path.last().map_or("", String::as_str));
                let (path, at) = (shown(&one.file), one.line);
                let trimmed = cut(source.trim(), MAX_SOURCE_LINE);
                line(&mut text, &format!("  {}. {path}:{at}:{column}  {trimmed}", number + 1));
                file.record_shown(&files, [(at, at)]);
                let (symbol, kind) = (one.path.join("::"), one.kind.as_str());
                definitions.push(Place { path, line: at, column, symbol, kind });
            }
            if total > MAX_SHOWN {
                line(&mut text, &format!("[{} more; name file_path]", total - MAX_SHOWN));
            }
            answer.note().iter().for_each(|note| line(&mut text, note));
            Ok(Reply::text(text, Facts { answer, name: target.name, total, definitions }))
        })
        .await
    }
}
