//! `carrel task ls | show | cancel`

use std::fmt::Write as _;
use std::process::ExitCode;

use carrel_client::{Task, TaskQuery};
use carrel_config::Environment;
use carrel_domain::{Age, Clock as _, SystemClock};
use serde_json::Value;

use super::arguments::{ListArguments, SingleArguments};
use super::connect;
use crate::error::CliError;
use crate::output::{self, Format, printable};

/// Characters of an error that the list shows.
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

fn table(tasks: &[Task]) -> String {
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
    let time = |at: Option<carrel_domain::Timestamp>| at.map(|at| at.to_string());
    for (name, value) in [
        ("task", Some(task.id.to_string())),
        ("workspace", Some(task.workspace_id.to_string())),
        ("status", Some(task.status.to_string())),
        ("priority", Some(task.priority.to_string())),
        ("type", Some(task.task_type.clone())),
        ("submitted", time(Some(task.submitted_at))),
        ("started", time(task.started_at)),
        ("completed", time(task.completed_at)),
        ("took", task.execution_time_ms.map(|time| format!("{time} ms"))),
        ("attempt", Some(task.attempt.to_string())),
        ("error", task.error_message.clone()),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "{name:<10} {}", printable(&value));
        }
    }
    text.push_str(&steps(task));
    text
}

fn steps(task: &Task) -> String {
    let listed = |value: Option<&Value>| value?.get("steps")?.as_array().cloned();
    let asked = || listed(task.more.get("configuration"));
    let steps = listed(task.result.as_ref()).or_else(asked).unwrap_or_default();
    let heading = ["STEP", "ACTION", "STATUS", "EXIT", "TOOK", "ERROR"].map(str::to_owned);
    let field = |step: &Value, name: &str| match &step[name] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut rows = vec![heading];
    rows.extend(steps.iter().enumerate().map(|(index, step)| {
        let took = step["duration_ms"].as_u64().map(|time| format!("{time} ms"));
        [
            (index + 1).to_string(),
            field(step, "action"),
            field(step, "status"),
            field(step, "exit_code"),
            took.unwrap_or_else(|| "-".to_owned()),
            field(step, "error"),
        ]
    }));
    output::table(&rows)
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
