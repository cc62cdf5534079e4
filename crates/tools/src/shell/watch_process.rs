//! The tools `watch_process` and `watch_process_events`.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Code, Failure, Network, NetworkRequest, ToolGroup};
use carrel_runner::CommandForm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::bash::NetworkChoice;
use super::launch::{Launch, Shell};
use super::process_watcher::{ProcessWatcher, WatchEvent, WatchKind};
use super::shell_table::find;
use crate::files::check_given;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Effect, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

/// Bounds the work for each line.
const MAX_PATTERNS: usize = 32;

const MAX_IDLE_SECONDS: u64 = 3600;

/// Pieces of output between the command and the watcher; a full channel makes the command wait.
const WAITING_PIECES: usize = 16;

/// Common beginnings and words of error messages.
const DEFAULT_PATTERNS: [&str; 5] =
    ["^Error:", "^Fatal:", "^panic:", r"\buncaught\b", "UnhandledPromiseRejection"];

pub(super) struct WatchProcess;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WatchInput {
    /// The command line, for `bash -c`.
    #[schemars(extend("x-brief" = ""))]
    command: String,
    /// The purpose in a few words.
    #[schemars(extend("x-brief" = false))]
    description: Option<String>,
    /// Regular expressions for lines of stderr that report an error, at most 32. By default, common
    /// beginnings of error messages; an empty list matches nothing.
    #[schemars(extend("x-brief" = ""))]
    error_patterns: Option<Vec<String>>,
    /// Kill it after this many seconds without output, at most 3600; 0 for never.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    idle_timeout_seconds: u64,
    /// The working directory, relative to the workspace.
    #[schemars(extend("x-brief" = false))]
    cwd: Option<String>,
    /// The network it gets; at most what the operator allows.
    #[schemars(extend("x-brief" = false))]
    network: Option<NetworkChoice>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WatchFacts {
    shell_id: String,
    error_patterns: Vec<String>,
    idle_timeout_seconds: u64,
}

impl Tool for WatchProcess {
    type Input = WatchInput;
    type Facts = WatchFacts;

    const ABOUT: About = About {
        name: "watch_process",
        title: "Watch a command",
        group: ToolGroup::Shell,
        description: "Starts a server or watcher; its events are stderr lines that match \
            error_patterns (regex), idleness and the end.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: WatchInput) -> ToolResult<WatchFacts> {
        check_given("command", input.command.trim())?;
        let patterns = patterns(input.error_patterns)?;
        let idle = idle(input.idle_timeout_seconds)?;
        let watched = ProcessWatcher::new(patterns, idle)?;
        if let Some(description) = &input.description {
            context.progress(0.0, None, description);
        }
        let mut launch = Launch::new(CommandForm::Line(input.command.clone()), &input.command);
        launch.request.directory = context.workspace().relative_or_top(input.cwd.as_deref());
        launch.request.network = NetworkRequest::of(input.network.map(Network::from));
        let (sender, pieces) = mpsc::channel(WAITING_PIECES);
        let shell = launch.start_with(context, Some((Arc::clone(&watched), sender))).await?;
        watched.add(WatchKind::Started);
        // The task ends with the command, and every command ends with the server.
        carrel_exec::spawn_task(Arc::clone(&watched).follow(shell.job.clone(), pieces));
        let shell_id = shell.job.id().to_string();
        let text = started(&shell_id, &input.command, &watched);
        let facts = WatchFacts {
            shell_id,
            error_patterns: watched.patterns.clone(),
            idle_timeout_seconds: idle.unwrap_or_default().as_secs(),
        };
        Ok(Reply::text(text, facts))
    }
}

fn patterns(given: Option<Vec<String>>) -> Result<Vec<String>, Failure> {
    let patterns = given.unwrap_or_else(|| DEFAULT_PATTERNS.map(str::to_owned).to_vec());
    let refuse = |message: String| Err(Failure::argument("error_patterns", message));
    if patterns.len() > MAX_PATTERNS {
        return refuse(format!("too many error_patterns ({} > {MAX_PATTERNS})", patterns.len()));
    }
    match patterns.iter().position(String::is_empty) {
        Some(index) => refuse(format!("error_patterns[{index}] is empty")),
        None => Ok(patterns),
    }
}

fn idle(seconds: u64) -> Result<Option<Duration>, Failure> {
    if seconds > MAX_IDLE_SECONDS {
        let message = format!("idle_timeout_seconds: {seconds} is more than {MAX_IDLE_SECONDS}");
        return Err(Failure::argument("idle_timeout_seconds", message));
    }
    Ok((seconds > 0).then(|| Duration::from_secs(seconds)))
}

fn started(shell_id: &str, command: &str, watched: &ProcessWatcher) -> String {
    let patterns = if watched.patterns.is_empty() {
        "(none — pattern matching disabled)".to_owned()
    } else {
        watched.patterns.join(" | ")
    };
    let idle = watched.idle.map_or("(disabled)".to_owned(), |idle| format!("{}s", idle.as_secs()));
    format!(
        "shell_id: {shell_id}\nstarted in background: {command}\nerror_patterns: {patterns}\n\
         idle_timeout: {idle}\n\nPoll watch_process_events with this shell_id for its events.\n"
    )
}

pub(super) struct WatchProcessEvents;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EventsInput {
    /// The id that `watch_process` returned.
    #[schemars(extend("x-brief" = ""))]
    shell_id: String,
    /// Only events after this one.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    since_event_id: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EventsFacts {
    shell_id: String,
    /// `running`, `completed (exit 0)`, …
    status: String,
    events: Vec<WatchEvent>,
    /// Number of events that were dropped because there were too many.
    dropped: u64,
}

impl Tool for WatchProcessEvents {
    type Input = EventsInput;
    type Facts = EventsFacts;

