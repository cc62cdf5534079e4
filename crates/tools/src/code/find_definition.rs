//! The tools `find_definition` and `find_implementations`.

use std::path::{Path, PathBuf};

use carrel_code::Definition;
use carrel_domain::{Failure, ToolGroup};
use carrel_lsp::{Answer, Location, Locations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{AnswerFacts, GoneFiles};
use super::outline::cut;
use super::question::{Question, TargetInput, column_of};
use super::semantics::{Semantics, ask, knows};
use super::source_file::SourceText;
use super::symbol_indexes::refresh;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// The definitions of a name that a reply shows.
const MAX_SHOWN: usize = 20;

/// Bytes of a source line in a reply.
pub(super) const MAX_SOURCE_LINE: usize = 160;

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
    /// None in files outside of the workspace.
    column: Option<usize>,
    /// The names from the outermost symbol to this one.
    symbol: String,
}

pub(super) struct FindDefinition;

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
        let is_place = input.target.is_place();
        let (question, by_name) = prepare(context, input.target).await?;
        // The name path of a definition says all that a server knows about it.
        let asked = question.place.clone().filter(|place| is_place && knows(&place.path));
        let (answer, found) = match asked {
            None => (by_name, Found::of_definitions(&question.definitions)),
            Some(place) => {
                match ask(context, async |servers, query| servers.definition(query, &place).await)
                    .await
                {
                    Semantics::Answered(found) => {
                        (AnswerFacts::of_server(&found), Found::of_answer(&found))
                    }
                    Semantics::Unanswered(reason) => {
                        let found = Found::of_definitions(&question.definitions);
                        (by_name.without_server(Some(reason)), found)
                    }
                }
            }
        };
        show(context, question, (answer, found), "definition").await
    }
}

pub(super) struct FindImplementations;

impl Tool for FindImplementations {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "find_implementations",
        title: "Find implementations",
        group: ToolGroup::Code,
        in_default_set: false,
        description: "What implements an interface, trait or abstract method, by a language \
            server.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let (question, _) = prepare(context, input.target).await?;
        let place = question.only_place()?;
        let found = super::semantics::require(context, async |servers, query| {
            servers.implementations(query, &place).await
        })
        .await?;
        let outcome = (AnswerFacts::of_server(&found), Found::of_answer(&found));
        show(context, question, outcome, "implementation").await
    }
}

/// Finds the symbol of a question in the index.
pub(super) async fn prepare(
    context: &ToolContext,
    input: TargetInput,
) -> Result<(Question, AnswerFacts), Failure> {
    let files = WorkspaceFiles::of(context);
    let own = context.clone();
    run_cancellable(context, move |workspace, cancel| {
        let fresh = refresh(&own, workspace, cancel)?;
        let question = Question::of(&own, &files, &input, &fresh)?;
        Ok((question, AnswerFacts::of_index(&fresh)))
    })
    .await
}

/// A place that was found.
enum Found {
    Inside { path: PathBuf, line: usize, column: Option<usize> },
    Outside { path: PathBuf, line: usize },
}

impl Found {
    fn path(&self) -> &Path {
        match self {
            Self::Inside { path, .. } | Self::Outside { path, .. } => path,
        }
    }

    fn of_definitions(definitions: &[Definition]) -> Vec<Self> {
        let inside = |one: &Definition| Self::Inside {
            path: one.file.clone(),
            line: one.line,
            column: None,
        };
        definitions.iter().map(inside).collect()
    }

    fn of_answer(answer: &Answer<Locations>) -> Vec<Self> {
        let found = |location: &Location| match location {
            Location::Inside { path, range } => {
                let (line, column) = (range.start.line, Some(range.start.char_column));
                Self::Inside { path: path.clone(), line, column }
            }
            Location::Outside { path, line } => Self::Outside { path: path.clone(), line: *line },
        };
        answer.value.list.iter().map(found).collect()
    }
}

async fn show(
    context: &ToolContext,
    question: Question,
    (answer, found): (AnswerFacts, Vec<Found>),
    what: &'static str,
) -> ToolResult<Facts> {
    let files = WorkspaceFiles::of(context);
    let own = context.clone();
    run_cancellable(context, move |_, _| {
        let (label, total) = (&question.label, found.len());
        let mut text = match total {
            0 => format!("no {what} found at {}", question.short_label()),
            _ => format!("Found {total} {what}(s) for {label}:"),
        };
        let mut definitions = Vec::new();
        let mut gone = GoneFiles::default();
        for (number, one) in found.iter().take(MAX_SHOWN).enumerate() {
            // A file may vanish between its indexing and its reading.
            let Ok(place) = place(&own, &files, one, &question.name) else {
                gone.add(one.path());
                continue;
            };
            line(&mut text, &format!("  {}. {}", number + 1, place.1));
            definitions.push(place.0);
        }
        if total > MAX_SHOWN {
            line(&mut text, &format!("[{} more; name file_path]", total - MAX_SHOWN));
        }
        let answer = gone.told(answer);
        answer.notes().for_each(|note| line(&mut text, &note));
        Ok(Reply::text(text, Facts { answer, name: question.name, total, definitions }))
    })
    .await
}

/// Returns a place and its row. The line is shown if the file is in the workspace, and counts as read.
fn place(
    context: &ToolContext,
    files: &WorkspaceFiles,
    found: &Found,
    name: &str,
) -> Result<(Place, String), Failure> {
    let (path, at, column) = match found {
        Found::Inside { path, line, column } => (path, *line, *column),
        Found::Outside { path, line } => {
            let path = path.display().to_string();
            let row = format!("{path}:{line}  (outside of the workspace)");
            return Ok((Place { path, line: *line, column: None, symbol: String::new() }, row));
        }
    };
    let file = SourceText::load(files, path)?;
    let symbol = file.enclosing(files, &context.toolbox.symbols, at)?;
    let source = file.line(at).unwrap_or_default();
    let column = column.unwrap_or_else(|| column_of(source, name));
    file.record_shown(files, [(at, at)]);
    let path = shown(path);
    let row = format!("{path}:{at}:{column}  {}", cut(source.trim(), MAX_SOURCE_LINE));
    Ok((Place { path, line: at, column: Some(column), symbol }, row))
}
