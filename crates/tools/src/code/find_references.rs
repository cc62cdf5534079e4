//! The tool `find_references`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use carrel_code::FileUses;
use carrel_domain::{Failure, ToolGroup};
use carrel_lsp::{Answer, Call, CallDirection, Location, Locations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{AnswerFacts, GoneFiles};
use super::find_definition::{MAX_SOURCE_LINE, prepare};
use super::outline::cut;
use super::question::{Question, TargetInput};
use super::semantics::{Reason, Semantics, ask, knows, require};
use super::source_file::SourceFile;
use super::symbol_indexes::refresh;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Bytes of a list of references unless the call sets a limit.
const REFERENCES_BYTES: usize = 12_000;

/// The files beyond the limit that are named with their numbers of lines.
const MAX_COUNTED_FILES: usize = 50;

pub(super) struct FindReferences;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    #[serde(flatten)]
    target: TargetInput,
    /// Instead of all uses: the functions that call it (`callers`), or the ones that it calls (`callees`).
    #[schemars(extend("x-brief" = false))]
    calls: Option<Calls>,
    /// Do not ask a language server.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    by_name: bool,
    max_bytes: Option<MaxBytes>,
}

/// A direction of calls.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Calls {
    /// The functions that call it.
    Callers,
    /// The functions that it calls.
    Callees,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(flatten)]
    answer: AnswerFacts,
    /// The name that was looked for.
    name: String,
    /// Lines that use the symbol, definitions included.
    total: usize,
    files: usize,
    /// Lines that are shown.
    shown: usize,
    /// Places outside of the workspace.
    outside: usize,
    /// Further lines that have the name and no reference to the symbol, as far as a language server knows.
    same_name: Option<usize>,
}

impl Tool for FindReferences {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "find_references",
        title: "Find references",
        group: ToolGroup::Code,
        description: "Every use of a symbol, by file with the function around it; comments and \
            strings do not count.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let limit = match input.max_bytes {
            None => REFERENCES_BYTES.min(context.reply_limit(None)),
            asked => context.reply_limit(asked),
        };
        let (question, by_name) = prepare(context, input.target).await?;
        if let Some(calls) = input.calls {
            return calls_of(context, question, calls, limit).await;
        }
        let asked = question.place.clone().filter(|place| !input.by_name && knows(&place.path));
        let Some(place) = asked else {
            let reason = several(&question);
            return show_by_name(context, question, by_name.without_server(reason), limit).await;
        };
        let found =
            ask(context, async |servers, query| servers.references(query, &place, true).await);
        match found.await {
            Semantics::Answered(found) => show_answer(context, question, &found, limit).await,
            Semantics::Unanswered(reason) => {
                show_by_name(context, question, by_name.without_server(Some(reason)), limit).await
            }
        }
    }
}

/// Returns the reason for which no server is asked about a name of several definitions.
fn several(question: &Question) -> Option<Reason> {
    let count = question.definitions.len();
    let words = || format!("{count} definitions share it; name file_path and line of one");
    (count > 1).then(|| Reason::new(words()))
}

/// The lines of each file that use a symbol.
type Uses = BTreeMap<PathBuf, Vec<usize>>;

async fn show_by_name(
    context: &ToolContext,
    question: Question,
    answer: AnswerFacts,
    limit: usize,
) -> ToolResult<Facts> {
    let name = question.name.clone();
    let (uses, now) = uses_by_name(context, name).await?;
    show(context, question, (answer.with_index(now), uses, None), limit).await
}

/// Returns the uses of a name, and the facts of the index that has them.
async fn uses_by_name(context: &ToolContext, name: String) -> Result<(Uses, AnswerFacts), Failure> {
    let own = context.clone();
    run_cancellable(context, move |workspace, cancel| {
        let fresh = refresh(&own, workspace, cancel)?;
        let lines = |file: FileUses| {
            (file.file, file.lines.into_iter().map(|one| one.line).collect::<Vec<_>>())
        };
        let uses = fresh.view().uses(&name).into_iter().map(lines).collect();
        Ok((uses, AnswerFacts::of_index(&fresh)))
    })
    .await
}

async fn show_answer(
    context: &ToolContext,
    question: Question,
    answer: &Answer<Locations>,
    limit: usize,
) -> ToolResult<Facts> {
    let facts = AnswerFacts::of_server(answer);
    let mut uses = Uses::new();
    let mut outside = 0;
    for location in &answer.value.list {
        match location {
            Location::Inside { path, range } => {
                uses.entry(path.clone()).or_default().push(range.start.line);
            }
            Location::Outside { .. } => outside += 1,
        }
    }
    uses.values_mut().for_each(std::vec::Vec::dedup);
    let (by_name, now) = uses_by_name(context, question.name.clone()).await?;
    let count = |uses: &Uses| uses.values().map(Vec::len).sum::<usize>();
    let same_name = count(&by_name).saturating_sub(count(&uses));
    if let (1.., Some(missing)) = (same_name, &answer.incomplete) {
        // What a server that knows a part of the project leaves out may be what is asked for.
        let (server, known) = (answer.server, count(&uses));
        let reason = format!("{server} knows {known} of these lines");
        let part = format!("{server} knows a part of the project: {missing}");
        let facts = now.without_server(Some(Reason::new(reason))).but(&part);
        return show(context, question, (facts, by_name, None), limit).await;
    }
    show(context, question, (facts, uses, Some((outside, same_name))), limit).await
}

