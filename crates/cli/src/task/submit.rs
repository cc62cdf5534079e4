//! `carrel task submit`: queues a task.
//!
//! Every request has an idempotency key, a generated one if the caller names none. A reply that is lost is
//! answered by sending the same request again, up to four times; the server carries it out once.

use std::process::ExitCode;
use std::time::Duration;

use carrel_client::{ClientError, WorkspaceClient};
use carrel_domain::TaskId;
use carrel_wire::{StepRequest, TaskAccepted};
use serde_json::{Map, Value, json};
use tracing::warn;

use super::arguments::SubmitArguments;
use super::{connect, steps, watch};
use crate::error::Result;
use crate::output::{self, Format, Invocation};

const MAX_ATTEMPTS: u32 = 4;

pub(super) async fn run(arguments: &SubmitArguments, cli: &Invocation) -> Result<ExitCode> {
    let client = connect::client(&arguments.server, &cli.environment)?;
    let accepted = send(&client, &submission(arguments)?).await?;
    let id = accepted.task_id;
    if arguments.watch {
        if cli.format == Format::Text {
            output::note(&format!("task {id}"));
        }
        return watch::follow(&client, id, 0, cli.format).await;
    }
    let text = || {
        output::line(&id.to_string())?;
        output::note(&format!("queued; follow it with `carrel task watch {id}`"));
        Ok(())
    };
    cli.print(&accepted, text)
}

/// Builds the request. Flags override the file.
fn submission(arguments: &SubmitArguments) -> Result<Map<String, Value>> {
    let mut task = if let Some(path) = &arguments.file {
        steps::read(path)?
    } else {
        let steps: Vec<_> = arguments.commands.iter().map(StepRequest::command).collect();
        Map::from_iter([("steps".to_owned(), json!(steps))])
    };
    let given = [
        ("priority", arguments.priority.map(|priority| Value::from(priority.as_str()))),
        ("timeout_seconds", arguments.timeout.map(Value::from)),
        ("idempotency_key", arguments.idempotency_key.clone().map(Value::from)),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    task.extend(given);
    // With a key the request can be sent again when its reply is lost.
    task.entry("idempotency_key")
        .or_insert_with(|| format!("carrel-task-{}", TaskId::generate()).into());
    Ok(task)
}

async fn send(
    client: &WorkspaceClient,
    task: &Map<String, Value>,
) -> Result<TaskAccepted, ClientError> {
    let mut attempts = 1;
    loop {
        match client.submit_task_json(task).await {
            Err(error) if attempts < MAX_ATTEMPTS && is_lost(&error) => {
                warn!(%error, "the reply was lost, sending the same request again");
                tokio::time::sleep(Duration::from_secs(1) * attempts).await;
                attempts += 1;
            }
            sent => return sent,
        }
    }
}

/// Returns whether the server may have received the request.
fn is_lost(error: &ClientError) -> bool {
    matches!(error, ClientError::Unreachable { source, .. } if !source.is_unsent())
}
