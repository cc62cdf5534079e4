//! `carrel conductor`: operator commands for a running `carrel run --port`, over its HTTP API.

mod transcript;

use std::process::ExitCode;

use carrel_config::Environment;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::error::Result;
use crate::output::{self, Invocation};
use crate::runtime;
use crate::task::{ServerArguments, client};

#[derive(Debug, Subcommand)]
pub(crate) enum ConductorCommand {
    /// Show what runs, is retried, blocked and waits
    State(ServerArguments),
    /// Show an issue
    Show(IssueArguments),
    /// List the last runs of an issue, the latest first
    Runs(IssueArguments),
    /// Print the transcript of a run; with --json as it was recorded
    Transcript(TranscriptArguments),
    /// Dispatch nothing; what runs goes on
    Pause(ServerArguments),
    /// Dispatch nothing, and stop each run after its turn
    Drain(ServerArguments),
    /// Dispatch again
    Resume(ServerArguments),
    /// Poll the tracker now
    Refresh(ServerArguments),
    /// Stop the work on an issue until it is retried or unblocked
    Cancel(IssueArguments),
    /// Dispatch an issue again at once
    Retry(IssueArguments),
    /// Clear the block of an issue, a used-up budget included
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
    /// The answer
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    answer: String,
}

pub(crate) fn run(command: &ConductorCommand, cli: &Invocation) -> Result<ExitCode> {
    if let ConductorCommand::Transcript(TranscriptArguments { issue, run }) = command {
        let client = client(&issue.server, &cli.environment)?;
        runtime()?.block_on(transcript::print(&client, &issue.issue, *run, cli.format))?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = runtime()?.block_on(request(command, &cli.environment))?;
    let text = || reply_lines(command, &answer).iter().try_for_each(|line| output::line(line));
    cli.print(&answer, text)
}

impl ConductorCommand {
    fn server(&self) -> &ServerArguments {
        match self {
            Self::State(server)
            | Self::Pause(server)
            | Self::Drain(server)
            | Self::Resume(server)
            | Self::Refresh(server) => server,
            Self::Show(issue)
            | Self::Runs(issue)
            | Self::Cancel(issue)
            | Self::Retry(issue)
            | Self::Unblock(issue)
            | Self::Transcript(TranscriptArguments { issue, .. })
            | Self::Answer(AnswerArguments { issue, .. }) => &issue.server,
        }
    }
}

async fn request(command: &ConductorCommand, environment: &Environment) -> Result<Value> {
    use ConductorCommand as Command;
    let client = client(command.server(), environment)?;
    let answer = match command {
        Command::State(_) => client.conductor().await,
        Command::Pause(_) => client.send_order("pause").await,
        Command::Drain(_) => client.send_order("drain").await,
        Command::Resume(_) => client.send_order("resume").await,
        Command::Refresh(_) => client.send_order("refresh").await,
        Command::Show(about) => client.conductor_issue(&about.issue).await,
        Command::Runs(about) | Command::Transcript(TranscriptArguments { issue: about, .. }) => {
            client.conductor_runs(&about.issue).await
        }
        Command::Cancel(about) => client.send_issue_order(&about.issue, "cancel", None).await,
        Command::Retry(about) => client.send_issue_order(&about.issue, "retry", None).await,
        Command::Unblock(about) => client.send_issue_order(&about.issue, "unblock", None).await,
        Command::Answer(AnswerArguments { issue: about, answer }) => {
            let body = json!({ "answer": answer });
            client.send_issue_order(&about.issue, "answer", Some(&body)).await
        }
    };
    Ok(answer?)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn reply_lines(command: &ConductorCommand, answer: &Value) -> Vec<String> {
    match command {
        ConductorCommand::State(_) => state(answer),
        ConductorCommand::Pause(_) | ConductorCommand::Drain(_) | ConductorCommand::Resume(_) => {
            vec![format!("{}, {} agents at work", text(&answer["mode"]), answer["agents"])]
        }
        ConductorCommand::Runs(_) | ConductorCommand::Transcript(_) => runs(answer),
        ConductorCommand::Refresh(_) => vec!["the tracker is polled".to_owned()],
        ConductorCommand::Show(_)
        | ConductorCommand::Cancel(_)
        | ConductorCommand::Retry(_)
        | ConductorCommand::Unblock(_)
        | ConductorCommand::Answer(_) => {
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
