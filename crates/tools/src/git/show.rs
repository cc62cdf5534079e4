//! What is said about a command of git that is over.

use std::path::PathBuf;

use carrel_exec::ExitStatus;
use carrel_runner::Completed;
use schemars::JsonSchema;
use serde::Serialize;

use super::check::{Checked, Shape};
use super::operation::Operation;
use super::run::shown;
use super::status::StatusFacts;
use crate::shell::{CommandFacts, notes, scrubbed};

/// The facts about what git did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Facts {
    operation: Operation,
    /// The top of the repository, relative to the workspace.
    repository: Option<String>,
    /// For `BashOutput`: the whole output can be read there.
    shell_id: String,
    /// What `status` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusFacts>,
    /// The commit that `commit` made.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// How much `diff` shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<ChangeFacts>,
    /// Where `clone` put the copy, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    /// Programs that the repository configures and that were not run, such as `filter.lfs`.
    not_run: Vec<String>,
    /// How git ended.
    #[serde(flatten)]
    result: CommandFacts,
}

/// How much changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ChangeFacts {
    files: u64,
    insertions: u64,
    deletions: u64,
}

/// What is known about a command that is over.
pub(super) struct Ran<'a> {
    pub(super) checked: &'a Checked,
    pub(super) completed: &'a Completed,
    pub(super) seconds: u64,
    pub(super) shell_id: String,
    /// The caller has a tool that reads more of the output.
    pub(super) can_read_on: bool,
    pub(super) repository: Option<PathBuf>,
    pub(super) destination: Option<PathBuf>,
    pub(super) not_run: Vec<String>,
    pub(super) hints: Vec<String>,
}

/// Makes the answer.
pub(super) fn reply(ran: &Ran<'_>) -> (String, Facts) {
    let outcome = &ran.completed.outcome;
    let (stdout, stderr) = (outcome.stdout.to_text(usize::MAX), outcome.stderr.to_text(usize::MAX));
    let succeeded = outcome.succeeded();
    let operation = ran.checked.operation;
    let mut facts = Facts {
        operation,
        repository: ran.repository.as_deref().map(shown),
        shell_id: ran.shell_id.clone(),
        status: None,
        commit: None,
        changes: None,
        destination: ran.destination.as_deref().filter(|_| succeeded).map(shown),
        not_run: ran.not_run.clone(),
        result: CommandFacts::of(ran.completed),
    };
    let mut text = match ran.checked.shape {
        Shape::Status if succeeded => {
            let (status, text) =
                StatusFacts::read(&whole_records(&stdout, outcome.stdout.truncated()));
            facts.status = Some(status);
            text
        }
        Shape::Patch if outcome.stdout.total_bytes == 0 && succeeded => {
            facts.changes = Some(ChangeFacts::default());
            String::new()
        }
        Shape::Patch => {
            let (changes, patch) = counted(&stdout);
            facts.changes = changes;
            patch.to_owned()
        }
        Shape::Commit if succeeded => {
            facts.commit = new_commit(&stdout);
            let line = facts
                .commit
                .as_ref()
                .map_or(String::new(), |commit| format!("committed {commit}\n"));
            format!("{line}{stdout}")
        }
        Shape::Plain | Shape::Status | Shape::Commit => stdout,
    };
    text = scrubbed(&text);
    line(&mut text, &scrubbed(&stderr));
    if text.trim().is_empty() && succeeded {
        text = format!("{}\n", nothing_said(ran.checked));
    }
    if let Some(destination) = &facts.destination {
        line(&mut text, &format!("cloned into {destination}"));
    }
    remarks(&mut text, ran, &stderr);
    (text, facts)
}

fn remarks(text: &mut String, ran: &Ran<'_>, stderr: &str) {
    let outcome = &ran.completed.outcome;
    if outcome.stdout.truncated() || outcome.stderr.truncated() {
        let how = if ran.can_read_on {
            format!("BashOutput shell_id={} cursor=0 has all of it; or narrow it", ran.shell_id)
        } else {
            "narrow it".to_owned()
        };
        line(text, &format!("... (output truncated; {how}: -n COUNT, --stat, `-- PATH`)"));
    }
    if outcome.timed_out() {
        line(text, &format!("git: timed out after {}s", ran.seconds));
    }
    if !ran.not_run.is_empty() {
        let names = ran.not_run.join(", ");
        line(
            text,
            &format!(
                "carrel: not run, because the repository configures it: {names}; files are taken as they are"
            ),
        );
    }
    if !outcome.succeeded() {
        for hint in hints(stderr, ran) {
            line(text, &format!("carrel: {hint}"));
        }
    }
    for note in notes(ran.completed) {
        line(text, &format!("carrel: {}", scrubbed(&note)));
    }
    match outcome.end {
        _ if outcome.timed_out() => {}
        ExitStatus::Exited(0) => {}
        ExitStatus::Exited(code) => line(text, &format!("exit: {code}")),
        ExitStatus::Signaled(signal) => line(text, &format!("ended by signal {signal}")),
        ExitStatus::Lost => line(text, "ended with the sandbox"),
    }
}

