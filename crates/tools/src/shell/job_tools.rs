//! The tools `BashOutput` and `KillShell`, for commands that were started.

use std::time::Duration;

use carrel_domain::Failure;
use carrel_exec::{Cursor, JobStatus, WakeReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command_facts::{CommandFacts, add_notes};
use super::control_sequences::strip_control;
use super::launch::Shell;
use super::shell_table::find;
use crate::files::check_given;
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::{line, or_words};
use crate::tool::{About, Effect, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

const MAX_WAIT: Duration = Duration::from_mins(1);

pub(super) struct BashOutput;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OutputInput {
    /// The id that `Bash` or `watch_process` returned.
    shell_id: String,
    /// The position to read from: `next_cursor` of an earlier call, or 0 for the beginning. By default, the
    /// end of the last call.
    cursor: Option<u64>,
    /// Seconds to wait for more output or the end; 0 by default, at most 60.
    wait_seconds: Option<u64>,
    /// Only lines that match this regular expression.
    filter: Option<String>,
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OutputFacts {
    shell_id: String,
    /// `running`, `completed (exit 0)`, …
    status: String,
    ended: bool,
    /// The position of the first byte of the text.
    cursor: u64,
    next_cursor: u64,
    more: bool,
    /// The log was full; later output is lost.
    log_full: bool,
    result: Option<CommandFacts>,
}

impl Tool for BashOutput {
    type Input = OutputInput;
    type Facts = OutputFacts;

    const ABOUT: About = About {
        name: "BashOutput",
        title: "Read a command's output",
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::Optional,
        description: "Reads the output of a command by its shell_id: new output since \
            the last call, or from any cursor. Works while it runs and after its end, for background \
            commands and for output that was too long for a reply. Set wait_seconds instead of polling.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: OutputInput) -> ToolResult<OutputFacts> {
        check_given("shell_id", input.shell_id.trim())?;
        let filter = input.filter.as_deref().map(super::process_watcher::pattern).transpose()?;
        let shell = find(context, &input.shell_id)?;
        let cursor = input.cursor.map_or_else(|| shell.shown(), Cursor);
        wait(context, &shell, cursor, input.wait_seconds).await?;
        let chunk = shell.job.read(cursor, context.reply_limit(input.max_bytes)).await?;
        let (text, next) = chunk.to_text();
        shell.show_to(next);
        let shown = strip_control(&text);
        let shown = match &filter {
            None => shown,
            Some(filter) => {
                shown.split_inclusive('\n').filter(|line| filter.is_match(line)).collect()
            }
        };
        let end = shell.job.log_end();
        let mut reply = heading(&shell);
        line(&mut reply, &format!("--- output (bytes {cursor}–{next} of {end}) ---"));
        let nothing = match &filter {
            Some(_) if cursor < next => "no line matches the filter",
            _ if shell.completed().is_some() => "no more output; it has ended",
            _ => "no new output",
        };
        reply.push_str(&or_words(shown, nothing));
        if let Some(completed) = shell.completed().filter(|_| next >= end) {
            add_notes(&mut reply, completed);
        }
        let facts = OutputFacts {
            shell_id: input.shell_id.trim().to_owned(),
            status: shell.status(),
            ended: shell.completed().is_some(),
            cursor: cursor.0,
            next_cursor: next.0,
            more: next < end,
            log_full: chunk.truncated,
            result: shell.completed().map(CommandFacts::of),
        };
        Ok(Reply::text(reply, facts))
    }
}

async fn wait(
    context: &ToolContext,
    shell: &Shell,
    cursor: Cursor,
    seconds: Option<u64>,
) -> Result<(), Failure> {
    let Some(seconds) = seconds else { return Ok(()) };
    let time = Duration::from_secs(seconds).min(MAX_WAIT);
    tokio::select! {
        woken = shell.job.wait(cursor, time) => {
            // In every case the available output is read.
            let (WakeReason::Output | WakeReason::Ended | WakeReason::Timeout) = woken?;
            Ok(())
        }
        () = context.cancel().cancelled() => Ok(()),
    }
}

pub(super) fn heading(shell: &Shell) -> String {
    format!(
        "command: {}\nstatus: {}\nstarted: {}\n\n",
        shell.command.lines().next().unwrap_or_default(),
        shell.status(),
        shell.started
    )
}

const LAST_BYTES: usize = 4 * 1024;

pub(super) struct KillShell;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct KillInput {
    /// The id that `Bash` or `watch_process` returned.
    shell_id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KillFacts {
    shell_id: String,
    was_running: bool,
    result: Option<CommandFacts>,
}

impl Tool for KillShell {
    type Input = KillInput;
    type Facts = KillFacts;

    const ABOUT: About = About {
        name: "KillShell",
        title: "Kill a command",
        effect: Effect::REPLACES,
        workspaces: WorkspaceChoice::Optional,
        description: "Kills a command with every process it started: SIGTERM, and SIGKILL \
            half a second later. Returns its last output. The shell_id is no longer valid.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: KillInput) -> ToolResult<KillFacts> {
        check_given("shell_id", input.shell_id.trim())?;
        let shell = find(context, &input.shell_id)?;
        let was_running = shell.job.status() == JobStatus::Running;
        shell.job.kill().await;
        shell.forget(context);
        let mut text = format!("killed: {}\n", input.shell_id.trim());
        if !was_running {
            line(&mut text, "it had already ended");
        }
        if let Some(completed) = shell.completed() {
            let last = strip_control(&completed.outcome.stdout.to_text(LAST_BYTES));
            if !last.is_empty() {
                line(&mut text, "--- last output ---");
                text.push_str(&last);
            }
        }
        let result = shell.completed().map(CommandFacts::of);
        Ok(Reply::text(text, KillFacts { shell_id: input.shell_id, was_running, result }))
    }
}
