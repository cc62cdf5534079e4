//! `carrel task watch`: follows the events of a task to its end.
//!
//! The client reconnects from its cursor, so no event is missed or shown twice. Ctrl-C ends the watch and
//! leaves the task running.

use std::pin::pin;
use std::process::ExitCode;

use carrel_client::{FollowOptions, WorkspaceClient};
use carrel_domain::{TaskId, TaskStatus};
use carrel_wire::{TaskEvent, TaskUpdate};
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::arguments::WatchArguments;
use super::connect;
use crate::error::Result;
use crate::output::{self, Format, Invocation};
use crate::signals::{INTERRUPTED, cancel_on_signal};

pub(super) async fn run(arguments: &WatchArguments, cli: &Invocation) -> Result<ExitCode> {
    let client = connect::client(&arguments.server, &cli.environment)?;
    follow(&client, arguments.id, arguments.after, cli.format).await
}

/// Shows the events of a task until its last one.
pub(super) async fn follow(
    client: &WorkspaceClient,
    id: TaskId,
    after: u64,
    format: Format,
) -> Result<ExitCode> {
    let stop = CancellationToken::new();
    let stopped = cancel_on_signal(&stop)?;
    let options = FollowOptions { after, ..FollowOptions::default() };
    let mut events = pin!(client.follow_task(id, options));
    let mut ending = None;
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => {
                output::note(&format!("the task runs on; end it with `carrel task cancel {id}`"));
                return Ok(ExitCode::from(INTERRUPTED));
            }
            event = events.next() => event,
        };
        let Some(event) = event.transpose()? else { break };
        show(&event, format)?;
        ending = event.ending();
    }
    stopped.abort();
    // A cursor behind the last event gets no events; the task itself says how it ended.
    let ending = match ending {
        Some(ending) => ending,
        None => client.task(id).await?.summary.status,
    };
    Ok(if ending == TaskStatus::Completed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(event: &TaskEvent, format: Format) -> Result<()> {
    match format {
        Format::Json => output::json(event),
        Format::Text => output::line(&event_line(event)),
    }
}

fn event_line(event: &TaskEvent) -> String {
    match event.update() {
        TaskUpdate::Status(status) => format!("status  {status}"),
        TaskUpdate::Progress { step, total, description } => {
            format!("step    {step}/{total} {description}")
        }
        TaskUpdate::Line { stream, line } => format!("{stream:<6}  {line}"),
        TaskUpdate::Error(error) => format!("error   {error}"),
        TaskUpdate::Other => {
            format!("{}  {}", event.event.as_str(), serde_json::Value::from(event.data.clone()))
        }
    }
}