async fn show(
    context: &ToolContext,
    question: Question,
    (answer, uses, beside): (AnswerFacts, Uses, Option<(usize, usize)>),
    limit: usize,
) -> ToolResult<Facts> {
    let files = WorkspaceFiles::of(context);
    let own = context.clone();
    run_cancellable(context, move |_, _| {
        let total: usize = uses.values().map(Vec::len).sum();
        let mut text = match total {
            0 => format!("no references found at {}", question.short_label()),
            _ => format!("Found {total} reference(s) for {}:", question.label),
        };
        let mut shown_lines = 0;
        let mut rest = Vec::new();
        let mut gone = GoneFiles::default();
        for (path, lines) in &uses {
            if text.len() >= limit {
                rest.push((path, lines.len()));
                continue;
            }
            // A file may vanish between its indexing and its reading.
            let Ok(file) = SourceFile::load(&files, &own.toolbox.symbols, path) else {
                gone.add(path);
                continue;
            };
            shown_lines += show_file(&files, (&file, &question.name), lines, limit, &mut text);
        }
        count_rest(&rest, &mut text);
        let (outside, same_name) = beside.unwrap_or_default();
        if outside > 0 {
            line(&mut text, &format!("[{outside} more outside of the workspace]"));
        }
        if same_name > 0 {
            let note = format!(
                "[{same_name} more lines have the name and mean something else, or cannot be told]"
            );
            line(&mut text, &note);
        }
        let answer = gone.told(answer);
        answer.notes().for_each(|note| line(&mut text, &note));
        let facts = Facts {
            answer,
            name: question.name,
            total,
            files: uses.len(),
            shown: shown_lines,
            outside,
            same_name: beside.map(|(_, same_name)| same_name),
        };
        Ok(Reply::text(text, facts))
    })
    .await
}

/// Appends the lines of a file, and returns how many were shown.
fn show_file(
    files: &WorkspaceFiles,
    (file, name): (&SourceFile, &str),
    uses: &[usize],
    limit: usize,
    text: &mut String,
) -> usize {
    let lines = file.lines();
    line(text, &file.shown);
    let mut ranges = Vec::new();
    for at in uses {
        let source = lines.get(at - 1).copied().unwrap_or_default();
        let symbol =
            if file.defines(name, *at) { "(definition)".into() } else { file.enclosing(*at) };
        let symbol = if symbol.is_empty() { "(top level)".into() } else { symbol };
        let row = format!("  {at} {symbol}: {}", cut(source.trim(), MAX_SOURCE_LINE));
        if text.len() + row.len() > limit && !ranges.is_empty() {
            line(text, &format!("  [{} more lines]", uses.len() - ranges.len()));
            break;
        }
        line(text, &row);
        ranges.push((*at, *at));
    }
    let shown = ranges.len();
    file.record_shown(files, ranges);
    shown
}

fn count_rest(rest: &[(&PathBuf, usize)], text: &mut String) {
    for (path, lines) in rest.iter().take(MAX_COUNTED_FILES) {
        line(text, &format!("{}: {lines} lines", shown(path)));
    }
    if rest.len() > MAX_COUNTED_FILES {
        line(text, &format!("[{} more files]", rest.len() - MAX_COUNTED_FILES));
    }
    if !rest.is_empty() {
        line(text, "[cut; max_bytes shows more]");
    }
}

/// Answers with the functions that call a function, or that it calls.
async fn calls_of(
    context: &ToolContext,
    question: Question,
    calls: Calls,
    limit: usize,
) -> ToolResult<Facts> {
    let place = question.only_place()?;
    let direction = match calls {
        Calls::Callers => CallDirection::Incoming,
        Calls::Callees => CallDirection::Outgoing,
    };
    let found =
        require(context, async |servers, query| servers.calls(query, &place, direction).await);
    let found = found.await.map_err(|failure| Failure {
        message: format!("{}; without `calls` every use is found by name", failure.message),
        ..failure
    })?;
    let word = match calls {
        Calls::Callers => "caller",
        Calls::Callees => "callee",
    };
    let total = found.value.len();
    let mut text = match total {
        0 => format!("no {word}s found of {}", question.short_label()),
        _ => format!("Found {total} {word}(s) of {}:", question.label),
    };
    let mut shown = 0;
    for call in &found.value {
        if text.len() >= limit {
            break;
        }
        line(&mut text, &format!("  {}", call_row(call)));
        shown += 1;
    }
    if total > shown {
        line(&mut text, &format!("[{} more; max_bytes shows more]", total - shown));
    }
    let answer = AnswerFacts::of_server(&found);
    answer.notes().for_each(|note| line(&mut text, &note));
    let name = question.name;
    Ok(Reply::text(
        text,
        Facts { answer, name, total, files: 0, shown, outside: 0, same_name: None },
    ))
}

fn call_row(call: &Call) -> String {
    let lines: Vec<_> = call.sites.iter().map(|site| site.start.line.to_string()).collect();
    let sites = if lines.is_empty() { String::new() } else { format!(" at {}", lines.join(", ")) };
    match &call.location {
        Location::Inside { path, range } => {
            format!("{}:{} {}{sites}", shown(path), range.start.line, call.name)
        }
        Location::Outside { path, line } => {
            format!("{}:{line} {}{sites} (outside of the workspace)", path.display(), call.name)
        }
    }
}
