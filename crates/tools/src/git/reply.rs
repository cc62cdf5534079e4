//! The reply to a git operation: git's output, remarks and facts.

use std::path::Path;

use carrel_exec::{ExitStatus, Outcome};
use carrel_git::{
    GitCommandLine, GitOperation, OutputShape, StatusFacts, complete_records, new_commit,
    split_shortstat,
};
use carrel_runner::Completed;
use carrel_wire::{DiffStat, GitReply};
use schemars::JsonSchema;
use serde::Serialize;

use super::execution::Prepared;
use crate::redaction::CutGuard;
use crate::reply_limit::shorten;
use crate::shell::{CommandFacts, add_notes, object, strip_control};
use crate::text::line;

/// The facts about a git operation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GitFacts {
    operation: GitOperation,
    /// The top of the repository, relative to the workspace.
    repository: Option<String>,
    /// For `BashOutput`, which returns the whole output.
    shell_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<DiffStat>,
    /// The directory of a `clone`, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    /// Programs that the repository configures and that were not run, such as `filter.lfs`.
    not_run: Vec<String>,
    /// Exit status, cost and sandbox of git.
    #[serde(flatten)]
    pub result: CommandFacts,
}

impl GitFacts {
    /// Returns the reply of the REST API: the facts and the output as one value.
    pub(super) fn reply(&self, outcome: &Outcome) -> GitReply {
        GitReply {
            operation: self.operation.as_str().to_owned(),
            repository: self.repository.clone(),
            shell_id: self.shell_id.clone(),
            status: self.status.as_ref().map(object),
            commit: self.commit.clone(),
            changes: self.changes,
            destination: self.destination.clone(),
            not_run: self.not_run.clone(),
            result: self.result.reply(outcome),
        }
    }
}

pub(super) struct Execution<'a> {
    pub(super) line: &'a GitCommandLine,
    pub(super) prepared: &'a Prepared,
    pub(super) completed: &'a Completed,
    pub(super) seconds: u64,
    pub(super) shell_id: String,
    /// Bytes of git's output in the reply.
    pub(super) limit: usize,
    pub(super) guard: CutGuard,
    /// The caller has the tool `BashOutput`.
    pub(super) has_bash_output: bool,
}

pub(super) fn reply(execution: &Execution<'_>) -> (String, GitFacts) {
    let outcome = &execution.completed.outcome;
    let guard = &execution.guard;
    let [stdout, stderr] =
        [&outcome.stdout, &outcome.stderr].map(|stream| guard.output(stream, usize::MAX));
    let succeeded = outcome.succeeded();
    let mut facts = GitFacts {
        operation: execution.line.operation,
        repository: execution.prepared.repository.as_deref().map(shown),
        shell_id: execution.shell_id.clone(),
        status: None,
        commit: None,
        changes: None,
        destination: execution.prepared.destination.as_deref().filter(|_| succeeded).map(shown),
        not_run: execution.prepared.neutralized.clone(),
        result: CommandFacts::of(execution.completed),
    };
    let mut text = match execution.line.output {
        OutputShape::Status if succeeded => {
            let records = complete_records(&stdout, outcome.stdout.truncated());
            let (status, text) = StatusFacts::parse(&records);
            facts.status = Some(status);
            text
        }
        OutputShape::Patch if outcome.stdout.total_bytes == 0 && succeeded => {
            facts.changes = Some(DiffStat::default());
            String::new()
        }
        OutputShape::Patch => {
            let (changes, patch) = split_shortstat(&stdout);
            facts.changes = changes;
            patch.to_owned()
        }
        OutputShape::Commit if succeeded => {
            facts.commit = new_commit(&stdout);
            let first_line = facts
                .commit
                .as_ref()
                .map_or(String::new(), |commit| format!("committed {commit}\n"));
            format!("{first_line}{stdout}")
        }
        OutputShape::Plain | OutputShape::Status | OutputShape::Commit => stdout,
    };
    text = strip_control(&text);
    append(&mut text, &strip_control(&stderr));
    for secret in &execution.prepared.remote.secrets {
        text = secret.mask(&text);
    }
    let is_cut = text.len() > execution.limit;
    text = shorten(guard, text, execution.limit, &rest_of(execution));
    if text.trim().is_empty() && succeeded {
        text = format!("{}\n", text_for_silence(execution.line.operation));
    }
    if let Some(destination) = &facts.destination {
        append(&mut text, &format!("cloned into {destination}"));
    }
    facts.result.truncated |= is_cut;
    append_remarks(&mut text, execution, &stderr, is_cut);
    (text, facts)
}

