//! The tool call of a step: typed input in, the reply of the API out.
//!
//! Every step passes through the registry, so that each has its checks, its masking and its audit event.
//! Only `tool` steps carry JSON: the request names the tool and holds its arguments, and the tool's facts
//! are part of the result.

use std::sync::Arc;

use carrel_domain::Code;
use carrel_git::{ArgumentList, GitOperation};
use carrel_tools::workspace_tools::{
    CreateDirectory, CreateDirectoryInput, ExecCommand, ExecInput, ListDirectory,
    ListDirectoryInput, ReadFile, ReadFileInput, RunGit, RunGitInput, WriteFile, WriteFileInput,
};
use carrel_tools::{CallOptions, Failure, Session, ToolResponse};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::open_workspace::OpenWorkspace;

pub(super) enum StepCall {
    Exec(ExecInput),
    ReadFile(ReadFileInput),
    WriteFile(WriteFileInput),
    ListDirectory(ListDirectoryInput),
    CreateDirectory(CreateDirectoryInput),
    Git(RunGitInput),
    Named { tool: String, arguments: Map<String, Value> },
}

pub(super) struct StepOutput {
    /// The `result` of the step on the wire.
    pub(super) result: Value,
    /// None for tools that run no command.
    pub(super) command: Option<CommandEnd>,
}

/// The end of a command, as far as it decides the status of its step.
#[derive(Debug, Deserialize)]
pub(super) struct CommandEnd {
    pub(super) exit_code: Option<i64>,
    #[serde(default)]
    pub(super) timed_out: bool,
    /// The limit that ended the command, such as `memory`.
    #[serde(default)]
    pub(super) limit: Option<String>,
}

impl StepCall {
    /// A `git pull` in a directory of the workspace.
    pub(super) fn pull(directory: String, branch: Option<&str>) -> Self {
        let words = branch.map_or(Vec::new(), |branch| vec!["origin", branch]);
        Self::git(GitOperation::Pull, &words, directory)
    }

    pub(super) fn git(operation: GitOperation, words: &[&str], directory: String) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let args = Some(ArgumentList::Words(words));
        Self::Git(RunGitInput { operation, cwd: Some(directory), args })
    }

    /// Makes the call.
    pub(super) async fn run(
        self,
        workspace: &OpenWorkspace,
        session: &Arc<Session>,
        options: CallOptions,
    ) -> Result<StepOutput, Failure> {
        match self {
            Self::Exec(input) => {
                let called = workspace.call_typed::<ExecCommand>(session, input, options).await;
                called.map(command_output)
            }
            Self::Git(input) => {
                let called = workspace.call_typed::<RunGit>(session, input, options).await;
                called.map(command_output)
            }
            Self::ReadFile(input) => {
                workspace.call_typed::<ReadFile>(session, input, options).await.map(output)
            }
            Self::WriteFile(input) => {
                workspace.call_typed::<WriteFile>(session, input, options).await.map(output)
            }
            Self::ListDirectory(input) => {
                workspace.call_typed::<ListDirectory>(session, input, options).await.map(output)
            }
            Self::CreateDirectory(input) => {
                workspace.call_typed::<CreateDirectory>(session, input, options).await.map(output)
            }
            Self::Named { tool, arguments } => {
                call_by_name(workspace, session, &tool, arguments, options).await
            }
        }
    }
}

/// The tools of the service combine content and facts for tasks.
fn output(response: ToolResponse) -> StepOutput {
    StepOutput { result: response.data.unwrap_or_default(), command: None }
}

fn command_output(response: ToolResponse) -> StepOutput {
    let output = output(response);
    StepOutput { command: CommandEnd::deserialize(&output.result).ok(), ..output }
}

async fn call_by_name(
    workspace: &OpenWorkspace,
    session: &Arc<Session>,
    tool: &str,
    arguments: Map<String, Value>,
    options: CallOptions,
) -> Result<StepOutput, Failure> {
    let response = workspace.call(session, tool, arguments, options).await;
    if response.is_error {
        let error = &response.structured["error"];
        let code = error["code"].as_str().and_then(code_of).unwrap_or(Code::Internal);
        let message = error["message"].as_str().unwrap_or("the tool failed").to_owned();
        return Err(Failure { code, message, detail: error["detail"].clone() });
    }
    let command = response.data.as_ref().unwrap_or(&response.structured);
    let command = CommandEnd::deserialize(command).ok();
    let text = response.text();
    let result =
        response.data.unwrap_or_else(|| json!({ "text": text, "facts": response.structured }));
    Ok(StepOutput { result, command })
}

fn code_of(name: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|code| code.name() == name)
}
