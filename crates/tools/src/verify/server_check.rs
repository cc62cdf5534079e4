//! Problems that an edit made, by a language server that runs already.
//!
//! Rust and Go files are checked by their compilers ([`super::compiler_check`]). For other languages the server of the
//! file is asked after the edit, if one runs: none is started for it. The reply has the problems that the file did not
//! have when it was last looked at. A server that takes longer than the time for feedback goes on, and a later reply of
//! the session has its findings, once.
//!
//! The problems before an edit are known from the edit before, or from the time at which the file was read. Where they
//! are not, errors alone are shown, and the reply says that some may be old.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrel_audit::Interface;
use carrel_domain::sync;
use carrel_lsp::{Diagnostic, LanguageServers, QueryContext, Reply, Severity};
use tokio::sync::watch;
use tokio::time::Instant;

use super::compiler_check::add;
use crate::blocking::blocking;
use crate::files::{WorkspaceFiles, shown};
use crate::read_tracker::ContentHash;
use crate::response::ToolContent;
use crate::session::SessionLifetime;
use crate::text::line;
use crate::tool_context::ToolContext;

/// The time for a server to tell the problems of a file, replies after that of the edit included.
const MAX_TIME: Duration = Duration::from_mins(1);

/// Files of one edit that a server is asked about.
const MAX_FILES: usize = 4;

/// Problems of a file that a reply shows.
const MAX_SHOWN: usize = 10;

/// Bytes of a message.
const MAX_MESSAGE: usize = 200;

/// Files whose problems are remembered; beyond them all are forgotten.
const MAX_REMEMBERED: usize = 2000;

/// Checks of a session and workspace that wait for a reply.
const MAX_LATE: usize = 8;

/// The problems of files when they were last looked at, by the path of the workspace and the file.
#[derive(Debug, Default)]
pub(crate) struct ServerChecks(Mutex<BTreeMap<(PathBuf, PathBuf), Vec<ProblemKey>>>);

/// A problem without its place, which an edit moves.
type ProblemKey = (Severity, String, String);

/// A check whose findings come with a later reply.
#[derive(Debug)]
pub(crate) struct LateServerCheck {
    outcome: watch::Receiver<Option<Outcome>>,
}

/// The findings about one file; none if the server gave no answer.
#[derive(Clone, Debug)]
struct Outcome(Option<Arc<Findings>>);

#[derive(Debug)]
struct Findings {
    path: PathBuf,
    server: &'static str,
    /// The problems that are shown.
    problems: Vec<Diagnostic>,
    /// The problems before the edit were known.
    is_compared: bool,
}

/// The reply that findings come with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    InTime,
    Late,
}

/// Asks running servers about changed files, and adds what is new to the reply, or a line that it follows. Waits until
/// `deadline` at most.
pub(super) async fn add_feedback(
    context: &ToolContext,
    paths: &[PathBuf],
    blocks: &mut Vec<ToolContent>,
    deadline: Instant,
) {
    let servers = &context.toolbox.language_servers;
    let workspace = context.workspace().shared_handle().path();
    let asked = paths.iter().filter(|path| servers.runs_for(workspace, path)).take(MAX_FILES);
    let checks: Vec<_> = asked.map(|path| start(context, path.clone())).collect();
    let mut unfinished = Vec::new();
    for mut check in checks {
        match tokio::time::timeout_at(deadline, check.ended()).await {
            Ok(outcome) => add(blocks, &outcome.text(Timing::InTime)),
            Err(_) => unfinished.push(check),
        }
    }
    if !unfinished.is_empty() && keep(context, unfinished) {
        add(
            blocks,
            "post-edit check (language server): still checking; a later reply has what is new",
        );
    }
}

/// Adds the findings of checks that have ended since their edits.
pub(super) fn add_late(context: &ToolContext, workspace: &str, blocks: &mut Vec<ToolContent>) {
    let waiting = context.session.state().late_server_checks.remove(workspace);
    let mut unfinished = Vec::new();
    for check in waiting.into_iter().flatten() {
        match check.outcome_now() {
            Some(outcome) => add(blocks, &outcome.text(Timing::Late)),
            None => unfinished.push(check),
        }
    }
    if !unfinished.is_empty() {
        keep(context, unfinished);
    }
}

