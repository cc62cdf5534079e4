//! `carrel issue new`, `move`, `label` and `comment`: changes of the embedded tracker. Texts may come from
//! stdin, bounded by the tracker's limit.

use std::io::{self, Read as _};
use std::process::ExitCode;

use carrel_config::Environment;
use carrel_store::{IssueChange, NewIssue};
use carrel_tracker::{Issue, LocalError, MAX_TEXT_BYTES, numbers_of};

use super::arguments::{CommentArguments, LabelArguments, MoveArguments, NewArguments};
use super::{Missing, open, show};
use crate::error::CliError;
use crate::output::{self, Format};

/// The author of comments where `USER` is unset.
const UNNAMED_AUTHOR: &str = "operator";

pub(super) async fn new(
    arguments: &NewArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let new = NewIssue {
        title: arguments.title.clone(),
        description: arguments.description.as_deref().map(text).transpose()?,
        state: arguments.state.clone(),
        priority: arguments.priority,
        labels: arguments.labels.clone(),
        blocked_by: numbers_of(&arguments.blocked_by)?,
    };
    let issue = open(&arguments.data, Missing::Make, environment).await?.add(new).await?;
    match format {
        Format::Json => output::json(&show::facts(&issue))?,
        Format::Text => output::line(&issue.identifier)?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn shift(
    arguments: &MoveArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let change = IssueChange { state: Some(arguments.state.clone()), ..IssueChange::default() };
    let issue = open(&arguments.data, Missing::Refuse, environment)
        .await?
        .change(&arguments.issue, change)
        .await?;
    print(&issue, format, &format!("{}: {}", issue.identifier, issue.state))
}

pub(super) async fn label(
    arguments: &LabelArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let change = IssueChange {
        add_labels: arguments.add.clone(),
        remove_labels: arguments.remove.clone(),
        ..IssueChange::default()
    };
    let issue = open(&arguments.data, Missing::Refuse, environment)
        .await?
        .change(&arguments.issue, change)
        .await?;
    print(&issue, format, &format!("{}: {}", issue.identifier, issue.labels.join(", ")))
}

pub(super) async fn comment(
    arguments: &CommentArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let tracker = open(&arguments.data, Missing::Refuse, environment).await?;
    let user = environment.get_str("USER").filter(|name| !name.trim().is_empty());
    let author = arguments.author.as_deref().or(user).unwrap_or(UNNAMED_AUTHOR);
    let comment = tracker.comment(&arguments.issue, author, &text(&arguments.text)?).await?;
    match format {
        Format::Json => output::json(&comment)?,
        Format::Text => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn print(issue: &Issue, format: Format, line: &str) -> Result<ExitCode, CliError> {
    match format {
        Format::Json => output::json(&show::facts(issue))?,
        Format::Text => output::line(line)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a text as it was given, or from stdin.
fn text(given: &str) -> Result<String, CliError> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut bytes = Vec::new();
    // One byte more than is allowed is enough to see that it is too much.
    let most = MAX_TEXT_BYTES as u64 + 1;
    let read = io::stdin().lock().take(most).read_to_end(&mut bytes);
    read.map_err(|source| CliError::Start { doing: "reading stdin", source })?;
    if bytes.len() > MAX_TEXT_BYTES {
        // It may be cut in the middle of a character, and is refused for its length.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|_| {
        let rule = "is not UTF-8; convert it, say with iconv".to_owned();
        LocalError::Refused { what: "the text on stdin", rule }.into()
    })
}
