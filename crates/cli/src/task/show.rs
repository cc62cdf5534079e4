//! `carrel task ls`, `show` and `cancel`: one request each, printed as a table, a sheet or JSON.

use std::fmt::Write as _;
use std::process::ExitCode;

use carrel_config::Environment;
use carrel_domain::{Age, Clock as _, SystemClock};
use carrel_wire::{StepResult, Task, TaskQuery, TaskSummary};
use serde_json::{Map, Value};

use super::arguments::{ListArguments, SingleArguments};
use super::connect;
use crate::error::CliError;
use crate::output::{self, Format, printable};

const ERROR_CHARS: usize = 60;

pub(super) async fn list(
    arguments: &ListArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let client = connect::client(&arguments.server, environment)?;
    let query = TaskQuery {
        status: arguments.status,
        task_type: arguments.task_type.clone(),
        limit: arguments.limit,
        offset: arguments.offset,
        workspace_id: None,
    };
    let page = client.tasks(&query).await?;
    match format {
        Format::Json => output::json(&page)?,
        Format::Text if page.tasks.is_empty() => output::line("no tasks")?,
        Format::Text => {
            output::write(table(&page.tasks).as_bytes())?;
            let left = page.total.saturating_sub(page.tasks.len() as u64);
            if left > 0 {
                output::note(&format!("{left} more; see --limit and --offset"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(tasks: &[TaskSummary]) -> String {
    let now = SystemClock.now();
    let heading = ["ID", "STATUS", "PRIORITY", "TYPE", "AGE", "TOOK", "ERROR"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(tasks.iter().map(|task| {
        [
            task.id.to_string(),
            task.status.to_string(),
            task.priority.to_string(),
            task.task_type.clone(),
            Age(task.submitted_at.age(now)).to_string(),
            task.execution_time_ms.map_or_else(|| "-".to_owned(), |time| format!("{time} ms")),
            task.error_message.iter().flat_map(|text| text.chars().take(ERROR_CHARS)).collect(),
        ]
    }));
    output::table(&rows)
}

pub(super) async fn show(
    arguments: &SingleArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let client = connect::client(&arguments.server, environment)?;
    let task = client.task(arguments.id).await?;
    match format {
        Format::Json => output::json(&task)?,
        Format::Text => output::write(sheet(&task).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn sheet(task: &Task) -> String {
    let mut text = String::new();
    let summary = &task.summary;
    let time = |at: Option<carrel_domain::Timestamp>| at.map(|at| at.to_string());
    for (name, value) in [
        ("task", Some(summary.id.to_string())),
        ("workspace", Some(summary.workspace_id.to_string())),
        ("status", Some(summary.status.to_string())),
        ("priority", Some(summary.priority.to_string())),
        ("type", Some(summary.task_type.clone())),
        ("submitted", time(Some(summary.submitted_at))),
        ("started", time(summary.started_at)),
        ("completed", time(summary.completed_at)),
        ("took", summary.execution_time_ms.map(|time| format!("{time} ms"))),
        ("attempt", Some(summary.attempt.to_string())),
        ("error", summary.error_message.clone()),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "{name:<10} {}", printable(&value));
        }
    }
    text.push_str(&steps(task));
    text
}

/// Lists the results of the steps, or before the end the steps as they were submitted.
fn steps(task: &Task) -> String {
    let heading = ["STEP", "ACTION", "STATUS", "EXIT", "TOOK", "ERROR"].map(str::to_owned);
    let mut rows = vec![heading];
    match &task.result {
        Some(result) => rows.extend(result.steps.iter().enumerate().map(ended)),
        None => rows.extend(task.configuration.steps.iter().enumerate().map(submitted)),
    }
    output::table(&rows)
}

fn ended((index, step): (usize, &StepResult)) -> [String; 6] {
    let none = || "-".to_owned();
    [
        (index + 1).to_string(),
        step.action.clone(),
        step.status.as_str().to_owned(),
        step.exit_code.map_or_else(none, |code| code.to_string()),
        format!("{} ms", step.duration_ms),
        step.error.clone().unwrap_or_else(none),
    ]
}

fn submitted((index, step): (usize, &Map<String, Value>)) -> [String; 6] {
    let action = step.get("action").and_then(Value::as_str).unwrap_or("-");
    let [number, action] = [(index + 1).to_string(), action.to_owned()];
    [number, action, "-".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()]
}

pub(super) async fn cancel(
    arguments: &SingleArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let client = connect::client(&arguments.server, environment)?;
    let reply = client.cancel_task(arguments.id).await?;
    match format {
        Format::Json => output::json(&reply)?,
        Format::Text if reply.status.is_terminal() => output::line(&reply.status.to_string())?,
        Format::Text => output::line(&format!("{}, its worker has been told", reply.status))?,
    }
    Ok(ExitCode::SUCCESS)
}
