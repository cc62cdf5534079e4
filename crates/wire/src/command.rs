//! `/exec` and `/git` of a workspace.

use std::borrow::Cow;

use carrel_domain::{Network, json_integer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits::{DEFAULT_EXEC_SECONDS, MAX_COMMAND_CHARS, MAX_EXEC_SECONDS};
use crate::pattern::{COMMAND_LINE, RELATIVE_PATH};

/// A command line to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// The command line, read by `bash -c` after the operator's preset has accepted it.
    #[schemars(length(min = 1, max = MAX_COMMAND_CHARS), regex(pattern = COMMAND_LINE))]
    pub command: String,
    /// The working directory, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = RELATIVE_PATH))]
    pub cwd: Option<String>,
    /// Seconds until the command is killed.
    #[serde(
        default,
        deserialize_with = "json_integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = MAX_EXEC_SECONDS), extend("default" = DEFAULT_EXEC_SECONDS))]
    pub timeout: Option<u64>,
    /// The network of the command, at most that of the workspace; the workspace's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Take a snapshot of the workspace before the command. Without one the command does not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub snapshot: bool,
}

/// A git operation to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [
    { "properties": { "args": { "type": "null" } } },
    { "properties": { "branch": { "type": "null" } } },
]))]
pub struct GitRequest {
    /// The operation, such as `status`. The server's document lists them.
    pub operation: String,
    /// The arguments of the operation: one text, which is split as a shell would without expanding anything,
    /// or a list of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<GitArguments>,
    /// The repository's directory, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = RELATIVE_PATH))]
    pub cwd: Option<String>,
    /// Short for `args` with this one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// Arguments of git, as a line or as words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum GitArguments {
    /// A line that is split into words.
    Line(String),
    /// Words that are passed as they are.
    Words(Vec<String>),
}

/// The result of a command.
///
/// The facts of the tool (`tools::CommandFacts`) have no exit code for a command that a signal killed;
/// programs get a number in every case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, and the names are the API")]
pub struct CommandReply {
    /// `true` if the command exited by itself with status 0.
    pub success: bool,
    /// The exit status; -1 if a signal killed the command.
    pub exit_code: i32,
    /// The signal that killed the command.
    pub signal: Option<i32>,
    /// `true` if the command was killed at its deadline.
    pub timed_out: bool,
    /// `true` if the command was killed because the caller cancelled the request.
    pub cancelled: bool,
    /// The limit that ended the command: `memory`, `processes`, `cpu`, `file_size` or `quota`.
    pub limit: Option<String>,
    /// Bytes that the command wrote to stdout.
    pub stdout_bytes: u64,
    /// Bytes that the command wrote to stderr.
    pub stderr_bytes: u64,
    /// `true` if output is missing from `stdout` or `stderr`.
    pub truncated: bool,
    /// Processes that were still running at the end, and were killed.
    pub left_running: u64,
    /// Operations that the sandbox denied, each with the policy line that would allow it.
    pub denials: Vec<CommandDenial>,
    /// Changes to files that would run later outside the sandbox, and whether each was put back.
    pub trust_changes: Vec<Map<String, Value>>,
    /// Resources that the command used.
    pub cost: CommandCost,
    /// The sandbox that the command ran in.
    pub sandbox: CommandSandbox,
    /// Standard output, at most 100 KB: its beginning and its end.
    pub stdout: String,
    /// Standard error, at most 50 KB: its beginning and its end.
    pub stderr: String,
    /// Milliseconds from start to end.
    pub duration_ms: u64,
    /// The number of the snapshot before the command, if one was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// An operation that the sandbox denied to a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandDenial {
    /// The rule that denied it.
    pub rule: String,
    /// The object, such as a path, a host or a system call.
    pub object: String,
    /// The error that the command got, such as `EACCES`.
    pub errno: String,
    /// The evidence: `exact` or `inferred`.
    pub source: String,
    /// The number of denied calls, or of messages about the object.
    pub count: u64,
    /// The line for the operator's `policy.toml` that would allow it.
    pub allow: Option<String>,
    /// Advice beyond the policy line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Resources that a command used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandCost {
    /// Milliseconds from start to end.
    pub wall_ms: f64,
    /// Milliseconds of CPU time, user and system.
    pub cpu_ms: f64,
    /// The peak of resident memory.
    pub peak_memory_bytes: u64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage.
    pub written_bytes: u64,
}

/// The sandbox that a command ran in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandSandbox {
    /// `full`, `landlock` or `off`.
    pub tier: Cow<'static, str>,
    /// Guarantees that held.
    pub enforced: Vec<Cow<'static, str>>,
    /// Guarantees that did not hold.
    pub not_enforced: Vec<Cow<'static, str>>,
}

/// The result of a git operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GitReply {
    /// The operation that ran.
    pub operation: String,
    /// The top of the repository, relative to the workspace.
    pub repository: Option<String>,
    /// The name of the command in logs.
    pub shell_id: String,
    /// The state of the work tree, for `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Map<String, Value>>,
    /// The new commit, for `commit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The size of the changes, for `diff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<DiffStat>,
    /// The directory of the copy, relative to the workspace, for `clone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Programs that the repository configures and that were not run, such as `filter.lfs`.
    pub not_run: Vec<String>,
    /// The result of the git process.
    #[serde(flatten)]
    pub result: CommandReply,
}

/// The size of a diff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffStat {
    /// Files that differ.
    pub files: u64,
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
}
