//! `carrel issue new`, `move`, `label` and `comment`: changes of the embedded tracker. Texts may come from
//! stdin, bounded by the tracker's limit.

use std::io::{self, Read as _};
use std::process::ExitCode;

use carrel_store::{IssueChange, NewIssue};
use carrel_tracker::{Issue, LocalError, MAX_TEXT_BYTES, numbers_of};

use super::arguments::{
    CommentArguments, LabelArguments, MoveArguments, NewArguments, SingleArguments,
};
use super::{Missing, open, show};
use crate::error::{CliError, Result};
use crate::output::{self, Invocation};

/// The author of comments where `USER` is unset.
const UNNAMED_AUTHOR: &str = "operator";

pub(super) async fn new(arguments: &NewArguments, cli: &Invocation) -> Result<ExitCode> {
    let new = NewIssue {
        title: arguments.title.clone(),
        description: arguments.description.as_deref().map(text).transpose()?,
        state: arguments.state.clone(),
        priority: arguments.priority,
        labels: arguments.labels.clone(),
        blocked_by: numbers_of(&arguments.blocked_by)?,
    };
    let issue = open(&arguments.data, Missing::Make, &cli.environment).await?.add(new).await?;
    print(&issue, &issue.identifier, cli)
}

pub(super) async fn shift(arguments: &MoveArguments, cli: &Invocation) -> Result<ExitCode> {
    let change = IssueChange { state: Some(arguments.state.clone()), ..IssueChange::default() };
    let SingleArguments { issue, data } = &arguments.single;
    let tracker = open(data, Missing::Refuse, &cli.environment).await?;
    let issue = tracker.change(issue, change).await?;
    print(&issue, &format!("{}: {}", issue.identifier, issue.state), cli)
}

pub(super) async fn label(arguments: &LabelArguments, cli: &Invocation) -> Result<ExitCode> {
    let change = IssueChange {
        add_labels: arguments.add.clone(),
        remove_labels: arguments.remove.clone(),
        ..IssueChange::default()
    };
    let tracker = open(&arguments.data, Missing::Refuse, &cli.environment).await?;
    let issue = tracker.change(&arguments.issue, change).await?;
    print(&issue, &format!("{}: {}", issue.identifier, issue.labels.join(", ")), cli)
}

pub(super) async fn comment(arguments: &CommentArguments, cli: &Invocation) -> Result<ExitCode> {
    let tracker = open(&arguments.data, Missing::Refuse, &cli.environment).await?;
    let user = cli.environment.get_str("USER").filter(|name| !name.trim().is_empty());
    let author = arguments.author.as_deref().or(user).unwrap_or(UNNAMED_AUTHOR);
    let comment = tracker.comment(&arguments.issue, author, &text(&arguments.text)?).await?;
    cli.print(&comment, || Ok(()))
}

fn print(issue: &Issue, line: &str, cli: &Invocation) -> Result<ExitCode> {
    cli.print(&show::facts(issue), || output::line(line))
}

/// Returns a text as it was given, or from stdin.
fn text(given: &str) -> Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut bytes = Vec::new();
    // One byte more than is allowed is enough to see that it is too much.
    let most = MAX_TEXT_BYTES as u64 + 1;
    let read = io::stdin().lock().take(most).read_to_end(&mut bytes);
    read.map_err(CliError::start("reading stdin"))?;
    if bytes.len() > MAX_TEXT_BYTES {
        // It may be cut in the middle of a character, and is refused for its length.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|_| {
        let rule = "is not UTF-8; convert it, say with iconv".to_owned();
        LocalError::Refused { what: "the text on stdin", rule }.into()
    })
}
