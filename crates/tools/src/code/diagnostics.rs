//! The tool `diagnostics`.
//!
//! Files are asked about one after the other, each language by its server, until the time is over. A language whose
//! server gives no answer takes nothing from the others: its Rust and Go files are checked by their compiler, and what
//! is without an answer then is named with the reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrel_code::Language;
use carrel_domain::{Code, Failure, ToolGroup};
use carrel_fsroot::FileKind;
use carrel_lsp::{Answer, Diagnostic, Severity};
use carrel_verify::parse::{Finding, Severity as FindingSeverity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::answer::AnswerFacts;
use super::outline::cut;
use super::semantics::{knows, require};
use super::symbol_indexes::refresh;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;
use crate::verify::compiler_check::{CheckedFiles, check_now};

/// Files of a directory that are asked about.
const MAX_FILES: usize = 50;

/// Problems that a reply shows.
const MAX_SHOWN: usize = 100;

/// Bytes of a message.
const MAX_MESSAGE: usize = 300;

/// The time for all files, of which the last quarter is left for compilers.
const TIME: Duration = Duration::from_secs(90);

pub(super) struct Diagnostics;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// A file or directory; the workspace by default.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Only files that this session changed since it last asked so.
    #[serde(default)]
    #[schemars(extend("x-brief" = "only files changed since the last such call"))]
    changed: bool,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// False if a file has no answer, or one that is known to be incomplete.
    complete: bool,
    /// Answers by language: of language servers, or of compilers for files that no server answered for.
    answers: BTreeMap<&'static str, AnswerFacts>,
    /// Commands of compilers, for files that no server answered for.
    compilers: Vec<String>,
    /// The reason for which files have no answer, by language.
    unanswered: BTreeMap<&'static str, String>,
    /// Files that have an answer.
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
        description: "Errors and warnings of a file or directory, by a language server, or by the \
            compiler where none answers.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let begun = Instant::now();
        let time = context.options.command_settings.timeout.unwrap_or(TIME).min(TIME);
        let asked = AskedFiles::of(context, &input).await?;
        let mut outcome = Outcome::default();
        for path in &asked.paths {
            outcome.ask_server(context, path, (begun + time * 3 / 4, asked.is_alone)).await?;
        }
        outcome.ask_compilers(context, begun + time).await;
        outcome.reply(context, &asked)
    }
}

/// The files that a call is about.
struct AskedFiles {
    paths: Vec<PathBuf>,
    /// The number of those beyond the limit.
    left_out: usize,
    /// One file was named.
    is_alone: bool,
    /// They are those that the session changed.
    are_changed: bool,
}

impl AskedFiles {
    async fn of(context: &ToolContext, input: &Input) -> Result<Self, Failure> {
        let files = WorkspaceFiles::of(context);
        let below = files.workspace.relative_or_top(input.path.as_deref());
        let are_changed = input.changed;
        let own = context.clone();
        run_cancellable(context, move |workspace, cancel| {
            let top = if below.as_os_str().is_empty() { ".".into() } else { below.clone() };
            if workspace.files().metadata(&top)?.kind != FileKind::Directory && !are_changed {
                return Ok(Self { paths: vec![below], left_out: 0, is_alone: true, are_changed });
            }
            let mut paths: Vec<PathBuf> = if are_changed {
                let is_there = |path: &PathBuf| workspace.files().metadata(path).is_ok();
                changed_files(&own).into_iter().filter(is_there).collect()
            } else {
                let fresh = refresh(&own, workspace, cancel)?;
                fresh.view().files(&below).into_iter().map(|(path, _)| path).collect()
            };
            paths.retain(|path| knows(path) && path.starts_with(&below));
            let left_out = paths.len().saturating_sub(MAX_FILES);
            paths.truncate(MAX_FILES);
            Ok(Self { paths, left_out, is_alone: false, are_changed })
        })
        .await
    }
}

/// Returns the files of the workspace that the session changed.
fn changed_files(context: &ToolContext) -> Vec<PathBuf> {
    let state = context.session.state();
    let is_here = |key: &&crate::read_tracker::FileKey| key.workspace == context.workspace().name();
    state.changed.iter().filter(is_here).map(|key| key.path.clone()).collect()
}

/// The answers so far.
#[derive(Default)]
struct Outcome {
    answers: BTreeMap<Language, AnswerFacts>,
    compilers: Vec<String>,
    unanswered: BTreeMap<Language, Unanswered>,
    files: usize,
    problems: Vec<Problem>,
}

/// The files of a language whose server gives no answer.
struct Unanswered {
    failure: Failure,
    paths: Vec<PathBuf>,
}

impl Outcome {
    async fn ask_server(
        &mut self,
        context: &ToolContext,
        path: &Path,
        (deadline, is_alone): (Instant, bool),
    ) -> Result<(), Failure> {
        let Some(language) = Language::of_path(path).filter(|_| !is_alone || knows(path)) else {
            // The error names what there is.
            let found =
                require(context, async |servers, query| servers.diagnostics(query, path).await);
            return found.await.map(drop);
        };
        if let Some(unanswered) = self.unanswered.get_mut(&language) {
            unanswered.paths.push(path.to_owned());
            return Ok(());
        }
        let asking =
            require(context, async |servers, query| servers.diagnostics(query, path).await);
        let failure = match timeout_at(deadline, asking).await {
            Ok(Ok(found)) => {
                self.add_answer(language, path, &found);
                return Ok(());
            }
            Ok(Err(failure)) => failure,
            Err(_) => {
                Failure::new(Code::LanguageServer, "the time was over before its server answered")
            }
        };
        match failure.code {
            Code::LanguageServer => {
                let paths = vec![path.to_owned()];
                self.unanswered.insert(language, Unanswered { failure, paths });
                Ok(())
            }
            // It vanished since it was listed.
            Code::NotFound if !is_alone => Ok(()),
            _ => Err(failure),
        }
    }