/// Learns the problems of a file that was read, so that those of its next edit can be told apart.
pub(super) fn warm(context: &ToolContext, path: &Path) {
    let workspace = context.workspace().shared_handle().path();
    let checks = &context.toolbox.server_checks;
    let runs = context.toolbox.language_servers.runs_for(workspace, path);
    if !runs || checks.knows(workspace, path) {
        return;
    }
    let (context, path) = (context.clone(), path.to_owned());
    // Ends by itself, within the time of its question.
    carrel_exec::spawn_task(async move {
        let before = hash_of(&context, &path).await;
        let Some((_, problems)) = ask(&context, &path).await else { return };
        // An edit in between would make its own problems old ones.
        if before.is_some() && before == hash_of(&context, &path).await {
            let workspace = context.workspace().shared_handle().path();
            context.toolbox.server_checks.learn(workspace, &path, &problems);
        }
    });
}

async fn hash_of(context: &ToolContext, path: &Path) -> Option<ContentHash> {
    let (files, path) = (WorkspaceFiles::of(context), path.to_owned());
    blocking(move || files.load(&path)).await.ok().map(|file| file.hash())
}

/// Starts to ask about a file. The check outlives the call, and ends with the session.
fn start(context: &ToolContext, path: PathBuf) -> LateServerCheck {
    let (sender, outcome) = watch::channel(None);
    let cancel = context.session.state().checks.child_token();
    let context = context.clone();
    carrel_exec::spawn_task(async move {
        let found = tokio::select! {
            () = cancel.cancelled() => None,
            found = ask(&context, &path) => found,
        };
        let findings = found.map(|(server, problems)| {
            let workspace = context.workspace().shared_handle().path();
            let before = context.toolbox.server_checks.learn(workspace, &path, &problems);
            Arc::new(Findings::new(path, server, problems, before))
        });
        sender.send_replace(Some(Outcome(findings)));
    });
    LateServerCheck { outcome }
}

/// Returns the errors and warnings of a file, if a server tells them.
async fn ask(context: &ToolContext, path: &Path) -> Option<(&'static str, Vec<Diagnostic>)> {
    let query = QueryContext {
        runner: context.toolbox.runner.clone(),
        workspace: Arc::clone(context.workspace().shared_handle()),
        watch: context.toolbox.symbols.watch(context.workspace()),
        time: MAX_TIME,
    };
    let servers: &LanguageServers = &context.toolbox.language_servers;
    let Ok(Reply::Answer(mut answer)) = servers.diagnostics(&query, path).await else {
        return None;
    };
    let is_told = |one: &Diagnostic| matches!(one.severity, Severity::Error | Severity::Warning);
    answer.value.retain(is_told);
    Some((answer.server, answer.value))
}

/// Keeps checks for a later reply. Returns whether there will be one.
fn keep(context: &ToolContext, checks: Vec<LateServerCheck>) -> bool {
    let lasts = context.session.lifetime() == SessionLifetime::Lasting;
    let is_kept = match context.options.interface {
        Interface::Stdio | Interface::Http | Interface::Agent => lasts,
        Interface::Rest | Interface::Cli | Interface::Task => false,
    };
    if is_kept {
        let mut state = context.session.state();
        let name = context.workspace().name().to_owned();
        let waiting = state.late_server_checks.entry(name).or_default();
        waiting.extend(checks);
        let surplus = waiting.len().saturating_sub(MAX_LATE);
        waiting.drain(..surplus);
    }
    is_kept
}

impl ServerChecks {
    fn knows(&self, workspace: &Path, path: &Path) -> bool {
        sync::lock(&self.0).contains_key(&(workspace.to_owned(), path.to_owned()))
    }

    /// Remembers the problems of a file, and returns those before.
    fn learn(
        &self,
        workspace: &Path,
        path: &Path,
        problems: &[Diagnostic],
    ) -> Option<Vec<ProblemKey>> {
        let mut all = sync::lock(&self.0);
        if all.len() >= MAX_REMEMBERED {
            all.clear();
        }
        let keys = problems.iter().map(key).collect();
        all.insert((workspace.to_owned(), path.to_owned()), keys)
    }
}

fn key(problem: &Diagnostic) -> ProblemKey {
    (problem.severity, problem.code.clone(), problem.message.clone())
}

