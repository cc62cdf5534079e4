//! The tool `find_references`.

use carrel_code::FileUses;
use carrel_domain::ToolGroup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::AnswerFacts;
use super::find_definition::MAX_SOURCE_LINE;
use super::outline::cut;
use super::source_file::SourceFile;
use super::symbol_indexes::refresh;
use super::target::{Target, TargetInput};
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
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(flatten)]
    answer: AnswerFacts,
    /// The name that was looked for.
    name: String,
    /// Lines that use the name, definitions included.
    total: usize,
    files: usize,
    /// Lines that are shown.
    shown: usize,
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
        let files = WorkspaceFiles::of(context);
        let own = context.clone();
        let limit = match input.max_bytes {
            None => REFERENCES_BYTES.min(context.reply_limit(None)),
            asked => context.reply_limit(asked),
        };
        run_cancellable(context, move |workspace, cancel| {
            let fresh = refresh(&own, workspace, cancel)?;
            let target = Target::of(&own, &files, &input.target)?;
            let uses = fresh.view().uses(&target.name);
            let definitions = match target.definitions(&fresh.view()) {
                // It is defined elsewhere, as the names of libraries are.
                Err(_) if !uses.is_empty() => Vec::new(),
                // An unknown name is an error that suggests others, and not an empty answer.
                found => found?,
            };
            let answer = AnswerFacts::of_index(&fresh);
            let total: usize = uses.iter().map(|file| file.lines.len()).sum();
            let mut text = match total {
                0 => format!("no references found at {}", target.label),
                _ => format!("Found {total} reference(s) for {}:", target.label),
            };
            let mut shown_lines = 0;
            let mut rest = Vec::new();
            for file in &uses {
                if text.len() >= limit {
                    rest.push(file);
                    continue;
                }
                let loaded = SourceFile::load(&files, &own.toolbox.symbols, &file.file)?;
                shown_lines += show(&files, &loaded, file, limit, &mut text);
            }
            count_rest(&rest, &mut text);
            if definitions.len() > 1 {
                let count = definitions.len();
                line(&mut text, &format!("[by name: {count} definitions share it]"));
            }
            answer.note().iter().for_each(|note| line(&mut text, note));
            let (name, files, shown) = (target.name, uses.len(), shown_lines);
            Ok(Reply::text(text, Facts { answer, name, total, files, shown }))
        })
        .await
    }
}

/// Appends the lines of a file, and returns how many were shown.
fn show(
    files: &WorkspaceFiles,
    loaded: &SourceFile,
    uses: &FileUses,
    limit: usize,
    text: &mut String,
) -> usize {
    let lines = loaded.lines();
    line(text, &shown(&uses.file));
    let mut ranges = Vec::new();
    for one in &uses.lines {
        let source = lines.get(one.line - 1).copied().unwrap_or_default();
        let symbol = one.symbol.join("::");
        let symbol = if one.is_definition || symbol.is_empty() {
            symbol_mark(one.is_definition)
        } else {
            &symbol
        };
        let row = format!("  {} {symbol}: {}", one.line, cut(source.trim(), MAX_SOURCE_LINE));
        if text.len() + row.len() > limit && !ranges.is_empty() {
            line(text, &format!("  [{} more lines]", uses.lines.len() - ranges.len()));
            break;
        }
        line(text, &row);
        ranges.push((one.line, one.line));
    }
    let shown = ranges.len();
    loaded.record_shown(files, ranges);
    shown
}

/// Returns the words in place of the symbol around a line.
fn symbol_mark(is_definition: bool) -> &'static str {
    if is_definition { "(definition)" } else { "(top level)" }
}

fn count_rest(rest: &[&FileUses], text: &mut String) {
    for file in rest.iter().take(MAX_COUNTED_FILES) {
        line(text, &format!("{}: {} lines", shown(&file.file), file.lines.len()));
    }
    if rest.len() > MAX_COUNTED_FILES {
        line(text, &format!("[{} more files]", rest.len() - MAX_COUNTED_FILES));
    }
    if !rest.is_empty() {
        line(text, "[cut; max_bytes shows more]");
    }
}
