//! The tools `workspace_exec` and `workspace_git`.

use std::time::Duration;

use carrel_audit::Interface;
use carrel_domain::{NetworkRequest, TokenScope, ToolGroup};
use carrel_git::{ArgumentList, GitOperation};
use carrel_runner::CommandForm;
use carrel_shell::Preset;
use carrel_wire::CommandReply;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::files::check_given;
use crate::git::{GitFacts, GitRequest, run};
use crate::reply_limit::shorten;
use crate::response::Reply;
use crate::shell::{CommandFacts, Launch, add_notes, exit_code, strip_control, timeout_seconds};
use crate::text::line;
use crate::tool::{About, CallRules, Effect, Tool, ToolResult};
use crate::tool_context::ToolContext;

const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 300;

/// The tool `workspace_exec`.
#[derive(Debug)]
pub struct ExecCommand;

/// The input of [`ExecCommand`].
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExecInput {
    /// The command line.
    pub command: String,
    /// The working directory, relative to the workspace.
    pub cwd: Option<String>,
    /// Timeout in seconds; 120 by default, at most 300.
    pub timeout: Option<u64>,
    /// Take a snapshot of the workspace before the command.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    pub snapshot: bool,
}

/// The facts about a command.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecFacts {
    /// It exited with status 0.
    pub success: bool,
    /// Exit status, cost and sandbox.
    #[serde(flatten)]
    pub result: CommandFacts,
    /// The number of the snapshot before it, if one was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

impl Tool for ExecCommand {
    type Input = ExecInput;
    type Facts = ExecFacts;

    const ABOUT: About = About {
        name: "workspace_exec",
        title: "Run a command",
        group: ToolGroup::Workspace,
        in_default_set: false,
        effect: Effect::RUNS,
        rules: CallRules { token_scope: TokenScope::Exec, ..CallRules::WRITE },
        description: "Runs a command line in the workspace, in a kernel sandbox. Only commands of the \
            allow-list are accepted; a refusal names the command, the rule and what is allowed.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: ExecInput) -> ToolResult<ExecFacts> {
        check_given("command", input.command.trim())?;
        let seconds = timeout_seconds(input.timeout, DEFAULT_TIMEOUT, MAX_TIMEOUT);
        let mut launch = Launch::new(CommandForm::Line(input.command.clone()), &input.command);
        launch.request.preset = Preset::Allowlist;
        launch.request.directory = context.workspace().relative_or_top(input.cwd.as_deref());
        // Only the request of the REST API has a field for the network.
        if context.options.interface != Interface::Rest {
            launch.request.network = NetworkRequest::fixed(None);
        }
        launch.request.limits.wall = Some(Duration::from_secs(seconds));
        launch.snapshot = input.snapshot;
        let shell = launch.start(context).await?;
        let completed = shell.wait(context).await?;
        let outcome = &completed.outcome;
        let guard = context.cut_guard();
        let mut text = strip_control(&guard.output(&outcome.stdout, usize::MAX));
        let stderr = strip_control(&guard.output(&outcome.stderr, usize::MAX));
        if !stderr.is_empty() {
            line(&mut text, &format!("--- stderr ---\n{}", stderr.trim_end()));
        }
        let rest = "redirect it to a file of the workspace and read a part";
        let mut text = shorten(&guard, text, context.reply_limit(None), rest);
        add_notes(&mut text, completed);
        line(&mut text, &format!("exit: {}", exit_code(completed)));
        if let Some(snapshot) = shell.snapshot.as_ref().filter(|_| input.snapshot) {
            line(&mut text, &format!("[the state before is snapshot {snapshot}]"));
        }
        let facts = ExecFacts {
            success: outcome.succeeded(),
            result: CommandFacts::of(completed),
            snapshot: shell.snapshot.clone(),
        };
        let data = |facts: &ExecFacts| {
            let reply = facts.result.reply(outcome);
            json!(CommandReply { snapshot: facts.snapshot.clone(), ..reply })
        };
        Ok(Reply::text(text, facts).with_data(context.options.interface, data))
    }
}

/// The tool `workspace_git`.
#[derive(Debug)]
pub struct RunGit;

/// The input of [`RunGit`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
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
        group: ToolGroup::Workspace,
        in_default_set: false,
        effect: Effect::RUNS,
        rules: CallRules { token_scope: TokenScope::Exec, ..CallRules::WRITE },
        description: "Runs one git operation in the workspace, with the operator's credentials for \
            remotes. Hooks, filters and signing that the repository configures do not run.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: RunGitInput) -> ToolResult<GitFacts> {
        let request = GitRequest::new(input.operation, input.args)?;
        run(context, GitRequest { directory: input.cwd, ..request }).await
    }
}
