//! What is said about commands. The tools make these values; the types describe them.

use carrel_tools::{CostFacts, SandboxFacts};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A command that is over.
#[derive(Serialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(super) struct CommandReply {
    /// It ended by itself with status 0.
    success: bool,
    /// Its exit status; -1 if it has none.
    exit_code: i32,
    /// What it printed, at most 100 KB: the beginning and the end.
    stdout: String,
    /// What it complained about, at most 50 KB: the beginning and the end.
    stderr: String,
    /// Time from start to end.
    duration_ms: u64,
    /// Output is missing from the text.
    truncated: bool,
    /// It was ended at its deadline.
    timed_out: bool,
    /// It was ended because the caller gave up.
    cancelled: bool,
    /// The signal that ended it.
    signal: Option<i32>,
    /// The limit that it ran into: `memory`, `processes`, `cpu`, `file_size` or `quota`.
    limit: Option<String>,
    /// How many bytes it wrote to stdout.
    stdout_bytes: u64,
    /// How many bytes it wrote to stderr.
    stderr_bytes: u64,
    /// Processes that were still running when it ended, and were ended too.
    left_running: u64,
    /// What it was refused, and the policy line that would allow it.
    denials: Vec<Denial>,
    /// What it changed that would run later outside its walls, and whether that was put back.
    trust_changes: Vec<Map<String, Value>>,
    cost: CostFacts,
    sandbox: SandboxFacts,
}

/// Something that a command was denied.
#[derive(Serialize, JsonSchema)]
struct Denial {
    /// What denied it.
    rule: String,
    /// What was denied, such as a path, a host or a system call.
    object: String,
    /// The name of the error that the command got, such as `EACCES`.
    errno: String,
    /// How it is known: `exact` or `inferred`.
    source: String,
    /// The line for the operator's `policy.toml` that would allow it.
    allow: Option<String>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What git did.
#[derive(Serialize, JsonSchema)]
pub(super) struct GitReply {
    /// What it was to do.
    operation: String,
    /// The top of the repository, relative to the workspace.
    repository: Option<String>,
    /// The name of the command in logs.
    shell_id: String,
    /// What `status` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Map<String, Value>>,
    /// The commit that `commit` made.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// How much `diff` shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes>,
    /// Where `clone` put the copy, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    /// Programs that the repository configures and that were not run.
    not_run: Vec<String>,
    /// How git ended.
    #[serde(flatten)]
    result: CommandReply,
}

/// How much changed.
#[derive(Serialize, JsonSchema)]
struct Changes {
    files: u64,
    insertions: u64,
    deletions: u64,
}
