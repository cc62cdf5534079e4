//! `Grep`, `Glob` and `LS`

use std::path::PathBuf;
use std::sync::Arc;

use carrel_search::{
    Cancel, Case, GlobRequest, GrepRequest, ListRequest, Mode, Order, ReadFailures, Scope as Where,
    Syntax,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::failure::Failure;
use crate::named_workspace::NamedWorkspace;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, CallRules, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

/// What one answer has at most.
const MAX_OUTPUT_BYTES: usize = 100 * 1024;

/// The most files that one `Glob` returns.
const MAX_GLOB_FILES: usize = 5000;

/// The most entries that one `LS` returns.
const MAX_LISTED: usize = 5000;

/// Runs a search on a thread of its own; a caller that gives up ends it.
pub(crate) async fn searching<T: Send + 'static>(
    context: &ToolContext,
    search: impl FnOnce(&Arc<NamedWorkspace>, &Cancel) -> Result<T, carrel_search::Error>
    + Send
    + 'static,
) -> Result<T, Failure> {
    let (workspace, cancel) = (Arc::clone(context.workspace()), Cancel::new());
    let flag = cancel.clone();
    let mut work = Box::pin(blocking(move || Ok(search(&workspace, &flag)?)));
    tokio::select! {
        done = &mut work => done,
        () = context.cancel().cancelled() => {
            cancel.cancel();
            work.await
        }
    }
}

/// Returns where to search, as the caller named it.
pub(crate) fn scope_of<'a>(
    workspace: &'a NamedWorkspace,
    path: Option<&str>,
    hidden: bool,
    ignored: bool,
) -> Where<'a> {
    let path = path.map(|path| workspace.relative(path)).unwrap_or_default();
    let path = if path == std::path::Path::new(".") { PathBuf::new() } else { path };
    Where { hidden, ignored, ..Where::at(workspace.files(), path) }
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

/// Adds notes in brackets behind the text.
fn with_notes(mut text: String, notes: Vec<String>) -> String {
    for note in notes {
        line(&mut text, &format!("[{note}]"));
    }
    text
}

/// Finds text.
pub(super) struct Grep;

/// What `Grep` returns.
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
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct GrepInput {
    /// The regular expression, in Rust's syntax.
    pattern: String,
    /// The file or directory to search; the workspace if not given.
    path: Option<String>,
    /// Only files that match this glob, such as `*.rs` or `src/**`; `!` in front leaves them out.
    glob: Option<String>,
    /// More globs; the last one that matches decides.
    #[serde(default)]
    globs: Vec<String>,
    /// Only files of this type, such as `rust`, `py` or `ts`.
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// `content`, `files_with_matches` or `count`.
    #[serde(default)]
    output_mode: OutputMode,
    /// Treat upper and lower case as the same.
    #[serde(default)]
    case_insensitive: bool,
    /// The pattern stands for itself.
    #[serde(default)]
    fixed_strings: bool,
    /// Match only where no word goes on before or after.
    #[serde(default)]
    whole_word: bool,
    /// Let a match go over several lines; `.` then matches line ends too.
    #[serde(default)]
    multiline: bool,
    /// Lines to show before each match.
    #[serde(default)]
    before: usize,
    /// Lines to show after each match.
    #[serde(default)]
    after: usize,
    /// Lines to show around each match.
    context: Option<usize>,
    /// Also search names that begin with a dot.
    #[serde(default)]
    hidden: bool,
    /// Also search what `.gitignore` leaves out.
    #[serde(default)]
    ignored: bool,
    /// How many lines, or files, to return; as many as fit if 0 or not given.
    head_limit: Option<u64>,
    /// How many lines, or files, to leave out: `next_offset` of the call before.
    #[serde(default)]
    offset: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GrepFacts {
    /// How many lines match; unknown when the search ended early.
    matching_lines: Option<u64>,
    /// How many files have a match; unknown when the search ended early.
    files_with_matches: Option<u64>,
    /// How many files were searched; unknown when the search ended early.
    files_searched: Option<u64>,
    /// The files of this answer.
    files: usize,
    /// Why there is more: `limit`, `bytes` or `time`.
    cut: Option<String>,
    /// Where to go on.
    next_offset: Option<u64>,
    /// Files with a match that are no text, and not shown.
    binary_matches: u64,
    /// Files that could not be read.
    unreadable: Vec<UnreadableFact>,
}

impl Tool for Grep {
    type Input = GrepInput;
    type Facts = GrepFacts;

    const ABOUT: About = About {
        name: "Grep",
        title: "Search in files",
        class: Class::Read,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::OneOrAll,
        rules: CallRules::READ,
        description: "Searches the text of files with a regular expression, with ripgrep's engine: \
            `path:line:text`, context lines as `path-line-text`. Leaves out hidden files and what \
            .gitignore names, unless hidden or ignored is set. The order is always the same, so \
            answers can be paged with offset. Use files_with_matches for where, count for how often.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: GrepInput,
    ) -> Result<Reply<GrepFacts>, Failure> {
        if input.pattern.is_empty() {
            return Err(Failure::argument("pattern", "pattern is required"));
        }
        let request = request(&input);
        let report = searching(context, move |workspace, cancel| {
            let scope = scope_of(workspace, input.path.as_deref(), input.hidden, input.ignored);
            carrel_search::grep(&scope, &request, cancel)
        });
        let report = report.await?;
        let mut notes = Vec::new();
        if let Some(cut) = report.truncation {
            let reason = reason(cut.reason);
            notes.push(format!("cut by {reason}; continue with offset {}", cut.next_offset));
        }
        if report.binary_matches > 0 {
            notes.push(format!("{} binary files match and are not shown", report.binary_matches));
        }
        notes.extend(unreadable_note(&report.unreadable));
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
        Ok(Reply::text(with_notes(report.text(), notes), facts))
    }
}

fn reason(reason: carrel_search::TruncationReason) -> &'static str {
    match reason {
        carrel_search::TruncationReason::Limit => "limit",
        carrel_search::TruncationReason::Bytes => "bytes",
        carrel_search::TruncationReason::Time => "time",
    }
}

