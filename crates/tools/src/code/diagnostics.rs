//! The tool `diagnostics`.

use std::path::PathBuf;

use carrel_domain::{Failure, ToolGroup};
use carrel_fsroot::FileKind;
use carrel_lsp::{Answer, Diagnostic, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::AnswerFacts;
use super::outline::cut;
use super::semantics::{knows, require};
use super::symbol_indexes::refresh;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Files of a directory that are asked about.
const MAX_FILES: usize = 50;

/// Problems that a reply shows.
const MAX_SHOWN: usize = 100;

/// Bytes of a message.
const MAX_MESSAGE: usize = 300;

pub(super) struct Diagnostics;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// A file or directory; the workspace by default.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// Of the last file.
    answer: Option<AnswerFacts>,
    files: usize,
    problems: Vec<Problem>,
    total: usize,
}

/// A problem in a file.
#[derive(Debug, Serialize, JsonSchema)]
struct Problem {
    path: String,
    line: usize,
    column: usize,
    severity: &'static str,
    code: String,
    message: String,
}

impl Tool for Diagnostics {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "diagnostics",
        title: "Problems of files",
        group: ToolGroup::Code,
        in_default_set: false,
        description: "Errors and warnings of a file or directory, by a language server, without a \
            build.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let (paths, left_out) = files_of(context, input.path).await?;
        let mut problems = Vec::new();
        let mut last = None;
        for path in &paths {
            let found =
                require(context, async |servers, query| servers.diagnostics(query, path).await);
            let found = found.await?;
            let telling = found.value.iter().filter(|one| one.severity != Severity::Hint);
            problems.extend(telling.map(|one| Problem::of(shown(path), one)));
            last = Some(AnswerFacts::of_server::<Vec<Diagnostic>>(&Answer {
                value: Vec::new(),
                ..found
            }));
        }
        let total = problems.len();
        let mut text = match total {
            0 => format!("no problems in {} file(s)", paths.len()),
            _ => format!("{total} problem(s) in {} file(s):", paths.len()),
        };
        problems.truncate(MAX_SHOWN);
        for problem in &problems {
            line(&mut text, &problem.row());
        }
        if total > MAX_SHOWN {
            line(&mut text, &format!("[{} more; name a file]", total - MAX_SHOWN));
        }
        if left_out > 0 {
            line(
                &mut text,
                &format!("[{left_out} more files were not asked about; name a directory]"),
            );
        }
        last.iter().flat_map(AnswerFacts::notes).for_each(|note| line(&mut text, &note));
        Ok(Reply::text(text, Facts { answer: last, files: paths.len(), problems, total }))
    }
}

/// Returns the files to ask about, and the number of those beyond the limit.
async fn files_of(
    context: &ToolContext,
    path: Option<String>,
) -> Result<(Vec<PathBuf>, usize), Failure> {
    let files = WorkspaceFiles::of(context);
    let below = files.workspace.relative_or_top(path.as_deref());
    let own = context.clone();
    run_cancellable(context, move |workspace, cancel| {
        let top = if below.as_os_str().is_empty() { ".".into() } else { below.clone() };
        if workspace.files().metadata(&top)?.kind != FileKind::Directory {
            return Ok((vec![below], 0));
        }
        let fresh = refresh(&own, workspace, cancel)?;
        let mut paths: Vec<_> =
            fresh.view().files(&below).into_iter().map(|(path, _)| path).collect();
        paths.retain(|path| knows(path));
        let left_out = paths.len().saturating_sub(MAX_FILES);
        paths.truncate(MAX_FILES);
        Ok((paths, left_out))
    })
    .await
}

impl Problem {
    fn of(path: String, diagnostic: &Diagnostic) -> Self {
        let start = diagnostic.range.start;
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Information => "information",
            Severity::Hint => "hint",
        };
        Self {
            path,
            line: start.line,
            column: start.char_column,
            severity,
            code: diagnostic.code.clone(),
            message: cut(&diagnostic.message, MAX_MESSAGE),
        }
    }

    fn row(&self) -> String {
        let Self { path, line, column, severity, code, message } = self;
        let code = if code.is_empty() { String::new() } else { format!(" [{code}]") };
        format!("{path}:{line}:{column} {severity}{code}: {}", message.replace('\n', " "))
    }
}
