//! `carrel conductor`: orders for a `carrel run --port` that goes on.

mod transcript;

use std::process::ExitCode;

use carrel_config::Environment;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::{self, Format};
use crate::runtime;
use crate::task::{ServerArguments, client};

#[derive(Debug, Subcommand)]
pub(crate) enum SteerCommand {
    /// Show what runs, is retried, blocked and waits
    State(ServerArguments),
    /// Show an issue
    Show(IssueArguments),
    /// List the last runs of an issue, the latest first
    Runs(IssueArguments),
    /// Print what happened in a run of an issue; with --json as it was written down
    Transcript(TranscriptArguments),
    /// Begin nothing; what runs goes on
    Pause(ServerArguments),
    /// Begin nothing, and let agents end after their turns
    Drain(ServerArguments),
    /// Go on
    Resume(ServerArguments),
    /// Look at the tracker now
    Refresh(ServerArguments),
    /// End the work on an issue until somebody says otherwise
    Cancel(IssueArguments),
    /// Take an issue up again at once
    Retry(IssueArguments),
    /// Lift what holds an issue up, a used-up budget included
    Unblock(IssueArguments),
    /// Answer the question of an issue's agent
    Answer(AnswerArguments),
}

#[derive(Args, Debug)]
pub(crate) struct IssueArguments {
    /// The issue, such as CAR-1
    #[arg(value_name = "ISSUE")]
    issue: String,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Args, Debug)]
pub(crate) struct TranscriptArguments {
    #[command(flatten)]
    issue: IssueArguments,
    /// The number of the run; the latest if none is given
    #[arg(long, value_name = "NUMBER")]
    run: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct AnswerArguments {
    #[command(flatten)]
    issue: IssueArguments,
    /// What the agent is told
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    answer: String,
}

pub(crate) fn run(
    command: &SteerCommand,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    if let SteerCommand::Transcript(TranscriptArguments { issue, run }) = command {
        let client = client(&issue.server, environment)?;
        runtime()?.block_on(transcript::print(&client, &issue.issue, *run, format))?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = runtime()?.block_on(ask(command, environment))?;
    match format {
        Format::Json => output::json(&answer)?,
        Format::Text => {
            for line in words(command, &answer) {
                output::line(&line)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask(command: &SteerCommand, environment: &Environment) -> Result<Value, Failure> {
    let about = |IssueArguments { issue, server }: &IssueArguments| {
        Ok::<_, Failure>((client(server, environment)?, issue.clone()))
    };
    let (order, server) = match command {
        SteerCommand::State(server) => return Ok(client(server, environment)?.conductor().await?),
        SteerCommand::Show(issue) => {
            let (client, issue) = about(issue)?;
            return Ok(client.conductor_issue(&issue).await?);
        }
        SteerCommand::Runs(issue) | SteerCommand::Transcript(TranscriptArguments { issue, .. }) => {
            let (client, issue) = about(issue)?;
            return Ok(client.conductor_runs(&issue).await?);
        }
        SteerCommand::Cancel(issue) => ("cancel", Err(issue)),
        SteerCommand::Retry(issue) => ("retry", Err(issue)),
        SteerCommand::Unblock(issue) => ("unblock", Err(issue)),
        SteerCommand::Answer(AnswerArguments { issue, answer }) => {
            let (client, issue) = about(issue)?;
            let body = json!({ "answer": answer });
            return Ok(client.send_issue_order(&issue, "answer", Some(&body)).await?);
        }
        SteerCommand::Pause(server) => ("pause", Ok(server)),
        SteerCommand::Drain(server) => ("drain", Ok(server)),
        SteerCommand::Resume(server) => ("resume", Ok(server)),
        SteerCommand::Refresh(server) => ("refresh", Ok(server)),
    };
    match server {
        Ok(server) => Ok(client(server, environment)?.send_order(order).await?),
        Err(issue) => {
            let (client, issue) = about(issue)?;
            Ok(client.send_issue_order(&issue, order, None).await?)
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Says an answer in a few lines.
fn words(command: &SteerCommand, answer: &Value) -> Vec<String> {
    match command {
        SteerCommand::State(_) => state(answer),
        SteerCommand::Pause(_) | SteerCommand::Drain(_) | SteerCommand::Resume(_) => {
            vec![format!("{}, {} agents at work", text(&answer["mode"]), answer["agents"])]
        }
        SteerCommand::Runs(_) | SteerCommand::Transcript(_) => runs(answer),
        SteerCommand::Refresh(_) => vec!["a look at the tracker follows".to_owned()],
        SteerCommand::Show(_)
        | SteerCommand::Cancel(_)
        | SteerCommand::Retry(_)
        | SteerCommand::Unblock(_)
        | SteerCommand::Answer(_) => {
            let name = text(&answer["issue_identifier"]);
            let mut lines = vec![format!("{name}: {}", text(&answer["status"]))];
            if let Some(error) = answer["last_error"].as_str() {
                lines.push(format!("  {error}"));
            }
            lines
        }
    }
}

fn runs(answer: &Value) -> Vec<String> {
    let rows = answer["runs"].as_array().into_iter().flatten();
    rows.map(|run| {
        let outcome = run["outcome"].as_str().unwrap_or("goes on");
        let error = run["error"].as_str().map(|error| format!("  {error}")).unwrap_or_default();
        format!("{}  {}  {outcome}{error}", run["run"], text(&run["started_at"]))
    })
    .collect()
}

fn state(answer: &Value) -> Vec<String> {
    let counts = &answer["counts"];
    let mut lines = vec![format!(
        "{}: {} running, {} to be retried, {} blocked, {} waiting",
        text(&answer["mode"]),
        counts["running"],
        counts["retrying"],
        counts["blocked"],
        counts["waiting"]
    )];
    for (list, detail) in
        [("running", "phase"), ("retrying", "due_at"), ("blocked", "error"), ("waiting", "state")]
    {
        for row in answer[list].as_array().into_iter().flatten() {
            let name = text(&row["issue_identifier"]);
            lines.push(format!("  {name}  {list}  {}", text(&row[detail])));
        }
    }
    lines
}
