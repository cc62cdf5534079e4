//! The tools `workspace_exec` and `workspace_git`.

use std::time::Duration;

use carrel_domain::{Failure, TokenScope};
use carrel_git::{ArgumentList, GitOperation};
use carrel_runner::CommandForm;
use carrel_shell::Preset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::git::{GitFacts, GitRequest, run};
use crate::redaction::{RedactFacts, Redactor};
use crate::response::Reply;
use crate::shell::{CommandFacts, Launch, directory, strip_control};
use crate::text::line;
use crate::tool::{About, CallRules, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 300;

/// The tool `workspace_exec`.
#[derive(Debug)]
pub struct ExecCommand;

/// The input of [`ExecCommand`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecInput {
    /// The command line.
    pub command: String,
    /// The working directory, relative to the workspace.
    pub cwd: Option<String>,
    /// Timeout in seconds; 120 by default, at most 300.
    pub timeout: Option<u64>,
}

/// The facts about a command.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExecFacts {
    /// It exited with status 0.
    pub success: bool,
    /// Exit status, cost and sandbox.
    #[serde(flatten)]
    pub result: CommandFacts,
}

impl RedactFacts for ExecFacts {
    fn redact(&mut self, redactor: &Redactor) {
        self.result.redact(redactor);
    }
}

impl Tool for ExecCommand {
    type Input = ExecInput;
    type Facts = ExecFacts;

    const ABOUT: About = About {
        name: "workspace_exec",
        title: "Run a command",
        class: Class::Write,
        effect: Effect::RUNS,
        workspaces: WorkspaceChoice::One,
        rules: CallRules { token_scope: TokenScope::Exec, ..CallRules::WRITE },
        description: "Runs a command line in the workspace, in a kernel sandbox. Only commands of the \
            allow-list are accepted; a refusal names the command, the rule and what is allowed.",
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
        let completed = shell.wait(context).await?;
        let outcome = &completed.outcome;
        let mut text = strip_control(&outcome.stdout.to_text(usize::MAX));
        let stderr = strip_control(&outcome.stderr.to_text(usize::MAX));
        if !stderr.is_empty() {
            line(&mut text, &format!("--- stderr ---\n{}", stderr.trim_end()));
        }
        for note in crate::shell::notes(completed) {
            line(&mut text, &format!("carrel: {}", strip_control(&note)));
        }
        line(&mut text, &format!("exit: {}", crate::shell::exit_code(completed)));
        let facts = ExecFacts { success: outcome.succeeded(), result: CommandFacts::of(completed) };
        let data = |facts: &ExecFacts| json!(facts.result.reply(outcome));
        Ok(Reply::text(text, facts).with_data(context.options.interface, data))
    }
}

/// The tool `workspace_git`.
#[derive(Debug)]
pub struct RunGit;

/// The input of [`RunGit`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunGitInput {
    /// The git subcommand.
    pub operation: GitOperation,
    /// The working directory, relative to the workspace.
    pub cwd: Option<String>,
    /// Arguments: one string, split like a shell command line without expansion, or a list of strings.
    pub args: Option<ArgumentList>,
}

impl Tool for RunGit {
    type Input = RunGitInput;
    type Facts = GitFacts;

    const ABOUT: About = About {
        name: "workspace_git",
        title: "Run git",
        class: Class::Write,
        effect: Effect::RUNS,
        workspaces: WorkspaceChoice::One,
        rules: CallRules { token_scope: TokenScope::Exec, ..CallRules::WRITE },
        description: "Runs one git operation in the workspace, with the operator's credentials for \
            remotes. Hooks, filters and signing that the repository configures do not run.",
    };

    async fn call(
        &self,
        context: &ToolContext,
        input: RunGitInput,
    ) -> Result<Reply<GitFacts>, Failure> {
        let arguments = input.args.map_or(Ok(Vec::new()), ArgumentList::into_words)?;
        let mut request = GitRequest::new(input.operation, arguments);
        request.directory = input.cwd;
        run(context, request).await
    }
}
