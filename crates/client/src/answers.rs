//! What is sent and what is answered.
//!
//! A field that this version does not know is kept in `more`, so that what is read can be written again
//! as it was.

use carrel_domain::{Layout, Network, Priority, TaskId, TaskStatus, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A task that is to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Submission {
    /// What is to be done, in this order.
    pub steps: Vec<Value>,
    /// How urgent it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// How many seconds all of it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// What makes a repeated request known as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The workspace, if the token covers several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Other fields of the request.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Submission {
    /// Returns a task that runs command lines, one after the other.
    pub fn of_commands<S: AsRef<str>>(commands: impl IntoIterator<Item = S>) -> Self {
        let step = |command: S| json!({ "action": "shell", "command": command.as_ref() });
        Self { steps: commands.into_iter().map(step).collect(), ..Self::default() }
    }
}

/// A task that will run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// Its id.
    pub task_id: TaskId,
    /// Where it stands.
    pub status: TaskStatus,
    /// Where its events are.
    pub events_url: String,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Where it runs.
    pub workspace_id: WorkspaceId,
    /// What kind of work it is.
    pub task_type: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// How urgent it is.
    pub priority: Priority,
    /// When it was acknowledged.
    pub submitted_at: Timestamp,
    /// When the last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub completed_at: Option<Timestamp>,
    /// How often it was begun.
    pub attempt: u32,
    /// How long the last attempt took.
    pub execution_time_ms: Option<u64>,
    /// Why it ended as it did.
    pub error_message: Option<String>,
    /// What came out. A list does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A part of the tasks of a workspace, the latest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskList {
    /// The part.
    pub tasks: Vec<Task>,
    /// How many there are.
    pub total: u64,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What became of a wish for a task's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelReply {
    /// The task.
    pub id: TaskId,
    /// Where it stands.
    pub status: TaskStatus,
    /// The task ran and its worker was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<bool>,
}

/// A workspace that is to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NewWorkspace {
    /// What people call it.
    pub name: String,
    /// How its inside is arranged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// How many GiB it may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_gb: Option<f64>,
    /// The network of its commands when they do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// A workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// What people call it.
    pub name: String,
    /// `ready`, or `new` if it has no directory yet.
    pub state: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// How many bytes it holds.
    pub usage_bytes: u64,
    /// How many bytes it may hold.
    pub quota_bytes: u64,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A part of the workspaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkspaceList {
    /// The part.
    pub workspaces: Vec<Workspace>,
    /// What to ask with for those that follow, if there may be any.
    pub next_after: Option<WorkspaceId>,
}

/// What a workspace uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The workspace.
    pub id: WorkspaceId,
    /// How many bytes it holds.
    pub usage_bytes: u64,
    /// How many bytes it may hold.
    pub quota_bytes: u64,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Directory {
    /// Where it is, relative to the workspace.
    pub path: String,
    /// What is in it.
    pub entries: Vec<DirectoryEntry>,
    /// Not all are here.
    pub truncated: bool,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: String,
    /// Where it is, relative to the workspace.
    pub path: String,
    /// `directory`, `file`, `symlink` or `other`.
    pub r#type: String,
    /// How large it is; 0 for a directory.
    pub size: u64,
    /// When it last changed, in seconds since 1970.
    pub modified_at: Option<f64>,
}

/// A file with its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileContent {
    /// Where it is, relative to the workspace.
    pub path: String,
    /// All of its text.
    pub content: String,
    /// How many bytes it has.
    pub size: u64,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Lines that match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matches {
    /// The lines.
    pub matches: Vec<MatchingLine>,
    /// How many there are, if all were counted.
    pub total: Option<u64>,
    /// There are more.
    pub truncated: bool,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchingLine {
    /// Where the file is, relative to the workspace.
    pub file: String,
    /// The number of the line, counted from 1.
    pub line: u64,
    /// Its text.
    pub content: String,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// Where it is, relative to the workspace.
    pub path: String,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A command that is over. GitRequest answers the same and more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandReply {
    /// It ended by itself with status 0.
    pub success: bool,
    /// Its exit status; -1 if it has none.
    pub exit_code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
    /// Time from start to end.
    pub duration_ms: u64,
    /// It was ended at its deadline.
    pub timed_out: bool,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A part of the repositories that a workspace can reach on GitHub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepositoryList {
    /// The part.
    pub repos: Vec<Repository>,
    /// Which part it is, counted from 1.
    pub page: u32,
    /// How many are in a part.
    pub per_page: u32,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A repository on GitHub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repository {
    /// Its name.
    pub name: String,
    /// Owner and name.
    pub full_name: String,
    /// What to clone.
    pub url: String,
    /// The branch that is cloned if none is named.
    pub default_branch: Option<String>,
    /// Whether only some may see it.
    pub private: bool,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}
