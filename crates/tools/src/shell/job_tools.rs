//! The tools `BashOutput` and `KillShell`, for commands that were started.

use std::time::Duration;

use carrel_domain::{Failure, ToolGroup};
use carrel_exec::{Chunk, Cursor, JobStatus, MAX_READ_BYTES, WakeReason};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command_facts::{CommandFacts, add_notes};
use super::control_sequences::strip_control;
use super::job_records::{JobEnd, StoredJob};
use super::job_view::read_stored;
use super::launch::Shell;
use super::shell_table::{FoundJob, find, find_anywhere};
use crate::files::check_given;
use crate::redaction::CutGuard;
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::{line, or_words};
use crate::tool::{About, Effect, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

const MAX_WAIT: Duration = Duration::from_mins(1);

/// Bytes of a log that one call looks at for lines that match its filter.
const MAX_FILTERED: u64 = 256 << 20;

pub(super) struct BashOutput;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OutputInput {
    /// The id that `Bash` or `watch_process` returned.
    #[schemars(extend("x-brief" = ""))]
    shell_id: String,
    /// The position to read from: `next_cursor` of an earlier call, or 0 for the beginning. By default, the
    /// end of the last call.
    #[schemars(extend("x-brief" = "0 is the start"))]
    cursor: Option<u64>,
    /// Seconds to wait for more output or the end; 0 by default, at most 60.
    #[schemars(extend("x-brief" = ""))]
    wait_seconds: Option<u64>,
    /// Only lines that match this regular expression.
    #[schemars(extend("x-brief" = false))]
    filter: Option<String>,
    #[schemars(extend("x-brief" = false))]
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
        group: ToolGroup::Shell,
        effect: Effect::NONE,
        workspaces: WorkspaceChoice::Optional,
        description: "Reads new output of a command by its shell_id.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: OutputInput) -> ToolResult<OutputFacts> {
        check_given("shell_id", input.shell_id.trim())?;
        let filter = input.filter.as_deref().map(super::process_watcher::pattern).transpose()?;
        let shell = match find_anywhere(context, &input.shell_id).await? {
            FoundJob::Here(shell) => shell,
            FoundJob::Stored(stored) => {
                let limit = context.reply_limit(input.max_bytes);
                return stored_output(stored, &input, filter.as_ref(), limit).await;
            }
        };
        let cursor = input.cursor.map_or_else(|| shell.shown(), Cursor);
        wait(context, &shell, cursor, input.wait_seconds).await?;
        let limit = context.reply_limit(input.max_bytes);
        let guard = context.cut_guard();
        let LogPart { text: shown, next, truncated } = match &filter {
            None => LogPart::read(&guard, &shell, cursor, limit).await?,
            Some(filter) => LogPart::find(&guard, &shell, cursor, (limit, filter)).await?,
        };
        shell.show_to(next);
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
            log_full: truncated,
            result: shell.completed().map(CommandFacts::of),
        };
        Ok(Reply::text(reply, facts))
    }
}

/// A part of a command's log as a reply shows it.
struct LogPart {
    text: String,
    next: Cursor,
    /// Output is missing in the log.
    truncated: bool,
}

impl LogPart {
    async fn read(
        guard: &CutGuard,
        shell: &Shell,
        from: Cursor,
        limit: usize,
    ) -> Result<Self, Failure> {
        let chunk = read_whole_secrets(guard, shell, from, limit).await?;
        let (text, next) = chunk.to_text();
        Ok(Self { text: strip_control(&text), next, truncated: chunk.truncated })
    }

    /// Collects matching lines until the reply is full, the log has no more, or [`MAX_FILTERED`] bytes were
    /// looked at.
    async fn find(
        guard: &CutGuard,
        shell: &Shell,
        from: Cursor,
        (limit, filter): (usize, &Regex),
    ) -> Result<Self, Failure> {
        let from = after_secret(guard, shell, from).await?;
        let mut part = Self { text: String::new(), next: from, truncated: false };
        while part.next.0 - from.0 < MAX_FILTERED {
            let chunk = shell.job.read(part.next, MAX_READ_BYTES).await?;
            part.truncated = chunk.truncated;
            if chunk.bytes.is_empty() || part.take_matches(guard, &chunk.bytes, (limit, filter)) {
                break;
            }
        }
        Ok(part)
    }

