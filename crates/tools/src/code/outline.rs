//! The tool `outline`.

use std::path::Path;

use carrel_code::{Definition, IndexView};
use carrel_domain::ToolGroup;
use carrel_fsroot::FileKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::AnswerFacts;
use super::source_file::SourceFile;
use super::symbol_indexes::refresh;
use crate::files::{WorkspaceFiles, run_cancellable, show_hash, shown};
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Bytes of an outline unless the call sets a limit. More of a file is better read.
const OUTLINE_BYTES: usize = 8_000;

/// Bytes of a signature in an outline.
const MAX_SIGNATURE: usize = 110;

/// Levels of symbols that an outline tries to show.
const MAX_DEPTH: usize = 8;

pub(super) struct Outline;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// A file or directory; the workspace by default.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Also show fields and members of enumerations.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    members: bool,
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// The file or directory, relative to the workspace.
    path: String,
    #[serde(flatten)]
    answer: AnswerFacts,
    /// Symbols that are shown.
    shown: usize,
    /// Symbols that were left out, of deeper levels for example.
    left_out: usize,
    /// Of a file, for `expected_hash`.
    hash: Option<String>,
}

impl Tool for Outline {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "outline",
        title: "Outline of a file or directory",
        group: ToolGroup::Code,
        description: "Symbols of a file or directory with line ranges and signatures.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let files = WorkspaceFiles::of(context);
        let path = files.workspace.relative_or_top(input.path.as_deref());
        let limit = match input.max_bytes {
            None => OUTLINE_BYTES.min(context.reply_limit(None)),
            asked => context.reply_limit(asked),
        };
        let own = context.clone();
        let mut reply = run_cancellable(context, move |workspace, cancel| {
            let top = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
            if workspace.files().metadata(top)?.kind == FileKind::Directory {
                let fresh = refresh(&own, workspace, cancel)?;
                let answer = AnswerFacts::of_index(&fresh);
                return Ok(of_directory(&fresh.view(), &path, answer, limit));
            }
            let file = SourceFile::load(&files, &own.toolbox.symbols, &path)?;
            Ok(of_file(&files, &file, input.members, limit))
        })
        .await?;
        if let Some(hash) = reply.facts.hash.clone() {
            show_hash(context, &mut reply.content, &hash);
        }
        Ok(reply)
    }
}

fn of_file(files: &WorkspaceFiles, file: &SourceFile, members: bool, limit: usize) -> Reply<Facts> {
    let all: Vec<&Definition> = file.definitions.iter().collect();
    let listed: Vec<&Definition> =
        all.iter().copied().filter(|one| members || !one.kind.is_member()).collect();
    let header = format!("{} ({} lines)", file.shown, file.lines().len());
    let fits = |depth: &usize| {
        rows(file, &listed, *depth).map(|(_, row)| row.len() + 1).sum::<usize>() <= limit
    };
    let depth = (1..=MAX_DEPTH).rev().find(fits).unwrap_or(1);
    let mut text = header + "\n";
    let mut ranges = Vec::new();
    for (one, row) in rows(file, &listed, depth) {
        if text.len() + row.len() > limit && !ranges.is_empty() {
            break;
        }
        line(&mut text, &row);
        ranges.push((one.line, one.line));
    }
    let left_out = all.len() - ranges.len();
    let shown = ranges.len();
    if all.is_empty() {
        line(&mut text, "no symbols");
    }
    if listed.len() > shown {
        let hidden = listed.len() - shown;
        line(&mut text, &format!("[{hidden} more; max_bytes, or read_symbol for one of these]"));
    }
    let hash = file.record_shown(files, ranges);
    let (path, answer) = (file.shown.clone(), AnswerFacts::of_file());
    Reply::text(text, Facts { path, answer, shown, left_out, hash: Some(hash) })
}

/// Returns the rows of the symbols up to a level.
fn rows<'a>(
    file: &'a SourceFile,
    listed: &'a [&'a Definition],
    depth: usize,
) -> impl Iterator<Item = (&'a Definition, String)> {
    let listed = listed.iter().filter(move |one| one.depth < depth);
    listed.map(|one| {
        let (first, last) = one.lines;
        let indent = "  ".repeat(one.depth);
        let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
        (*one, format!("{indent}{range} {}", cut(&file.signature(one), MAX_SIGNATURE)))
    })
}

pub(super) fn cut(text: &str, limit: usize) -> String {
    match text.len() > limit {
        true => format!("{}…", text[..text.floor_char_boundary(limit)].trim_end()),
        false => text.to_owned(),
    }
}

/// Shows the top-level symbols of each file, or only how many each has where there are too many.
fn of_directory(
    view: &IndexView<'_>,
    below: &Path,
    answer: AnswerFacts,
    limit: usize,
) -> Reply<Facts> {
    let files = view.files(below);
    let named = |path: &Path| {
        let top = view.of_file(path).unwrap_or_default();
        let top = top.iter().filter(|one| one.depth == 0 && one.language.is_program());
        top.map(|one| format!("{}:{}", one.path.join("::"), one.line)).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    let mut bytes = 0;
    for (path, count) in &files {
        let names = if bytes <= limit { named(path) } else { Vec::new() };
        let row = format!("{}: {}", shown(path), names.join(" "));
        bytes += row.len() + 1;
        rows.push((row, names.len(), *count));
    }
    let is_short = bytes <= limit;
    let mut text = String::new();
    let (mut shown_symbols, mut total, mut shown_files) = (0, 0, 0);
    for ((path, _), (row, names, count)) in files.iter().zip(&rows) {
        total += count;
        let row = if is_short { row.clone() } else { format!("{} {count}", shown(path)) };
        if text.len() + row.len() < limit {
            line(&mut text, row.trim_end_matches([':', ' ']));
            shown_symbols += if is_short { *names } else { 0 };
            shown_files += 1;
        }
    }
    if files.is_empty() {
        line(&mut text, "no files with symbols");
    }
    if !is_short {
        line(&mut text, "[number of symbols in each file; name a smaller directory or a file]");
    }
    if shown_files < files.len() {
        line(&mut text, &format!("[{} more files]", files.len() - shown_files));
    }
    answer.note().iter().for_each(|note| line(&mut text, note));
    let path = if below.as_os_str().is_empty() { ".".into() } else { shown(below) };
    let left_out = total - shown_symbols;
    Reply::text(text, Facts { path, answer, shown: shown_symbols, left_out, hash: None })
}
