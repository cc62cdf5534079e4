//! `carrel issue ls` and `show`: issues of the embedded tracker as a table, a sheet or JSON.

use std::fmt::Write as _;
use std::process::ExitCode;

use carrel_domain::{Age, Clock as _, SystemClock, Timestamp};
use carrel_store::Comment;
use carrel_tracker::Issue;
use serde_json::{Value, json};

use super::arguments::{ListArguments, SingleArguments};
use super::{Missing, open};
use crate::error::Result;
use crate::output::{self, Invocation, printable};

const TITLE_CHARS: usize = 60;

pub(super) async fn list(arguments: &ListArguments, cli: &Invocation) -> Result<ExitCode> {
    let tracker = open(&arguments.data, Missing::Refuse, &cli.environment).await?;
    let issues = tracker.list(&arguments.states).await?;
    let listed: Vec<Value> = issues.iter().map(facts).collect();
    cli.print(&json!({ "issues": listed }), || match issues.as_slice() {
        [] => output::line("no issues"),
        issues => output::write(table(issues).as_bytes()),
    })
}

pub(super) async fn show(arguments: &SingleArguments, cli: &Invocation) -> Result<ExitCode> {
    let tracker = open(&arguments.data, Missing::Refuse, &cli.environment).await?;
    let (issue, comments) = tracker.find(&arguments.issue).await?;
    let mut data = facts(&issue);
    data["comments"] = json!(comments);
    cli.print(&data, || output::write(sheet(&issue, &comments).as_bytes()))
}

pub(super) fn facts(issue: &Issue) -> Value {
    let blockers = issue.blocked_by.iter();
    let blockers: Vec<Value> = blockers
        .map(|blocker| json!({ "identifier": blocker.identifier, "state": blocker.state }))
        .collect();
    json!({
        "id": issue.id,
        "identifier": issue.identifier,
        "title": issue.title,
        "description": issue.description,
        "state": issue.state,
        "priority": issue.priority,
        "labels": issue.labels,
        "blocked_by": blockers,
        "created_at": issue.created_at,
        "updated_at": issue.updated_at,
    })
}

fn table(issues: &[Issue]) -> String {
    let now = SystemClock.now();
    let age = |at: Option<Timestamp>| at.map_or("-".to_owned(), |at| Age(at.age(now)).to_string());
    let rows = issues.iter().map(|issue| {
        [
            issue.identifier.clone(),
            issue.state.clone(),
            issue.priority.map_or("-".to_owned(), |priority| priority.to_string()),
            issue.labels.join(","),
            age(issue.created_at),
            issue.title.chars().take(TITLE_CHARS).collect(),
        ]
    });
    output::table(["ISSUE", "STATE", "PRIORITY", "LABELS", "AGE", "TITLE"], rows)
}

fn sheet(issue: &Issue, comments: &[Comment]) -> String {
    let blockers: Vec<_> = issue.blocked_by.iter().filter_map(|b| b.identifier.clone()).collect();
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let listed = |words: &[String]| (!words.is_empty()).then(|| words.join(", "));
    let mut text = output::sheet([
        ("issue", Some(issue.identifier.clone())),
        ("title", Some(issue.title.clone())),
        ("state", Some(issue.state.clone())),
        ("priority", issue.priority.map(|priority| priority.to_string())),
        ("labels", listed(&issue.labels)),
        ("blocked by", listed(&blockers)),
        ("created", time(issue.created_at)),
        ("updated", time(issue.updated_at)),
    ]);
    if let Some(description) = &issue.description {
        let _ = write!(text, "\n{}", indented(description));
    }
    for comment in comments {
        let author = printable(&comment.author);
        let _ = write!(text, "\n{author}, {}:\n{}", comment.created_at, indented(&comment.body));
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |shown, line| shown + "  " + &printable(line) + "\n")
}