/// Says how to get the part of git's output that the reply lacks.
fn rest_of(execution: &Execution<'_>) -> String {
    let how = if execution.has_bash_output {
        let shell_id = &execution.shell_id;
        format!("BashOutput shell_id={shell_id} cursor=0 has all of it; or narrow it")
    } else {
        "narrow it".to_owned()
    };
    format!("{how}: -n COUNT, --stat, `-- PATH`")
}

fn append_remarks(text: &mut String, execution: &Execution<'_>, stderr: &str, is_cut: bool) {
    let outcome = &execution.completed.outcome;
    if !is_cut && (outcome.stdout.truncated() || outcome.stderr.truncated()) {
        append(text, &format!("... (output truncated; {})", rest_of(execution)));
    }
    if outcome.timed_out() {
        append(text, &format!("git: timed out after {}s", execution.seconds));
    }
    if !execution.prepared.neutralized.is_empty() {
        let names = execution.prepared.neutralized.join(", ");
        append(
            text,
            &format!("carrel: programs that the repository configures were not run: {names}"),
        );
    }
    if !outcome.succeeded() {
        for hint in hints(stderr, execution) {
            append(text, &format!("carrel: {hint}"));
        }
    }
    add_notes(text, execution.completed);
    match outcome.end {
        _ if outcome.timed_out() => {}
        ExitStatus::Exited(0) => {}
        ExitStatus::Exited(code) => append(text, &format!("exit: {code}")),
        ExitStatus::Signaled(signal) => append(text, &format!("ended by signal {signal}")),
        ExitStatus::Lost => append(text, "ended with the sandbox"),
    }
}

/// Returns advice for failures that git's own message does not explain here.
fn hints(stderr: &str, execution: &Execution<'_>) -> Vec<String> {
    let says = |text: &str| stderr.contains(text);
    let mut hints = Vec::new();
    if says("could not read Username")
        || says("Authentication failed")
        || says("could not read Password")
    {
        hints.extend(execution.prepared.remote.hints.iter().cloned());
    }
    if says("empty ident name") || says("auto-detection is disabled") {
        hints.push("set author_name and author_email".to_owned());
    }
    if says("Aborting commit due to empty commit message") {
        hints.push("give a message with -m; there is no editor".to_owned());
    }
    if says("lazy fetching disabled") {
        hints.push("missing objects of a partial clone are not fetched; clone it whole".to_owned());
    }
    hints
}

fn text_for_silence(operation: GitOperation) -> &'static str {
    match operation {
        GitOperation::Add => "staged",
        GitOperation::Commit => "committed",
        GitOperation::Diff => "no changes",
        GitOperation::Log | GitOperation::Show => "no commits",
        GitOperation::Branch | GitOperation::Stash => "done",
        GitOperation::Checkout => "checked out",
        GitOperation::Fetch => "fetched; nothing new",
        GitOperation::Pull => "pulled",
        GitOperation::Push => "pushed",
        GitOperation::Clone => "cloned",
        GitOperation::Status | GitOperation::Blame => "nothing to show",
    }
}

fn append(text: &mut String, lines: &str) {
    if !lines.is_empty() {
        line(text, lines.strip_suffix('\n').unwrap_or(lines));
    }
}

fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}
