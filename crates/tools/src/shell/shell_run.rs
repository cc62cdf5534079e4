//! The tool `shell_run`.

use std::time::Duration;

use carrel_domain::{Code, Failure, Network, NetworkRequest, ToolGroup};
use carrel_runner::{CommandForm, Completed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bash::{NetworkChoice, exit_code};
use super::command_facts::{CommandFacts, add_notes};
use super::control_sequences::strip_control;
use super::launch::Launch;
use crate::files::check_given;
use crate::redaction::CutGuard;
use crate::reply_limit::{shorten, shown_output};
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

const DEFAULT_TIMEOUT_MS: u64 = 60_000;
const MIN_TIMEOUT_MS: u64 = 500;
const MAX_TIMEOUT_MS: u64 = 120_000;

pub(super) struct ShellRun;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The program: a name, or a path in the workspace such as `./script`.
    #[schemars(extend("x-brief" = ""))]
    cmd: String,
    /// Its arguments; no shell interprets them.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    args: Vec<String>,
    /// Timeout in milliseconds, 500 to 120000; 60000 by default.
    #[schemars(extend("x-brief" = ""))]
    timeout_ms: Option<u64>,
    /// The working directory, relative to the workspace.
    #[schemars(extend("x-brief" = ""))]
    cwd: Option<String>,
    /// The network it gets; at most what the operator allows.
    #[schemars(extend("x-brief" = false))]
    network: Option<NetworkChoice>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    command: Vec<String>,
    /// For `BashOutput`, which returns the whole output.
    shell_id: String,
    #[serde(flatten)]
    result: CommandFacts,
}

impl Tool for ShellRun {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "shell_run",
        title: "Run a program",
        group: ToolGroup::Shell,
        description: "Runs one program without a shell: for arguments with quotes or foreign \
            text.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        check_given("cmd", input.cmd.trim())?;
        let timeout = timeout(input.timeout_ms)?;
        let mut command = vec![input.cmd.trim().to_owned()];
        command.extend(input.args);
        let workspace = context.workspace();
        let argv = command.iter().map(|word| workspace.respelled(word).into()).collect();
        let mut launch = Launch::new(CommandForm::Argv(argv), command.join(" "));
        launch.request.directory = workspace.relative_or_top(input.cwd.as_deref());
        launch.request.network = NetworkRequest::of(input.network.map(Network::from));
        launch.request.limits.wall = Some(timeout);
        let shell = launch.start(context).await?;
        let completed = shell.wait(context).await?;
        let shell_id = shell.job.id().to_string();
        let rest = format!("BashOutput shell_id={shell_id} cursor=0 has all of it");
        let guard = context.cut_guard();
        let text = shown(completed, &guard);
        let limit = context.reply_limit(None);
        let limit = shown_output(text.len() as u64, text.as_bytes(), limit, None);
        let text = shorten(&guard, text, limit, &rest);
        if completed.outcome.timed_out() {
            let milliseconds = timeout.as_millis();
            let message = format!("TIMED OUT after {milliseconds}ms\n{text}");
            let facts = serde_json::json!(CommandFacts::of(completed));
            return Err(Failure::new(Code::Timeout, message).with("command", facts));
        }
        Ok(Reply::text(text, Facts { command, shell_id, result: CommandFacts::of(completed) }))
    }
}

fn timeout(milliseconds: Option<u64>) -> Result<Duration, Failure> {
    let milliseconds = milliseconds.unwrap_or(DEFAULT_TIMEOUT_MS);
    if !(MIN_TIMEOUT_MS..=MAX_TIMEOUT_MS).contains(&milliseconds) {
        let message = format!(
            "timeout_ms: {milliseconds} is not between {MIN_TIMEOUT_MS} and {MAX_TIMEOUT_MS}"
        );
        return Err(Failure::argument("timeout_ms", message));
    }
    Ok(Duration::from_millis(milliseconds))
}

fn shown(completed: &Completed, guard: &CutGuard) -> String {
    let outcome = &completed.outcome;
    let mut text =
        format!("exit_code={}\nduration_ms={}\n", exit_code(completed), outcome.wall.as_millis());
    for (name, stream) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        block(&mut text, name, &guard.output(stream, usize::MAX));
    }
    add_notes(&mut text, completed);
    text
}

fn block(text: &mut String, name: &str, output: &str) {
    let shown = strip_control(output);
    if !shown.trim().is_empty() {
        line(text, &format!("\n{name}:\n{}", shown.trim_end()));
    }
}
