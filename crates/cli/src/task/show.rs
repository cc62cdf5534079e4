//! `carrel task ls`, `show` and `cancel`: one request each, printed as a table, a sheet or JSON.

use std::process::ExitCode;

use carrel_domain::{Age, Clock as _, SystemClock};
use carrel_wire::{StepResult, Task, TaskQuery, TaskSummary};
use serde_json::{Map, Value};

use super::arguments::{ListArguments, SingleArguments};
use super::connect;
use crate::error::Result;
use crate::output::{self, Invocation};

const ERROR_CHARS: usize = 60;

pub(super) async fn list(arguments: &ListArguments, cli: &Invocation) -> Result<ExitCode> {
    let client = connect::client(&arguments.server, &cli.environment)?;
    let query = TaskQuery {
        status: arguments.status,
        task_type: arguments.task_type.clone(),
        limit: arguments.limit,
        offset: arguments.offset,
        ..TaskQuery::default()
    };
    let page = client.tasks(&query).await?;
    let text = || {
        if page.tasks.is_empty() {
            return output::line("no tasks");
        }
        output::write(table(&page.tasks).as_bytes())?;
        let left = page.total.saturating_sub(page.tasks.len() as u64);
        if left > 0 {
            output::note(&format!("{left} more; see --limit and --offset"));
        }
        Ok(())
    };
    cli.print(&page, text)
}

fn table(tasks: &[TaskSummary]) -> String {
    let now = SystemClock.now();
    let heading = ["ID", "STATUS", "PRIORITY", "TYPE", "AGE", "TOOK", "ERROR"];
    let rows = tasks.iter().map(|task| {
        [
            task.id.to_string(),
            task.status.to_string(),
            task.priority.to_string(),
            task.task_type.clone(),
            Age(task.submitted_at.age(now)).to_string(),
            task.execution_time_ms.map_or_else(|| "-".to_owned(), |time| format!("{time} ms")),
            task.error_message.iter().flat_map(|text| text.chars().take(ERROR_CHARS)).collect(),
        ]
    });
    output::table(heading, rows)
}

pub(super) async fn show(arguments: &SingleArguments, cli: &Invocation) -> Result<ExitCode> {
    let client = connect::client(&arguments.server, &cli.environment)?;
    let task = client.task(arguments.id).await?;
    cli.print(&task, || output::write(sheet(&task).as_bytes()))
}

fn sheet(task: &Task) -> String {
    let summary = &task.summary;
    let time = |at: Option<carrel_domain::Timestamp>| at.map(|at| at.to_string());
    let fields = output::sheet([
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
    ]);
    fields + &steps(task)
}

/// Lists the results of the steps, or before the end the steps as they were submitted.
fn steps(task: &Task) -> String {
    let heading = ["STEP", "ACTION", "STATUS", "EXIT", "TOOK", "ERROR"];
    match &task.result {
        Some(result) => output::table(heading, result.steps.iter().enumerate().map(ended)),
        None => output::table(heading, task.configuration.steps.iter().enumerate().map(submitted)),
    }
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

pub(super) async fn cancel(arguments: &SingleArguments, cli: &Invocation) -> Result<ExitCode> {
    let client = connect::client(&arguments.server, &cli.environment)?;
    let reply = client.cancel_task(arguments.id).await?;
    let told = if reply.status.is_terminal() { "" } else { ", its worker has been told" };
    cli.print(&reply, || output::line(&format!("{}{told}", reply.status)))
}
