//! The tools `Grep`, `Glob` and `LS`.

use std::sync::Arc;

use carrel_domain::Failure;
use carrel_search::{
    Cancel, Case, FileMatches, GlobRequest, GrepReport, GrepRequest, ListRequest, Mode, Order,
    ReadFailures, Scope as SearchScope, Syntax, Truncation, TruncationReason,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::workspace_files::check_given;
use crate::blocking::blocking;
use crate::named_workspace::NamedWorkspace;
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::shown_lines::{self, ShownFile, ShownPart};
use crate::text::{line, or_words};
use crate::tool::{About, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

const MAX_GLOB_FILES: usize = 5000;

const MAX_LISTED: usize = 5000;

/// Runs a search on a blocking thread. Cancellation of the call stops it.
pub(crate) async fn run_search<T: Send + 'static>(
    context: &ToolContext,
    search: impl FnOnce(&Arc<NamedWorkspace>, &Cancel) -> Result<T, carrel_search::Error>
    + Send
    + 'static,
) -> Result<T, Failure> {
    run_cancellable(context, |workspace, cancel| Ok(search(workspace, cancel)?)).await
}

/// Does the same for work that fails in other ways too.
pub(crate) async fn run_cancellable<T: Send + 'static>(
    context: &ToolContext,
    search: impl FnOnce(&Arc<NamedWorkspace>, &Cancel) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let workspace = Arc::clone(context.workspace());
    let cancel = Cancel::new();
    let flag = cancel.clone();
    let mut work = Box::pin(blocking(move || search(&workspace, &flag)));
    tokio::select! {
        done = &mut work => done,
        () = context.cancel().cancelled() => {
            cancel.cancel();
            work.await
        }
    }
}

fn scope_of<'a>(
    workspace: &'a NamedWorkspace,
    path: Option<&str>,
    hidden: bool,
    ignored: bool,
) -> SearchScope<'a> {
    let path = workspace.relative_or_top(path);
    SearchScope { hidden, ignored, ..SearchScope::at(workspace.files(), path) }
}

/// A file that could not be read.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UnreadableFact {
    path: String,
    reason: String,
}

fn unreadable(files: &ReadFailures) -> Vec<UnreadableFact> {
    let fact = |file: &carrel_search::ReadFailure| UnreadableFact {
        path: file.path.to_string_lossy().into_owned(),
        reason: file.reason.clone(),
    };
    files.first.iter().map(fact).collect()
}

fn unreadable_note(files: &ReadFailures) -> Option<String> {
    let first = files.first.first()?;
    let path = first.path.display();
    Some(format!("{} could not be read, the first is {path}: {}", files.total, first.reason))
}

fn continue_note(cut: Option<Truncation>) -> Option<String> {
    let Truncation { reason: cut_by, next_offset } = cut?;
    Some(format!("cut by {}; continue with offset {next_offset}", reason(cut_by)))
}

fn with_notes(mut text: String, notes: impl IntoIterator<Item = Option<String>>) -> String {
    for note in notes.into_iter().flatten() {
        line(&mut text, &format!("[{note}]"));
    }
    text
}

pub(super) struct Grep;