    /// Takes the matching lines of a chunk, and returns whether the text is full. A line that the chunk cuts is
    /// left to the next one, unless it is as long as a chunk or the last of the log.
    fn take_matches(
        &mut self,
        guard: &CutGuard,
        bytes: &[u8],
        (limit, filter): (usize, &Regex),
    ) -> bool {
        let full = bytes.len() == MAX_READ_BYTES;
        let cut = bytes.iter().rposition(|byte| full && *byte == b'\n');
        let whole = cut.map_or(bytes, |feed| &bytes[..=feed]);
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            let mut shown = strip_control(&String::from_utf8_lossy(line));
            // Before it is matched, or a filter could try the characters of a secret one by one.
            guard.mask(&mut shown);
            let matches = filter.is_match(shown.trim_end_matches('\n'));
            if matches && !self.text.is_empty() && self.text.len() + shown.len() > limit {
                return true;
            }
            if matches {
                self.text.push_str(&shown[..shown.floor_char_boundary(limit)]);
            }
            self.next.0 += line.len() as u64;
        }
        false
    }
}

fn filtered(text: String, filter: Option<&Regex>) -> String {
    let Some(filter) = filter else { return text };
    text.split_inclusive('\n').filter(|line| filter.is_match(line)).collect()
}

/// Returns the output of a command of an earlier process. There is nothing to wait for.
async fn stored_output(
    stored: StoredJob,
    input: &OutputInput,
    filter: Option<&Regex>,
    limit: usize,
) -> ToolResult<OutputFacts> {
    let status = stored.end.status();
    let command = stored.record.command.lines().next().unwrap_or_default().to_owned();
    let mut reply =
        format!("command: {command}\nstatus: {status}\nstarted: {}\n\n", stored.record.started);
    let cursor = input.cursor.unwrap_or_default();
    let part = read_stored(stored, cursor, limit).await?;
    let (next, end) = (part.next, part.log_bytes);
    line(&mut reply, &format!("--- output (bytes {cursor}–{next} of {end}) ---"));
    let shown = filtered(strip_control(&part.text), filter);
    reply.push_str(&or_words(shown, "no output here"));
    let facts = OutputFacts {
        shell_id: input.shell_id.trim().to_owned(),
        status,
        ended: true,
        cursor,
        next_cursor: next,
        more: next < end,
        log_full: false,
        result: None,
    };
    Ok(Reply::text(reply, facts))
}

/// Reads a part of the log that neither begins nor ends inside a secret. One that may go on after the part is
/// left to the next one.
pub(super) async fn read_whole_secrets(
    guard: &CutGuard,
    shell: &Shell,
    cursor: Cursor,
    limit: usize,
) -> Result<Chunk, Failure> {
    let from = after_secret(guard, shell, cursor).await?;
    let mut chunk = shell.job.read(from, limit).await?;
    let begun = guard.begun_at_end(&chunk.bytes);
    if begun > 0 && !chunk.end {
        // A part that would be empty is skipped: the next one would begin at the same place.
        let is_stuck = begun == chunk.bytes.len() && chunk.bytes.len() >= limit;
        chunk.bytes.truncate(chunk.bytes.len() - begun);
        chunk.next.0 -= if is_stuck { 0 } else { begun as u64 };
    }
    Ok(chunk)
}

/// Returns the end of the secret that a cursor is inside of, or the cursor itself.
async fn after_secret(guard: &CutGuard, shell: &Shell, cursor: Cursor) -> Result<Cursor, Failure> {
    let reach = guard.reach();
    // A cursor beyond the log is refused where the log is read.
    if reach == 0 || cursor > shell.job.log_end() {
        return Ok(cursor);
    }
    let before = reach.min(usize::try_from(cursor.0).unwrap_or(usize::MAX));
    let from = Cursor(cursor.0 - before as u64);
    let around = shell.job.read(from, before + reach).await?;
    let end = guard.end_around(&around.bytes, before);
    Ok(end.map_or(cursor, |end| Cursor(from.0 + end as u64)))
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
    #[schemars(extend("x-brief" = ""))]
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
        group: ToolGroup::Shell,
        effect: Effect::REPLACES,
        workspaces: WorkspaceChoice::Optional,
        description: "Kills a command and all its processes.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: KillInput) -> ToolResult<KillFacts> {
        check_given("shell_id", input.shell_id.trim())?;
        let shell = find(context, &input.shell_id)?;
        let was_running = shell.job.status() == JobStatus::Running;
        shell.cause.set(JobEnd::Killed);
        shell.job.kill().await;
        shell.forget(context).await?;
        let mut text = format!("killed: {}\n", input.shell_id.trim());
        if !was_running {
            line(&mut text, "it had already ended");
        }
        if let Some(completed) = shell.completed() {
            let last =
                strip_control(&context.cut_guard().output(&completed.outcome.stdout, LAST_BYTES));
            if !last.is_empty() {
                line(&mut text, "--- last output ---");
                text.push_str(&last);
            }
        }
        let result = shell.completed().map(CommandFacts::of);
        Ok(Reply::text(text, KillFacts { shell_id: input.shell_id, was_running, result }))
    }
}