impl LateServerCheck {
    async fn ended(&mut self) -> Outcome {
        let ended = self.outcome.wait_for(Option::is_some).await;
        ended.ok().and_then(|outcome| outcome.clone()).unwrap_or(Outcome(None))
    }

    fn outcome_now(&self) -> Option<Outcome> {
        let outcome = self.outcome.borrow().clone();
        // The task is gone without an outcome if the server stops.
        outcome.or_else(|| self.outcome.has_changed().is_err().then_some(Outcome(None)))
    }
}

impl Outcome {
    fn text(&self, timing: Timing) -> String {
        self.0.as_ref().map_or_else(String::new, |findings| findings.text(timing))
    }
}

impl Findings {
    /// Leaves out the problems that were there before; warnings, where these are not known.
    fn new(
        path: PathBuf,
        server: &'static str,
        mut problems: Vec<Diagnostic>,
        before: Option<Vec<ProblemKey>>,
    ) -> Self {
        let is_compared = before.is_some();
        let mut old = before.unwrap_or_default();
        problems.retain(|problem| match old.iter().position(|old| *old == key(problem)) {
            Some(index) => {
                // A second problem of the same kind is a new one.
                old.swap_remove(index);
                false
            }
            None => is_compared || problem.severity == Severity::Error,
        });
        Self { path, server, problems, is_compared }
    }

    fn text(&self, timing: Timing) -> String {
        let Self { path, server, problems, is_compared } = self;
        let mut text = String::new();
        if problems.is_empty() {
            if timing == Timing::Late {
                let path = shown(path);
                line(&mut text, &format!("post-edit check ({server}): no new problems in {path}"));
            }
            return text;
        }
        let old = if *is_compared { "" } else { ", of which some may be old" };
        line(&mut text, &format!("post-edit check ({server}): {} new{old}:", problems.len()));
        problems.iter().take(MAX_SHOWN).for_each(|problem| line(&mut text, &row(path, problem)));
        if problems.len() > MAX_SHOWN {
            let more = problems.len() - MAX_SHOWN;
            line(&mut text, &format!("({more} more; diagnostics has all)"));
        }
        text
    }
}

fn row(path: &Path, problem: &Diagnostic) -> String {
    let start = problem.range.start;
    let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
    let code = if problem.code.is_empty() { String::new() } else { format!(" [{}]", problem.code) };
    let mut message = problem.message.replace('\n', " ");
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    format!("{}:{}:{} {severity}{code}: {message}", shown(path), start.line, start.char_column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_lsp::{Place, TextRange};
    use pretty_assertions::assert_eq;

    fn problem(line: usize, severity: Severity, message: &str) -> Diagnostic {
        let place = Place { offset: 0, line, byte_column: 1, char_column: 1 };
        Diagnostic {
            range: TextRange { start: place, end: place },
            severity,
            code: "c".into(),
            source: String::new(),
            message: message.into(),
        }
    }

    #[test]
    fn only_new_problems_are_shown_and_moved_ones_are_old() {
        let (error, warning) = (Severity::Error, Severity::Warning);
        let before = [problem(1, error, "a"), problem(2, warning, "b")];
        let checks = ServerChecks::default();
        let (workspace, path) = (Path::new("/w"), Path::new("a.py"));
        let findings = |problems: &[Diagnostic]| {
            let before = checks.learn(workspace, path, problems);
            Findings::new(path.to_owned(), "ty", problems.to_vec(), before)
        };
        let first = findings(&before).text(Timing::InTime);
        assert_eq!(
            first,
            "post-edit check (ty): 1 new, of which some may be old:\na.py:1:1 error [c]: a\n"
        );
        let moved = [problem(7, error, "a"), problem(8, warning, "b")];
        assert_eq!(findings(&moved).text(Timing::InTime), "");
        assert_eq!(
            findings(&moved).text(Timing::Late),
            "post-edit check (ty): no new problems in a.py\n"
        );
        let twice = [problem(7, error, "a"), problem(9, error, "a"), problem(8, warning, "d")];
        assert_eq!(
            findings(&twice).text(Timing::InTime),
            "post-edit check (ty): 2 new:\na.py:9:1 error [c]: a\na.py:8:1 warning [c]: d\n"
        );
    }
}
