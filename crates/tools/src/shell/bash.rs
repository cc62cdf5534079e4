//! The tool `Bash`.

use std::time::Duration;

use carrel_domain::{Failure, Network};
use carrel_exec::ExitStatus;
use carrel_runner::{CommandForm, Completed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command_facts::{CommandFacts, notes};
use super::control_sequences::strip_control;
use super::launch::Launch;
use crate::response::Reply;
use crate::text::{end_line, line};
use crate::tool::{About, CallRules, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

const DEFAULT_TIMEOUT: u64 = 120;

/// A longer timeout is lowered to this; longer work belongs in the background.
const MAX_TIMEOUT: u64 = 600;

/// The exit code of `timeout(1)` for a command that it killed.
const TIMED_OUT: i32 = 124;

/// Added to the number of a signal, as shells do.
const SIGNAL_OFFSET: i32 = 128;

pub(super) struct Bash;

/// The network that a command needs.
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
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command line, for `bash -c`.
    command: String,
    /// The purpose in a few words, shown to people who watch.
    description: Option<String>,
    /// Timeout in seconds; 120 by default, at most 600. It does not apply in the background.
    timeout: Option<u64>,
    /// Return at once; read the output with `BashOutput`, kill it with `KillShell`.
    #[serde(default)]
    run_in_background: bool,
    /// The working directory, relative to the workspace.
    cwd: Option<String>,
    /// The network it needs; the operator's policy may allow less.
    network: Option<NetworkChoice>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// For `BashOutput`, which returns the whole output, also after the end.
    shell_id: String,
    running: bool,
    #[serde(flatten)]
    command: Option<CommandFacts>,
}

impl Tool for Bash {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "Bash",
        title: "Run a command",
        class: Class::Execute,
        effect: Effect::RUNS,
        workspaces: WorkspaceChoice::One,
        rules: CallRules::EXECUTE,
        description: "Runs a command line with bash in the workspace, in a kernel sandbox: the system \
            is read-only, the workspace read-write, nothing else of the machine is visible, and there \
            is no network unless allowed. Each call is a new shell: `cd` and variables do not last. \
            A non-zero exit is data, not an error. Output is stdout and stderr together, with the \
            middle cut when it is long; `BashOutput` with the returned shell_id reads all of it. For \
            servers and watchers set run_in_background. Prefer Read, Edit, Grep and Glob to cat, sed, \
            grep and find.",
    };

    async fn call(&self, context: &ToolContext, input: Input) -> Result<Reply<Facts>, Failure> {
        required("command", &input.command)?;
        let seconds = seconds(input.timeout);
        let background = input.run_in_background;
        let shell = Launch {
            directory: directory(context, input.cwd.as_deref()),
            network: input.network.map(Network::from),
            timeout: (!background).then(|| Duration::from_secs(seconds)),
            combined: true,
            ..Launch::new(CommandForm::Line(input.command.clone()), &input.command)
        };
        if let Some(description) = &input.description {
            context.progress(0.0, None, description);
        }
        let shell = shell.start(context).await?;
        let shell_id = shell.job.id().to_string();
        if background {
            let text = format!("shell_id: {shell_id}\nstarted in background: {}\n", input.command);
            return Ok(Reply::text(text, Facts { shell_id, running: true, command: None }));
        }
        let completed = shell.wait(context).await?;
        let text = shown(completed, seconds, &shell_id);
        let command = Some(CommandFacts::of(completed));
        Ok(Reply::text(text, Facts { shell_id, running: false, command }))
    }
}

pub(super) fn required(name: &str, text: &str) -> Result<(), Failure> {
    if text.trim().is_empty() {
        return Err(Failure::argument(name, format!("{name} is required")));
    }
    Ok(())
}

/// Returns the working directory of a command, relative to the workspace.
pub(crate) fn directory(context: &ToolContext, cwd: Option<&str>) -> std::path::PathBuf {
    let relative = cwd.map(|cwd| context.workspace().relative(cwd)).unwrap_or_default();
    if relative == std::path::Path::new(".") { std::path::PathBuf::new() } else { relative }
}

fn seconds(timeout: Option<u64>) -> u64 {
    match timeout {
        None | Some(0) => DEFAULT_TIMEOUT,
        Some(seconds) => seconds.min(MAX_TIMEOUT),
    }
}

fn shown(completed: &Completed, seconds: u64, shell_id: &str) -> String {
    let outcome = &completed.outcome;
    let mut text = strip_control(&outcome.stdout.to_text(usize::MAX));
    if outcome.stdout.truncated() {
        let missing = outcome.stdout.omitted();
        line(
            &mut text,
            &format!(
                "... (output truncated, {missing} bytes elided; BashOutput shell_id={shell_id} cursor=0 has all of it)"
            ),
        );
    }
    if outcome.timed_out() {
        line(&mut text, &format!("bash: timed out after {seconds}s"));
    }
    for note in notes(completed) {
        line(&mut text, &format!("carrel: {}", strip_control(&note)));
    }
    match exit_code(completed) {
        0 => end_line(&mut text),
        code => line(&mut text, &format!("exit: {code}")),
    }
    text
}

/// Returns the exit code as a shell shows it.
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
