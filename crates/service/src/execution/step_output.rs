//! The output of a step's tool call.
//!
//! Every step passes through the registry, so that each has its checks, its masking and its audit event.
//! Calls have typed input and typed facts; only `tool` steps carry JSON: the request names the tool and
//! holds its arguments, and the tool's facts are part of the result.

use carrel_domain::Code;
use carrel_tools::{CommandFacts, Failure, ToolResponse};
use serde::Deserialize;
use serde_json::{Value, json};

/// The exit code in results of commands that a signal killed.
const NO_EXIT_CODE: i64 = -1;

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

impl From<&CommandFacts> for CommandEnd {
    fn from(facts: &CommandFacts) -> Self {
        Self {
            exit_code: Some(facts.exit_code.map_or(NO_EXIT_CODE, i64::from)),
            timed_out: facts.timed_out,
            limit: facts.limit.map(|limit| json!(limit).as_str().unwrap_or_default().to_owned()),
        }
    }
}

impl StepOutput {
    /// Returns the output of a tool that was called by its name.
    pub(super) fn of_response(response: ToolResponse) -> Result<Self, Failure> {
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
        Ok(Self { result, command })
    }
}

fn code_of(name: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|code| code.name() == name)
}
