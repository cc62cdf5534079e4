//! The tool `outline`.

use std::fmt::Write as _;
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

/// Files with syntax errors that the text of a reply names, and its facts.
const MAX_NAMED: usize = 3;
const MAX_WITH_ERRORS: usize = 100;

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
    /// Files with a part that was not understood, so that symbols of it may be missing.
    with_errors: Vec<String>,
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
    let is_listed = |one: &&Definition| members || !one.kind.is_member();
    let listed: Vec<&Definition> = file.definitions.iter().filter(is_listed).collect();
    let mut text = format!("{} ({} lines)\n", file.shown, file.lines().len());
    let fits = |rows: &Vec<Row>| {
        let bytes: usize = rows.iter().map(|row| row.text.len() + 1).sum();
        bytes + text.len() <= limit
    };
    let fitting = Some(rows(file, &listed)).filter(fits);
    let fitting = fitting.or_else(|| Some(brief_rows(file, &listed)).filter(fits));
    let mut ranges = Vec::new();
    for row in fitting.unwrap_or_else(|| top_rows(file, &listed)) {
        if text.len() + row.text.len() > limit && !ranges.is_empty() {
            break;
        }
        line(&mut text, &row.text);
        ranges.extend(row.lines.into_iter().map(|line| (line, line)));
    }
    let shown = ranges.len();
    if file.definitions.is_empty() {
        line(&mut text, "no symbols");
    }
    if listed.len() > shown {
        let hidden = listed.len() - shown;
        line(&mut text, &format!("[{hidden} more; max_bytes, or read_symbol for one of these]"));
    }
    if file.has_error {
        line(&mut text, "[syntax errors: symbols may be missing]");
    }
    let left_out = file.definitions.len() - shown;
    let hash = Some(file.record_shown(files, ranges));
    let (path, answer) = (file.shown.clone(), AnswerFacts::of_file());
    let with_errors = file.has_error.then(|| file.shown.clone()).into_iter().collect();
    Reply::text(text, Facts { path, answer, shown, left_out, with_errors, hash })
}

/// A row of an outline, and the lines of the names in it.
struct Row {
    text: String,
    lines: Vec<usize>,
}

/// Returns a row with the signature for each symbol.
fn rows(file: &SourceFile, listed: &[&Definition]) -> Vec<Row> {
    listed.iter().map(|one| signature_row(file, one)).collect()
}

fn signature_row(file: &SourceFile, one: &Definition) -> Row {
    let (first, last) = one.lines;
    let indent = "  ".repeat(one.depth);
    let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
    let text = format!("{indent}{range} {}", cut(&file.signature(one), MAX_SIGNATURE));
    Row { text, lines: vec![one.line] }
}

/// Returns a row for each symbol of the top level, and one for all names inside of it.
fn brief_rows(file: &SourceFile, listed: &[&Definition]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut is_inside = false;
    for one in listed {
        if one.depth == 0 {
            rows.push(signature_row(file, one));
            is_inside = false;
            continue;
        }
        if !is_inside {
            rows.push(Row { text: " ".into(), lines: Vec::new() });
            is_inside = true;
        }
        if let Some(row) = rows.last_mut() {
            let name = one.path.last().map_or("", String::as_str);
            write!(row.text, " {name}:{}", one.line).expect("writing to a string cannot fail");
            row.lines.push(one.line);
        }
    }
    rows
}

/// Returns a row for each symbol of the top level.
fn top_rows(file: &SourceFile, listed: &[&Definition]) -> Vec<Row> {
    listed.iter().filter(|one| one.depth == 0).map(|one| signature_row(file, one)).collect()
}

pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.len() > limit {
        format!("{}…", text[..text.floor_char_boundary(limit)].trim_end())
    } else {
        text.to_owned()
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
    let top_symbols = |path: &Path| {
        let top = view.of_file(path).unwrap_or_default();
        let top = top.iter().filter(|one| one.depth == 0 && one.language.is_program());
        top.map(|one| format!("{}:{}", one.path.join("::"), one.line)).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    let mut bytes = 0;
    for (path, count) in &files {
        let symbols = if bytes <= limit { top_symbols(path) } else { Vec::new() };
        let row = format!("{}: {}", shown(path), symbols.join(" "));
        bytes += row.len() + 1;
        rows.push((row, symbols.len(), *count));
    }
    let is_short = bytes <= limit;
    let mut text = String::new();
    let (mut shown_symbols, mut total, mut shown_files) = (0, 0, 0);
    for ((path, _), (row, symbols, count)) in files.iter().zip(&rows) {
        total += count;
        let row = if is_short { row.clone() } else { format!("{} {count}", shown(path)) };
        if text.len() + row.len() < limit {
            line(&mut text, row.trim_end_matches([':', ' ']));
            shown_symbols += if is_short { *symbols } else { 0 };
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
    let with_errors: Vec<_> = view.with_errors(below).iter().map(|path| shown(path)).collect();
    if !with_errors.is_empty() {
        line(&mut text, &errors_note(&with_errors));
    }
    let with_errors = with_errors.into_iter().take(MAX_WITH_ERRORS).collect();
    answer.notes().for_each(|note| line(&mut text, &note));
    let path = if below.as_os_str().is_empty() { ".".into() } else { shown(below) };
    let left_out = total - shown_symbols;
    Reply::text(
        text,
        Facts { path, answer, shown: shown_symbols, left_out, with_errors, hash: None },
    )
}

/// Says which files have a part that was not understood.
fn errors_note(files: &[String]) -> String {
    let named = files.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let rest = files.len().checked_sub(MAX_NAMED).filter(|rest| *rest > 0);
    let rest = rest.map_or(String::new(), |rest| format!(" and {rest} more"));
    format!("[syntax errors, symbols may be missing: {named}{rest}]")
}