/// Says what would help, where git's own words do not.
fn hints(stderr: &str, ran: &Ran<'_>) -> Vec<String> {
    let says = |text: &str| stderr.contains(text);
    let mut hints = Vec::new();
    if says("could not read Username")
        || says("Authentication failed")
        || says("could not read Password")
    {
        hints.extend(ran.hints.iter().cloned());
    }
    if says("empty ident name") || says("auto-detection is disabled") {
        hints.push("say who commits with author_name and author_email".to_owned());
    }
    if says("Aborting commit due to empty commit message") {
        hints.push("give a message with -m; there is no editor".to_owned());
    }
    if says("lazy fetching disabled") {
        hints.push(
            "this is a partial clone, and missing objects are not fetched here; clone it whole"
                .to_owned(),
        );
    }
    hints
}

fn nothing_said(checked: &Checked) -> &'static str {
    match checked.operation {
        Operation::Add => "staged",
        Operation::Commit => "committed",
        Operation::Diff => "no changes",
        Operation::Log | Operation::Show => "no commits",
        Operation::Branch => "no branches listed; nothing else to say",
        Operation::Checkout => "checked out",
        Operation::Stash => "nothing stashed to show",
        Operation::Fetch => "fetched; nothing new",
        Operation::Pull => "pulled",
        Operation::Push => "pushed",
        Operation::Clone => "cloned",
        Operation::Status | Operation::Blame => "nothing to show",
    }
}

/// Leaves out what was cut.
fn whole_records(output: &str, truncated: bool) -> String {
    if !truncated {
        return output.to_owned();
    }
    let head = output.split("[… ").next().unwrap_or_default();
    head.rsplit_once('\0').map_or(String::new(), |(whole, _)| format!("{whole}\0"))
}

/// Takes the line of counts off a patch.
fn counted(output: &str) -> (Option<ChangeFacts>, &str) {
    let Some((first, rest)) = output.split_once('\n') else { return (None, output) };
    let Some(changes) = counts(first) else { return (None, output) };
    (Some(changes), rest.strip_prefix('\n').unwrap_or(rest))
}

/// Reads ` 2 files changed, 3 insertions(+), 1 deletion(-)`.
fn counts(line: &str) -> Option<ChangeFacts> {
    let mut changes = ChangeFacts::default();
    for part in line.strip_prefix(' ')?.split(", ") {
        let (count, what) = part.split_once(' ')?;
        let count = count.parse().ok()?;
        match what.chars().next()? {
            'f' => changes.files = count,
            'i' => changes.insertions = count,
            'd' => changes.deletions = count,
            _ => return None,
        }
    }
    Some(changes)
}

/// Reads `[main (root-commit) 0123…] subject`.
fn new_commit(output: &str) -> Option<String> {
    let line = output.lines().find(|line| line.starts_with('['))?;
    let (inside, _) = line[1..].split_once("] ")?;
    let commit = inside.rsplit(' ').next()?;
    let whole = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    whole.then(|| commit.to_owned())
}

/// Adds a line, or several, behind whatever is there.
fn line(text: &mut String, line: &str) {
    if line.is_empty() {
        return;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn counts_are_taken_off_a_patch() {
        let facts =
            |files, insertions, deletions| Some(ChangeFacts { files, insertions, deletions });
        assert_eq!(
            counted(" 1 file changed, 1 insertion(+)\n\ndiff --git a/a b/a\n"),
            (facts(1, 1, 0), "diff --git a/a b/a\n")
        );
        assert_eq!(counted(" 2 files changed, 3 deletions(-)\n\nx").0, facts(2, 0, 3));
        assert_eq!(counted("diff --git a/a b/a\n").0, None);
        assert_eq!(counted(" one\ntwo"), (None, " one\ntwo"));
    }

    #[test]
    fn the_new_commit_is_read() {
        let hash = "0123456789012345678901234567890123456789";
        for (line, expected) in [
            (format!("[main {hash}] a [b] c"), Some(hash)),
            (format!("[main (root-commit) {hash}] x"), Some(hash)),
            (format!("[detached HEAD {hash}] x\n 1 file changed"), Some(hash)),
            ("[main abc] x".to_owned(), None),
            ("On branch main".to_owned(), None),
        ] {
            assert_eq!(new_commit(&line).as_deref(), expected, "{line}");
        }
    }
}