/// The output of `Grep`.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    /// The matching lines.
    #[default]
    Content,
    /// The files that have a matching line.
    FilesWithMatches,
    /// The number of matching lines of each file.
    Count,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct GrepInput {
    /// The regular expression, in Rust's syntax.
    #[schemars(extend("x-brief" = "Rust regex"))]
    pattern: String,
    /// The file or directory to search; the workspace by default.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Only files that match this glob, such as `*.rs` or `src/**`; a leading `!` excludes them.
    #[schemars(extend("x-brief" = ""))]
    glob: Option<String>,
    /// More globs; the last one that matches decides.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    globs: Vec<String>,
    /// Only files of this type, such as `rust`, `py` or `ts`.
    #[serde(rename = "type")]
    #[schemars(extend("x-brief" = false))]
    file_type: Option<String>,
    /// `content`, `files_with_matches` or `count`.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    output_mode: OutputMode,
    /// Ignore case.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    case_insensitive: bool,
    /// The pattern is literal text.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    fixed_strings: bool,
    /// Match whole words only.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    whole_word: bool,
    /// Let a match span several lines; `.` then matches line feeds too.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    multiline: bool,
    /// Lines to show before each match.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    before: usize,
    /// Lines to show after each match.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    after: usize,
    /// Lines to show around each match.
    #[schemars(extend("x-brief" = ""))]
    context: Option<usize>,
    /// Also search names that begin with a dot.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    hidden: bool,
    /// Also search `node_modules` and files that `.gitignore` excludes.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    ignored: bool,
    /// Maximum number of lines or files; as many as fit by default.
    #[schemars(extend("x-brief" = ""))]
    head_limit: Option<u64>,
    /// Number of lines or files to skip: `next_offset` of the last call.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    offset: u64,
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GrepFacts {
    /// Number of matching lines; null if the search stopped early.
    matching_lines: Option<u64>,
    /// Number of files with a match; null if the search stopped early.
    files_with_matches: Option<u64>,
    /// Number of files searched; null if the search stopped early.
    files_searched: Option<u64>,
    files: usize,
    /// The reason for an incomplete reply: `limit`, `bytes` or `time`.
    cut: Option<String>,
    next_offset: Option<u64>,
    /// Number of binary files with a match, which are not shown.
    binary_matches: u64,
    unreadable: Vec<UnreadableFact>,
}

impl Tool for Grep {
    type Input = GrepInput;
    type Facts = GrepFacts;

    const ABOUT: About = About {
        name: "Grep",
        title: "Search in files",
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Searches files as ripgrep does: `path:line:text`. Skips hidden, gitignored \
            and node_modules unless hidden or ignored.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: GrepInput) -> ToolResult<GrepFacts> {
        check_given("pattern", &input.pattern)?;
        let request = request(&input, context.reply_limit(input.max_bytes));
        let GrepInput { pattern, path, hidden, ignored, offset, .. } = input;
        let report = run_search(context, move |workspace, cancel| {
            let scope = scope_of(workspace, path.as_deref(), hidden, ignored);
            carrel_search::grep(&scope, &request, cancel)
        });
        let report = report.await?;
        shown_lines::record(context, shown_files(&report)).await;
        let binary = (report.binary_matches > 0)
            .then(|| format!("{} binary files match and are not shown", report.binary_matches));
        let notes = [continue_note(report.truncation), binary, unreadable_note(&report.unreadable)];
        let facts = GrepFacts {
            matching_lines: report.totals.and_then(|totals| totals.matching_lines),
            files_with_matches: report.totals.map(|totals| totals.files_with_matches),
            files_searched: report.totals.map(|totals| totals.files_searched),
            files: report.files.len(),
            cut: report.truncation.map(|cut| reason(cut.reason).to_owned()),
            next_offset: report.truncation.map(|cut| cut.next_offset),
            binary_matches: report.binary_matches,
            unreadable: unreadable(&report.unreadable),
        };
        let nothing = if offset > 0 {
            format!("no more matches for {pattern} after offset {offset}")
        } else {
            format!("no matches for {pattern}")
        };
        Ok(Reply::text(with_notes(or_words(report.text(), &nothing), notes), facts))
    }
}

/// Returns the lines of a report, consecutive ones as one part. Lines that were cut are left out.
fn shown_files(report: &GrepReport) -> Vec<ShownFile> {
    let shown = |file: &FileMatches| {
        let whole = file.lines.iter().filter(|line| line.omitted_before + line.omitted_after == 0);
        let mut parts: Vec<ShownPart> = Vec::new();
        for line in whole {
            let number = usize::try_from(line.number).unwrap_or(usize::MAX);
            match parts.last_mut() {
                Some(part) if part.first + part.lines.len() == number => {
                    part.lines.push(line.text.clone());
                }
                _ => parts.push(ShownPart { first: number, lines: vec![line.text.clone()] }),
            }
        }
        ShownFile { path: file.path.clone(), parts }
    };
    report.files.iter().map(shown).collect()
}

fn reason(reason: TruncationReason) -> &'static str {
    match reason {
        TruncationReason::Limit => "limit",
        TruncationReason::Bytes => "bytes",
        TruncationReason::Time => "time",
    }
}

fn request(input: &GrepInput, output_bytes: usize) -> GrepRequest {
    let (before, after) = match input.context {
        Some(lines) => (lines, lines),
        None => (input.before, input.after),
    };
    GrepRequest {
        syntax: if input.fixed_strings { Syntax::Literal } else { Syntax::Regex },
        case: if input.case_insensitive { Case::Insensitive } else { Case::Sensitive },
        whole_word: input.whole_word,
        multiline: input.multiline,
        before,
        after,
        globs: input.glob.iter().chain(&input.globs).cloned().collect(),
        types: input.file_type.iter().cloned().collect(),
        mode: match input.output_mode {
            OutputMode::Content => Mode::Content,
            OutputMode::FilesWithMatches => Mode::FilesWithMatches,
            OutputMode::Count => Mode::Count,
        },
        offset: input.offset,
        limit: input.head_limit.filter(|limit| *limit > 0),
        output_bytes,
        ..GrepRequest::new(&input.pattern)
    }
}