    const ABOUT: About = About {
        name: "watch_process_events",
        title: "Events of a watched command",
        group: ToolGroup::Shell,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::Optional,
        description: "Returns the events of a watch_process.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: EventsInput) -> ToolResult<EventsFacts> {
        check_given("shell_id", input.shell_id.trim())?;
        let shell = find(context, &input.shell_id)?;
        let Some(watched) = &shell.watched else {
            let message = format!(
                "shell_id {} was not started by watch_process; use BashOutput instead",
                input.shell_id
            );
            return Err(Failure::new(Code::InvalidArguments, message).with("argument", "shell_id"));
        };
        let (events, dropped) = watched.since(input.since_event_id);
        let text = listed(&shell, watched, &events, dropped);
        let status = shell.status();
        let shell_id = input.shell_id.trim().to_owned();
        Ok(Reply::text(text, EventsFacts { shell_id, status, events, dropped }))
    }
}

fn listed(shell: &Shell, watched: &ProcessWatcher, events: &[WatchEvent], dropped: u64) -> String {
    let mut text = format!(
        "shell_id: {}\ncommand: {}\nstatus: {}\n",
        shell.job.id(),
        shell.command.lines().next().unwrap_or_default(),
        shell.status()
    );
    if !watched.patterns.is_empty() {
        line(&mut text, &format!("error_patterns: {}", watched.patterns.join(" | ")));
    }
    if dropped > 0 {
        let note =
            format!("NOTE: {dropped} earlier events dropped (per-shell cap of 1024 reached)");
        line(&mut text, &note);
    }
    line(&mut text, &format!("\n--- events ({}) ---", events.len()));
    for WatchEvent { id, at, kind } in events {
        let what = match kind {
            WatchKind::Started => "started".to_owned(),
            WatchKind::Error { pattern, line } => {
                format!("error  (matched \"{pattern}\")  {}", super::strip_control(line))
            }
            WatchKind::IdleTimeout { reason } => format!("idle_timeout  {reason}"),
            WatchKind::Exited { exit_code } => format!("exited  exit={exit_code}"),
        };
        line(&mut text, &format!("[{id}] {at}  {what}"));
    }
    text
}
