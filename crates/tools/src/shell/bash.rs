//! The tool `Bash`.

use std::time::Duration;

use carrel_domain::{Failure, Network, NetworkRequest, ToolGroup};
use carrel_exec::{CaptureLimits, ExitStatus, Output};
use carrel_runner::{CommandForm, Completed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command_facts::{CommandFacts, add_notes};
use super::control_sequences::strip_control;
use super::launch::{Launch, Shell};
use crate::files::check_given;
use crate::redaction::CutGuard;
use crate::reply_limit::{MaxBytes, shown_output};
use crate::response::Reply;
use crate::text::{end_line, line};
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

const DEFAULT_TIMEOUT: u64 = 120;

/// A longer timeout is lowered to this; longer work belongs in the background.
const MAX_TIMEOUT: u64 = 600;

/// The exit code of `timeout(1)` for a command that it killed.
const TIMED_OUT: i32 = 124;

/// Added to the number of a signal, as shells do.
const SIGNAL_OFFSET: i32 = 128;

pub(super) struct Bash;

/// The network of a command.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NetworkChoice {
    /// No interface at all.
    None,
    /// A `localhost` of the workspace's own.
    Loopback,
    /// The host's network.
    Full,
}

impl From<NetworkChoice> for Network {
    fn from(choice: NetworkChoice) -> Self {
        match choice {
            NetworkChoice::None => Self::None,
            NetworkChoice::Loopback => Self::Loopback,
            NetworkChoice::Full => Self::Full,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The command line, for `bash -c`.
    #[schemars(extend("x-brief" = ""))]
    command: String,
    /// The purpose in a few words, shown to people who watch.
    #[schemars(extend("x-brief" = false))]
    description: Option<String>,
    /// Timeout in seconds; 120 by default, at most 600. It does not apply in the background.
    #[schemars(extend("x-brief" = "seconds; 120, at most 600"))]
    timeout: Option<u64>,
    /// Return at once; read the output with `BashOutput`, kill it with `KillShell`.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    run_in_background: bool,
    /// The working directory, relative to the workspace.
    #[schemars(extend("x-brief" = ""))]
    cwd: Option<String>,
    /// The network it gets; at most what the operator allows.
    #[schemars(extend("x-brief" = ""))]
    network: Option<NetworkChoice>,
    /// Take a snapshot of the workspace before the command.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    snapshot: bool,
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// For `BashOutput`, which returns the whole output, also after the end.
    shell_id: String,
    running: bool,
    #[serde(flatten)]
    command: Option<CommandFacts>,
    /// The number of the snapshot before it, if one was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
}

impl Tool for Bash {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "Bash",
        title: "Run a command",
        group: ToolGroup::Shell,
        description: "Runs bash in a sandbox: only the workspace is writable, no network unless \
            the operator allows it. `cd` and variables do not last. BashOutput reads long or \
            background output. Prefer Read, Grep, Edit to cat, grep, sed.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        check_given("command", input.command.trim())?;
        let seconds = timeout_seconds(input.timeout, DEFAULT_TIMEOUT, MAX_TIMEOUT);
        let background = input.run_in_background;
        let mut launch = Launch::new(CommandForm::Line(input.command.clone()), &input.command);
        launch.request.directory = context.workspace().relative_or_top(input.cwd.as_deref());
        launch.request.network = NetworkRequest::of(input.network.map(Network::from));
        launch.request.limits.wall = (!background).then(|| Duration::from_secs(seconds));
        launch.request.output = Output::Combined(CaptureLimits::STDOUT);
        launch.snapshot = input.snapshot;
        if let Some(description) = &input.description {
            context.progress(0.0, None, description);
        }
        let shell = launch.start(context).await?;
        let shell_id = shell.job.id().to_string();
        let snapshot = shell.snapshot.clone();
        let note = snapshot.iter().filter(|_| input.snapshot);
        let note = note.map(|snapshot| format!("[the state before is snapshot {snapshot}]\n"));
        let note = note.collect::<String>();
        if background {
            let started =
                format!("shell_id: {shell_id}\nstarted in background: {}\n", input.command);
            let facts = Facts { shell_id, running: true, command: None, snapshot };
            return Ok(Reply::text(started + &note, facts));
        }
        let completed = shell.wait(context).await?;
        let output = &completed.outcome.stdout;
        let limit = context.reply_limit(input.max_bytes);
        let limit = shown_output(output.total_bytes, output.end(), limit, input.max_bytes);
        Ok(reply(&context.cut_guard(), completed, seconds, (&shell, limit), &note))
    }
}

fn reply(
    guard: &CutGuard,
    completed: &Completed,
    seconds: u64,
    (shell, limit): (&Shell, usize),
    note: &str,
) -> Reply<Facts> {
    let output = guard.output(&completed.outcome.stdout, limit);
    let shell_id = shell.job.id().to_string();
    let text = shown(completed, &output, seconds, (&shell_id, limit)) + note;
    let mut command = CommandFacts::of(completed);
    command.truncated |= completed.outcome.stdout.total_bytes > limit as u64;
    let snapshot = shell.snapshot.clone();
    Reply::text(text, Facts { shell_id, running: false, command: Some(command), snapshot })
}

/// Returns the reply of a background command that has ended, as if a call had waited for it.
pub(super) fn ended_reply(
    guard: &CutGuard,
    shell: &Shell,
    limit: usize,
) -> Result<Reply<Facts>, Failure> {
    let completed = shell.result()?;
    let seconds = shell.job.elapsed().as_secs();
    Ok(reply(guard, completed, seconds, (shell, limit), ""))
}

/// Returns a timeout in seconds: `default` for none or 0, and at most `max`.
pub(crate) fn timeout_seconds(given: Option<u64>, default: u64, max: u64) -> u64 {
    given.filter(|seconds| *seconds > 0).unwrap_or(default).min(max)
}

fn shown(
    completed: &Completed,
    output: &str,
    seconds: u64,
    (shell_id, limit): (&str, usize),
) -> String {
    let outcome = &completed.outcome;
    let mut text = strip_control(output);
    let total = outcome.stdout.total_bytes;
    if total > limit as u64 {
        // The head is half of the limit, so that the rest begins there.
        let cursor = limit / 2;
        let missing = total - limit as u64;
        line(
            &mut text,
            &format!(
                "... (output truncated, {missing} bytes elided; BashOutput shell_id={shell_id} \
                 cursor={cursor} reads on, filter=REGEX finds lines)"
            ),
        );
    }
    if outcome.timed_out() {
        line(&mut text, &format!("bash: timed out after {seconds}s"));
    }
    add_notes(&mut text, completed);
    match exit_code(completed) {
        0 if outcome.stdout.total_bytes == 0 && text.is_empty() => {
            line(&mut text, "no output, exit 0");
        }
        0 if text.trim().is_empty() => line(&mut text, "only white space, exit 0"),
        0 => end_line(&mut text),
        code => line(&mut text, &format!("exit: {code}")),
    }
    text
}

pub(crate) fn exit_code(completed: &Completed) -> i32 {
    let outcome = &completed.outcome;
    if outcome.timed_out() {
        return TIMED_OUT;
    }
    match outcome.end {
        ExitStatus::Exited(code) => code,
        ExitStatus::Signaled(signal) => SIGNAL_OFFSET + signal,
        ExitStatus::Lost => SIGNAL_OFFSET + 9,
    }
}
