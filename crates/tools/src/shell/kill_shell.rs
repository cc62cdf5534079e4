//! The tool `KillShell`.

use carrel_domain::Failure;
use carrel_exec::JobStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bash::required;
use super::command_facts::CommandFacts;
use super::control_sequences::strip_control;
use super::launch::Shell;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, CallRules, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

/// Bytes of the last output in the reply.
const LAST_BYTES: usize = 4 * 1024;

pub(super) struct KillShell;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The id that `Bash` or `watch_process` returned.
    shell_id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    shell_id: String,
    was_running: bool,
    result: Option<CommandFacts>,
}

impl Tool for KillShell {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "KillShell",
        title: "Kill a command",
        class: Class::Execute,
        effect: Effect { destructive: true, idempotent: false, open_world: false },
        workspaces: WorkspaceChoice::Optional,
        rules: CallRules::EXECUTE,
        description: "Kills a command of this session with every process it started: SIGTERM, and SIGKILL \
            half a second later. Returns its last output. The shell_id is no longer valid.",
    };

    async fn call(&self, context: &ToolContext, input: Input) -> Result<Reply<Facts>, Failure> {
        required("shell_id", &input.shell_id)?;
        let shell = Shell::find(context, &input.shell_id)?;
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
        Ok(Reply::text(text, Facts { shell_id: input.shell_id, was_running, result }))
    }
}
