//! What is remembered, and the answers of the store.

use std::fmt;
use std::time::Duration;

use carrel_domain::{
    Layout, Network, Priority, TaskId, TaskStatus, Timestamp, VolumeId, WorkspaceId,
};
use serde::Serialize;
use serde_json::Value;

/// The name of a worker process. No two processes ever have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct WorkerId(pub String);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A workspace of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its id, which is also the identifier of its directory.
    pub id: WorkspaceId,
    /// What people call it.
    pub name: String,
    /// How its inside is arranged.
    pub layout: Layout,
    /// The network of its commands when they do not say; the operator's if none.
    pub network: Option<Network>,
    /// How many bytes it may hold.
    pub quota_bytes: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// The volume that its directory lies on, once it has one.
    pub volume: Option<VolumeId>,
}

/// A worker, as others find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Its name.
    pub id: WorkerId,
    /// The volume that it works on.
    pub volume: VolumeId,
    /// Where it answers requests of other processes, if it does: `http://host:port`.
    pub address: Option<String>,
    /// How many tasks it runs at once.
    pub concurrency: u32,
    /// When it last gave a sign of life.
    pub seen_at: Timestamp,
}

/// A task as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Where it works.
    pub workspace: WorkspaceId,
    /// What kind of work it is, for people who filter.
    pub task_type: String,
    /// How urgent it is.
    pub priority: Priority,
    /// Where it stands.
    pub status: TaskStatus,
    /// Its steps and what else was asked for.
    pub configuration: Value,
    /// How long it may run.
    pub timeout: Duration,
    /// What ties it to something of the caller's.
    pub correlation_id: Option<String>,
    /// When it was acknowledged.
    pub submitted_at: Timestamp,
    /// When the last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it became terminal.
    pub completed_at: Option<Timestamp>,
    /// How often it was begun.
    pub attempt: u32,
    /// How often it may be begun.
    pub max_attempts: u32,
    /// Who had it last.
    pub worker: Option<WorkerId>,
    /// Somebody asked for its end.
    pub cancel_requested: bool,
    /// What came out.
    pub result: Option<Value>,
    /// Why it ended as it did.
    pub error: Option<String>,
    /// How long the last attempt took.
    pub execution_time: Option<Duration>,
    /// The number of its last event.
    pub last_event: u64,
}

/// A task that is to be.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Its id, made by the caller.
    pub id: TaskId,
    /// Where it works. The workspace has to exist.
    pub workspace: WorkspaceId,
    /// What kind of work it is.
    pub task_type: String,
    /// How urgent it is.
    pub priority: Priority,
    /// Its steps and what else was asked for.
    pub configuration: Value,
    /// How long it may run.
    pub timeout: Duration,
    /// How often it may be begun.
    pub max_attempts: u32,
    /// What ties it to something of the caller's.
    pub correlation_id: Option<String>,
    /// The time of the request.
    pub now: Timestamp,
    /// How many tasks of the workspace may wait, this one included.
    pub max_waiting: u64,
    /// What makes a repeated request known as one.
    pub repeat: Option<IdempotencyKey>,
}

/// What makes a repeated request known as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Whose key it is, and for which route: keys of different callers never meet.
    pub scope: String,
    /// The caller's key.
    pub key: String,
    /// The digest of what was asked for.
    pub digest: [u8; 32],
}

/// The first answer to a request that may be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    /// The digest of what was asked for.
    pub digest: [u8; 32],
    /// The status of the answer.
    pub status: u16,
    /// The body of the answer.
    pub body: String,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Submission {
    /// The task is queued.
    Created(Task, Vec<Event>),
    /// The same request came before; this is what it made.
    Repeated(Task),
    /// The key came before with another request.
    Mismatch,
    /// There is no such workspace.
    NoWorkspace,
    /// So many tasks of the workspace wait already that no more are taken.
    Full {
        /// How many may wait.
        limit: u64,
    },
}

/// One fact about a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The task.
    pub task: TaskId,
    /// Its place among the events of the task: 1, 2, 3…
    pub number: u64,
    /// What kind of fact it is.
    pub kind: EventKind,
    /// The fact.
    pub data: Value,
    /// When it was.
    pub at: Timestamp,
}

impl Event {
    /// Tells whether no event of the task follows.
    pub fn is_last(&self) -> bool {
        self.kind == EventKind::StatusChanged
            && self.data["status"]
                .as_str()
                .and_then(|word| word.parse().ok())
                .is_some_and(TaskStatus::is_terminal)
    }
}

/// A fact that is to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// What kind of fact it is.
    pub kind: EventKind,
    /// The fact.
    pub data: Value,
    /// When it was.
    pub at: Timestamp,
}