pub(super) struct Glob;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GlobInput {
    /// The pattern: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for directories at any depth. Without `/` it
    /// matches names at any depth.
    #[schemars(extend("x-brief" = ""))]
    pattern: String,
    /// The directory to search; the workspace by default.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Maximum number of files; 100 by default, at most 5000.
    #[schemars(extend("x-brief" = ""))]
    limit: Option<usize>,
    /// Sort by path instead of modification time.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    sort_by_path: bool,
    /// Also find names that begin with a dot.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    hidden: bool,
    /// Also find `node_modules` and files that `.gitignore` excludes.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    ignored: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GlobFacts {
    total: u64,
    returned: usize,
    /// The reason for an incomplete reply: `limit` or `time`.
    cut: Option<String>,
    unreadable: Vec<UnreadableFact>,
}

impl Tool for Glob {
    type Input = GlobInput;
    type Facts = GlobFacts;

    const ABOUT: About = About {
        name: "Glob",
        title: "Find files",
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Finds files, newest first: `*.rs` at any depth, `src/**/*.rs`. Skips \
            hidden, gitignored and node_modules unless hidden or ignored.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: GlobInput) -> ToolResult<GlobFacts> {
        check_given("pattern", &input.pattern)?;
        let limit = input.limit.filter(|limit| *limit > 0);
        let request = GlobRequest {
            order: if input.sort_by_path { Order::Path } else { Order::Modified },
            limit: limit.unwrap_or(carrel_search::DEFAULT_GLOB_LIMIT).min(MAX_GLOB_FILES),
            ..GlobRequest::new(&input.pattern)
        };
        let GlobInput { pattern, path, hidden, ignored, .. } = input;
        let report = run_search(context, move |workspace, cancel| {
            let scope = scope_of(workspace, path.as_deref(), hidden, ignored);
            carrel_search::glob(&scope, &request, cancel)
        });
        let report = report.await?;
        let cut = report.truncation.map(|cut| {
            format!("showing {} of {}, cut by {}", report.files.len(), report.total, reason(cut))
        });
        let notes = [cut, unreadable_note(&report.unreadable)];
        let facts = GlobFacts {
            total: report.total,
            returned: report.files.len(),
            cut: report.truncation.map(|cut| reason(cut).to_owned()),
            unreadable: unreadable(&report.unreadable),
        };
        let text = report.text().trim_end_matches('\n').to_owned();
        let text = or_words(text, &format!("no files match {pattern}"));
        Ok(Reply::text(with_notes(text, notes), facts))
    }
}

pub(super) struct Ls;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct LsInput {
    /// The directory; the workspace by default.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Number of levels; 1 by default.
    #[schemars(extend("x-brief" = ""))]
    depth: Option<usize>,
    /// Maximum number of entries; 1000 by default, at most 5000.
    #[schemars(extend("x-brief" = false))]
    limit: Option<usize>,
    /// Number of entries to skip: `next_offset` of the last call.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    offset: u64,
    /// Skip names that begin with a dot, and files that `.gitignore` excludes.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    visible_only: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LsFacts {
    entries: usize,
    /// The offset for the next call; null at the end.
    next_offset: Option<u64>,
    unreadable: Vec<UnreadableFact>,
}

impl Tool for Ls {
    type Input = LsInput;
    type Facts = LsFacts;

    const ABOUT: About = About {
        name: "LS",
        title: "List a directory",
        description: "Lists a directory, hidden entries too; directories end in `/`.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: LsInput) -> ToolResult<LsFacts> {
        let limit = input.limit.filter(|limit| *limit > 0);
        let request = ListRequest {
            depth: input.depth.unwrap_or(1),
            offset: input.offset,
            limit: limit.unwrap_or(carrel_search::DEFAULT_LIST_LIMIT).min(MAX_LISTED),
            ..ListRequest::default()
        };
        let offset = input.offset;
        let report = run_search(context, move |workspace, cancel| {
            let all = !input.visible_only;
            let scope = scope_of(workspace, input.path.as_deref(), all, all);
            carrel_search::list(&scope, &request, cancel)
        });
        let report = report.await?;
        let notes = [continue_note(report.truncation), unreadable_note(&report.unreadable)];
        let facts = LsFacts {
            entries: report.entries.len(),
            next_offset: report.truncation.map(|cut| cut.next_offset),
            unreadable: unreadable(&report.unreadable),
        };
        let nothing = if offset > 0 { "no more entries" } else { "no entries" };
        Ok(Reply::text(with_notes(or_words(report.text(), nothing), notes), facts))
    }
}