    fn add_answer(&mut self, language: Language, path: &Path, found: &Answer<Vec<Diagnostic>>) {
        self.files += 1;
        let telling = found.value.iter().filter(|one| one.severity != Severity::Hint);
        self.problems.extend(telling.map(|one| Problem::of(shown(path), one)));
        let facts = AnswerFacts::of_server(found);
        let facts = match self.answers.remove(&language) {
            Some(before) => before.and(&facts),
            None => facts,
        };
        self.answers.insert(language, facts);
    }

    /// Has compilers check the files that no server answered for.
    async fn ask_compilers(&mut self, context: &ToolContext, deadline: Instant) {
        for (language, unanswered) in &mut self.unanswered {
            let since = SystemTime::now();
            match check_now(context, unanswered.paths.clone(), deadline).await {
                Err(reason) => {
                    let message = &mut unanswered.failure.message;
                    *message = format!("{message}; {reason}");
                }
                Ok(CheckedFiles { commands, files, findings }) => {
                    self.files += files.len();
                    self.compilers.extend(commands);
                    self.problems.extend(findings.iter().filter_map(Problem::of_finding));
                    unanswered.paths.retain(|path| !files.contains(&shown(path)));
                    let answer = AnswerFacts::of_compiler(since);
                    let left = unanswered.paths.len();
                    let answer = match left {
                        0 => answer,
                        _ => answer.but(&format!("{left} file(s) without an answer")),
                    };
                    if !files.is_empty() {
                        self.answers.entry(*language).or_insert(answer);
                    }
                }
            }
        }
        self.unanswered.retain(|_, unanswered| !unanswered.paths.is_empty());
    }

    fn reply(mut self, context: &ToolContext, asked: &AskedFiles) -> ToolResult<Facts> {
        if self.files == 0
            && let Some((_, unanswered)) = self.unanswered.pop_first()
        {
            return Err(unanswered.failure);
        }
        let Self { answers, compilers, unanswered, files, mut problems } = self;
        let total = problems.len();
        let mut text = match total {
            0 => format!("no problems in {files} file(s)"),
            _ => format!("{total} problem(s) in {files} file(s):"),
        };
        problems.truncate(MAX_SHOWN);
        for problem in &problems {
            line(&mut text, &problem.row());
        }
        if total > MAX_SHOWN {
            line(&mut text, &format!("[{} more; name a file]", total - MAX_SHOWN));
        }
        if asked.left_out > 0 {
            let left_out = asked.left_out;
            let note = format!("[{left_out} more files were not asked about; name a directory]");
            line(&mut text, &note);
        }
        answers.values().flat_map(AnswerFacts::notes).for_each(|note| line(&mut text, &note));
        for command in &compilers {
            line(&mut text, &format!("[by {command}]"));
        }
        let reason = |(language, one): (&Language, &Unanswered)| {
            let reason = format!("{} file(s): {}", one.paths.len(), one.failure.message);
            (language.as_str(), reason)
        };
        let unanswered: BTreeMap<_, _> = unanswered.iter().map(reason).collect();
        for (language, reason) in &unanswered {
            line(&mut text, &format!("[no answer for {language}, {reason}]"));
        }
        if asked.are_changed && unanswered.is_empty() {
            let workspace = context.workspace().name();
            context.session.state().changed.retain(|key| key.workspace != workspace);
        }
        let complete = unanswered.is_empty()
            && asked.left_out == 0
            && answers.values().all(AnswerFacts::is_complete);
        let answers = answers.into_iter().map(|(language, facts)| (language.as_str(), facts));
        let answers = answers.collect();
        let facts = Facts { complete, answers, compilers, unanswered, files, problems, total };
        Ok(Reply::text(text, facts))
    }
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

    /// Converts a finding of a compiler; none if it is about no file.
    fn of_finding(finding: &Finding) -> Option<Self> {
        let number = |given: Option<u64>| given.and_then(|given| usize::try_from(given).ok());
        Some(Self {
            path: finding.file.clone()?,
            line: number(finding.line).unwrap_or(1),
            column: number(finding.column).unwrap_or(1),
            severity: match finding.severity {
                FindingSeverity::Error => "error",
                FindingSeverity::Warning => "warning",
                FindingSeverity::Info => "information",
            },
            code: finding.rule.clone().unwrap_or_default(),
            message: cut(&finding.message, MAX_MESSAGE),
        })
    }

    fn row(&self) -> String {
        let Self { path, line, column, severity, code, message } = self;
        let code = if code.is_empty() { String::new() } else { format!(" [{code}]") };
        format!("{path}:{line}:{column} {severity}{code}: {}", message.replace('\n', " "))
    }
}