/// The kinds of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The task stands elsewhere.
    StatusChanged,
    /// A step begins.
    ProgressUpdate,
    /// A command printed something.
    LogLine,
    /// Something went wrong.
    Error,
}

impl EventKind {
    /// Every kind there is.
    pub const ALL: &[Self] =
        &[Self::StatusChanged, Self::ProgressUpdate, Self::LogLine, Self::Error];

    /// Returns the word for it on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StatusChanged => "status_changed",
            Self::ProgressUpdate => "progress_update",
            Self::LogLine => "log_line",
            Self::Error => "error",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }
}

/// A worker's wish for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Who asks.
    pub worker: WorkerId,
    /// How long the claim holds without a heartbeat.
    pub lease: Duration,
    /// How many tasks of one workspace may run at once.
    pub per_workspace: u32,
    /// The volume of the worker. It gets tasks of workspaces there; one that lies nowhere is placed there
    /// with the claim.
    pub volume: VolumeId,
}

/// A task that waits for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedTask {
    /// The task.
    pub task: TaskId,
    /// Where it works.
    pub workspace: WorkspaceId,
    /// How urgent it is.
    pub priority: Priority,
    /// The volume of the workspace, once it has one.
    pub volume: Option<VolumeId>,
}

/// A task that a worker has, and the proof that it has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The task.
    pub task: TaskId,
    /// Which attempt this is. Every write of a worker is held against it.
    pub attempt: u32,
}

/// What a worker got.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The proof.
    pub claim: Claim,
    /// The task, as it stands with the worker.
    pub task: Task,
    /// What there is to tell.
    pub events: Vec<Event>,
}

/// What a heartbeat tells the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// It goes on having the task.
    Held {
        /// Somebody asked for the task's end.
        cancel_requested: bool,
    },
    /// It has lost the task.
    Lost,
}

/// What became of events.
#[derive(Clone, Debug, PartialEq)]
pub enum Appended {
    /// They are remembered, with their numbers.
    Written(Vec<Event>),
    /// The worker has lost the task, or others wrote in its name.
    Lost,
}

/// The end of a task, as its worker saw it.
#[derive(Clone, Debug)]
pub struct Finish {
    /// How it ended; terminal.
    pub status: TaskStatus,
    /// What came out.
    pub result: Value,
    /// Why it ended so.
    pub error: Option<String>,
    /// How long it took.
    pub took: Duration,
    /// What is still to be told before the end.
    pub events: Vec<NewEvent>,
    /// The number of the last event that the worker knows of.
    pub after: u64,
    /// The time.
    pub now: Timestamp,
}

/// What became of an end.
#[derive(Clone, Debug, PartialEq)]
pub enum Finished {
    /// The task is over. It counts as cancelled if somebody had asked for that.
    Done {
        /// Where it stands for ever.
        status: TaskStatus,
        /// What there is to tell.
        events: Vec<Event>,
    },
    /// The worker had lost the task.
    Lost,
}

/// A task that its worker cannot go on with, through no fault of the task's.
#[derive(Clone, Debug)]
pub struct Release {
    /// Why.
    pub reason: String,
    /// When it may be begun again.
    pub due: Timestamp,
    /// The time.
    pub now: Timestamp,
    /// Whether the attempt counts. One that a worker gives up to stop in peace does not.
    pub counts: bool,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Released {
    /// It stands there now: queued, dead or cancelled.
    Done {
        /// Where it stands.
        status: TaskStatus,
        /// What there is to tell.
        events: Vec<Event>,
    },
    /// The worker had lost it before.
    Lost,
}

/// What became of a wish for a task's end.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancellation {
    /// It waited, and is over.
    Cancelled(Vec<Event>),
    /// It runs; its worker is told.
    Requested,
    /// It was over before.
    Finished(TaskStatus),
    /// There is no such task.
    Unknown,
}

/// Which tasks to list.
#[derive(Clone, Debug)]
pub struct TaskFilter {
    /// Those of this workspace.
    pub workspace: WorkspaceId,
    /// Those that stand there.
    pub status: Option<TaskStatus>,
    /// Those of this kind.
    pub task_type: Option<String>,
    /// How many.
    pub limit: u32,
    /// After how many.
    pub offset: u64,
}

/// A part of a list, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The tasks of this part, without their results.
    pub tasks: Vec<Task>,
    /// How many there are in all.
    pub total: u64,
}

/// How much there is of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tasks that wait.
    pub queued: u64,
    /// Tasks that run.
    pub running: u64,
    /// Workspaces.
    pub workspaces: u64,
}

/// A numbered change of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// Its number: 1, 2, 3…
    pub number: u32,
    /// What it is about.
    pub name: String,
}

/// A credential, unreadable without a key that is not in the store.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(pub Vec<u8>);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}