fn request(input: &GrepInput) -> GrepRequest {
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
        output_bytes: MAX_OUTPUT_BYTES,
        ..GrepRequest::new(&input.pattern)
    }
}

/// Finds files by name.
pub(super) struct Glob;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GlobInput {
    /// The pattern: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for directories at any depth. Without `/` it
    /// is about names at any depth.
    pattern: String,
    /// The directory to search; the workspace if not given.
    path: Option<String>,
    /// How many files to return; 100 if not given, at most 5000.
    limit: Option<usize>,
    /// Sort by path instead of the last change.
    #[serde(default)]
    sort_by_path: bool,
    /// Also find names that begin with a dot.
    #[serde(default)]
    hidden: bool,
    /// Also find what `.gitignore` leaves out.
    #[serde(default)]
    ignored: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GlobFacts {
    /// How many files match.
    total: u64,
    /// How many are in this answer.
    returned: usize,
    /// Why there are more: `limit` or `time`.
    cut: Option<String>,
    /// Directories that could not be read.
    unreadable: Vec<UnreadableFact>,
}

impl Tool for Glob {
    type Input = GlobInput;
    type Facts = GlobFacts;

    const ABOUT: About = About {
        name: "Glob",
        title: "Find files",
        class: Class::Read,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::OneOrAll,
        rules: CallRules::READ,
        description: "Finds files by their names: one path per line, relative to the workspace, the \
            last changed first. Leaves out hidden files and what .gitignore names, unless hidden or \
            ignored is set.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: GlobInput,
    ) -> Result<Reply<GlobFacts>, Failure> {
        if input.pattern.is_empty() {
            return Err(Failure::argument("pattern", "pattern is required"));
        }
        let limit = input.limit.filter(|limit| *limit > 0);
        let request = GlobRequest {
            order: if input.sort_by_path { Order::Path } else { Order::Modified },
            limit: limit.unwrap_or(carrel_search::DEFAULT_GLOB_LIMIT).min(MAX_GLOB_FILES),
            ..GlobRequest::new(&input.pattern)
        };
        let report = searching(context, move |workspace, cancel| {
            let scope = scope_of(workspace, input.path.as_deref(), input.hidden, input.ignored);
            carrel_search::glob(&scope, &request, cancel)
        });
        let report = report.await?;
        let mut notes = Vec::new();
        if let Some(cut) = report.truncation {
            let (shown, total) = (report.files.len(), report.total);
            notes.push(format!("showing {shown} of {total}, cut by {}", reason(cut)));
        }
        notes.extend(unreadable_note(&report.unreadable));
        let facts = GlobFacts {
            total: report.total,
            returned: report.files.len(),
            cut: report.truncation.map(|cut| reason(cut).to_owned()),
            unreadable: unreadable(&report.unreadable),
        };
        let text = report.text().trim_end_matches('\n').to_owned();
        Ok(Reply::text(with_notes(text, notes), facts))
    }
}

/// Lists a directory.
pub(super) struct Ls;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LsInput {
    /// The directory; the workspace if not given.
    path: Option<String>,
    /// How many levels to list; 1 if not given.
    depth: Option<usize>,
    /// How many entries to return; 1000 if not given, at most 5000.
    limit: Option<usize>,
    /// How many entries to leave out: `next_offset` of the call before.
    #[serde(default)]
    offset: u64,
    /// Leave out names that begin with a dot, and what `.gitignore` names.
    #[serde(default)]
    visible_only: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LsFacts {
    /// How many entries are in this answer.
    entries: usize,
    /// Where to go on; none if this is the end.
    next_offset: Option<u64>,
    /// Directories that could not be read.
    unreadable: Vec<UnreadableFact>,
}

impl Tool for Ls {
    type Input = LsInput;
    type Facts = LsFacts;

    const ABOUT: About = About {
        name: "LS",
        title: "List a directory",
        class: Class::Read,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::One,
        rules: CallRules::READ,
        description: "Lists what is in a directory, one path per line, relative to the workspace: \
            directories end in `/`, links show where they point. Hidden and ignored entries are \
            listed too, unless visible_only is set; `.git` and node_modules are named and not entered.",
    };

    async fn call(&self, context: &ToolContext, input: LsInput) -> Result<Reply<LsFacts>, Failure> {
        let limit = input.limit.filter(|limit| *limit > 0);
        let request = ListRequest {
            depth: input.depth.unwrap_or(1),
            offset: input.offset,
            limit: limit.unwrap_or(carrel_search::DEFAULT_LIST_LIMIT).min(MAX_LISTED),
            ..ListRequest::default()
        };
        let report = searching(context, move |workspace, cancel| {
            let all = !input.visible_only;
            let scope = scope_of(workspace, input.path.as_deref(), all, all);
            carrel_search::list(&scope, &request, cancel)
        });
        let report = report.await?;
        let mut notes = Vec::new();
        if let Some(cut) = report.truncation {
            notes.push(format!(
                "cut by {}; continue with offset {}",
                reason(cut.reason),
                cut.next_offset
            ));
        }
        notes.extend(unreadable_note(&report.unreadable));
        let facts = LsFacts {
            entries: report.entries.len(),
            next_offset: report.truncation.map(|cut| cut.next_offset),
            unreadable: unreadable(&report.unreadable),
        };
        Ok(Reply::text(with_notes(report.text(), notes), facts))
    }
}
