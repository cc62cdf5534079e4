//! The reply to a git operation: git's output, remarks and facts.

use std::path::{Path, PathBuf};

use carrel_exec::{ExitStatus, Outcome};
use carrel_git::{
    GitCommandLine, GitOperation, OutputShape, StatusFacts, complete_records, new_commit,
    split_shortstat,
};
use carrel_runner::Completed;
use carrel_wire::{DiffStat, GitReply};
use schemars::JsonSchema;
use serde::Serialize;

use crate::redaction::{RedactFacts, Redactor};
use crate::shell::{CommandFacts, notes, object, strip_control};

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

impl RedactFacts for GitFacts {
    fn redact(&mut self, redactor: &Redactor) {
        self.result.redact(redactor);
        let Self { repository, destination, not_run, status, .. } = self;
        [repository, destination]
            .into_iter()
            .flatten()
            .chain(not_run)
            .for_each(|text| redactor.redact_text(text));
        let Some(status) = status else { return };
        [&mut status.branch, &mut status.upstream]
            .into_iter()
            .flatten()
            .for_each(|text| redactor.redact_text(text));
        for entry in &mut status.entries {
            redactor.redact_text(&mut entry.path);
            entry.original.iter_mut().for_each(|path| redactor.redact_text(path));
        }
    }
}

impl GitFacts {
    /// Returns the reply of the REST API: the facts and the output as one value.
    pub(super) fn reply(&self, outcome: &Outcome) -> GitReply {
        let Self {
            operation,
            repository,
            shell_id,
            status,
            commit,
            changes,
            destination,
            not_run,
            result,
        } = self;
        GitReply {
            operation: operation.as_str().to_owned(),
            repository: repository.clone(),
            shell_id: shell_id.clone(),
            status: status.as_ref().map(object),
            commit: commit.clone(),
            changes: *changes,
            destination: destination.clone(),
            not_run: not_run.clone(),
            result: result.reply(outcome),
        }
    }
}

/// A git process that has ended.
pub(super) struct Execution<'a> {
    pub(super) line: &'a GitCommandLine,
    pub(super) completed: &'a Completed,
    pub(super) seconds: u64,
    pub(super) shell_id: String,
    /// The caller has the tool `BashOutput`.
    pub(super) has_bash_output: bool,
    pub(super) repository: Option<PathBuf>,
    pub(super) destination: Option<PathBuf>,
    pub(super) neutralized: Vec<String>,
    /// Shown if git reports that a credential is missing.
    pub(super) credential_hints: Vec<String>,
}

pub(super) fn reply(execution: &Execution<'_>) -> (String, GitFacts) {
    let outcome = &execution.completed.outcome;
    let stdout = outcome.stdout.to_text(usize::MAX);
    let stderr = outcome.stderr.to_text(usize::MAX);
    let succeeded = outcome.succeeded();
    let mut facts = GitFacts {
        operation: execution.line.operation,
        repository: execution.repository.as_deref().map(shown),
        shell_id: execution.shell_id.clone(),
        status: None,
        commit: None,
        changes: None,
        destination: execution.destination.as_deref().filter(|_| succeeded).map(shown),
        not_run: execution.neutralized.clone(),
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
    if text.trim().is_empty() && succeeded {
        text = format!("{}\n", text_for_silence(execution.line.operation));
    }
    if let Some(destination) = &facts.destination {
        append(&mut text, &format!("cloned into {destination}"));
    }
    append_remarks(&mut text, execution, &stderr);
    (text, facts)
}

fn append_remarks(text: &mut String, execution: &Execution<'_>, stderr: &str) {
    let outcome = &execution.completed.outcome;
    if outcome.stdout.truncated() || outcome.stderr.truncated() {
        let how = if execution.has_bash_output {
            let shell_id = &execution.shell_id;
            format!("BashOutput shell_id={shell_id} cursor=0 has all of it; or narrow it")
        } else {
            "narrow it".to_owned()
        };
        append(text, &format!("... (output truncated; {how}: -n COUNT, --stat, `-- PATH`)"));
    }
    if outcome.timed_out() {
        append(text, &format!("git: timed out after {}s", execution.seconds));
    }
    if !execution.neutralized.is_empty() {
        let names = execution.neutralized.join(", ");
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
    for note in notes(execution.completed) {
        append(text, &format!("carrel: {}", strip_control(&note)));
    }
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
        hints.extend(execution.credential_hints.iter().cloned());
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

/// Appends lines on lines of their own.
fn append(text: &mut String, lines: &str) {
    if lines.is_empty() {
        return;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(lines);
    if !lines.ends_with('\n') {
        text.push('\n');
    }
}

fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}
