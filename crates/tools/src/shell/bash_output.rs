//! The tool `BashOutput`.

use std::fmt::Write as _;
use std::time::Duration;

use carrel_domain::Failure;
use carrel_exec::{Cursor, WakeReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bash::required;
use super::command_facts::CommandFacts;
use super::control_sequences::strip_control;
use super::launch::Shell;
use crate::response::Reply;
use crate::tool::{About, CallRules, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

/// Bounds the output of one call.
const MAX_BYTES: usize = 100 * 1024;

const MAX_WAIT: Duration = Duration::from_mins(1);

pub(super) struct BashOutput;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The id that `Bash` or `watch_process` returned.
    shell_id: String,
    /// The position to read from: `next_cursor` of an earlier call, or 0 for the beginning. By default, the
    /// end of the last call in this session.
    cursor: Option<u64>,
    /// Seconds to wait for more output or the end; 0 by default, at most 60.
    wait_seconds: Option<u64>,
    /// Only lines that match this regular expression.
    filter: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
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
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "BashOutput",
        title: "Read a command's output",
        class: Class::Execute,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::Optional,
        rules: CallRules::EXECUTE,
        description: "Reads the output of a command of this session by its shell_id: new output since \
            the last call, or from any cursor. Works while it runs and after its end, for background \
            commands and for output that was too long for a reply. Set wait_seconds instead of polling.",
    };

    async fn call(&self, context: &ToolContext, input: Input) -> Result<Reply<Facts>, Failure> {
        required("shell_id", &input.shell_id)?;
        let filter = input.filter.as_deref().map(super::process_watcher::pattern).transpose()?;
        let shell = Shell::find(context, &input.shell_id)?;
        let cursor = input.cursor.map_or_else(|| shell.shown(), Cursor);
        wait(context, &shell, cursor, input.wait_seconds).await?;
        let chunk = shell.job.read(cursor, MAX_BYTES).await?;
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
        writeln!(reply, "--- output (bytes {cursor}–{next} of {end}) ---")
            .expect("a string takes all");
        reply.push_str(&shown);
        let facts = Facts {
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
