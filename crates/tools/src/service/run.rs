//! `workspace_exec` and `workspace_git`

use std::time::Duration;

use carrel_runner::CommandForm;
use carrel_shell::Preset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::git;
use crate::response::Reply;
use crate::shell::{CommandFacts, Launch, command_data, directory, scrubbed};
use crate::text::line;
use crate::tool::{About, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 300;

/// Runs a command that the allow-list has.
pub(super) struct Exec;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecInput {
    /// The command line.
    command: String,
    /// Where it starts, relative to the workspace.
    cwd: Option<String>,
    /// Seconds until it is ended: 120 if not given, at most 300.
    timeout: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExecFacts {
    /// It ended by itself with status 0.
    success: bool,
    /// How it ended.
    #[serde(flatten)]
    result: CommandFacts,
}

impl Tool for Exec {
    type Input = ExecInput;
    type Facts = ExecFacts;

    const ABOUT: About = About {
        name: "workspace_exec",
        title: "Run a command",
        class: Class::Write,
        effect: Effect::RUNS,
        workspaces: WorkspaceChoice::One,
        description: "Runs a command line in the workspace, behind a kernel sandbox. Only commands of \
            the allow-list pass; a refusal names the command, the rule and what would pass.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: ExecInput,
    ) -> Result<Reply<ExecFacts>, Failure> {
        if input.command.trim().is_empty() {
            return Err(Failure::argument("command", "command is required"));
        }
        let seconds = input.timeout.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_TIMEOUT);
        let launch = Launch {
            preset: Preset::Allowlist,
            directory: directory(context, input.cwd.as_deref()),
            timeout: Some(Duration::from_secs(seconds.min(MAX_TIMEOUT))),
            ..Launch::new(CommandForm::Line(input.command.clone()), &input.command)
        };
        let shell = launch.start(context).await?;
        let completed = shell.over(context).await?;
        let outcome = &completed.outcome;
        let mut text = scrubbed(&outcome.stdout.to_text(usize::MAX));
        let stderr = scrubbed(&outcome.stderr.to_text(usize::MAX));
        if !stderr.is_empty() {
            line(&mut text, &format!("--- stderr ---\n{}", stderr.trim_end()));
        }
        for note in crate::shell::notes(completed) {
            line(&mut text, &format!("carrel: {}", scrubbed(&note)));
        }
        line(&mut text, &format!("exit: {}", crate::shell::exit_code(completed)));
        let facts = ExecFacts { success: outcome.succeeded(), result: CommandFacts::of(completed) };
        let data = |facts: &_| command_data(completed, facts);
        Ok(Reply::text(text, facts).with_data(context.options.interface, data))
    }
}

/// Runs git.
pub(super) struct Git;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GitInput {
    /// What git is to do.
    operation: git::Operation,
    /// Where, relative to the workspace.
    cwd: Option<String>,
    /// Its arguments, split as a shell would, without a shell.
    args: Option<git::Arguments>,
}

impl Tool for Git {
    type Input = GitInput;
    type Facts = git::Facts;

    const ABOUT: About = About {
        name: "workspace_git",
        title: "Run git",
        class: Class::Write,
        effect: Effect::RUNS,
        workspaces: WorkspaceChoice::One,
        description: "Runs one operation of git in the workspace. Each argument is checked against \
            what the operation takes; no program that the repository configures is run.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: GitInput,
    ) -> Result<Reply<git::Facts>, Failure> {
        let words = input.args.map(git::Arguments::words).transpose()?.unwrap_or_default();
        let mut request = git::Request::new(input.operation, words);
        request.directory = input.cwd;
        git::run(context, request).await
    }
}
