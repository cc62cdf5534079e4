//! Request and reply types of the REST API.
//!
//! Every JSON body and query string of the API is described by one type here. The server (`carrel-api`)
//! serialises replies from these types and parses requests into them, the client (`carrel-client`) does the
//! opposite, and `OpenAPI` and `docs/api.md` are generated from their [`JsonSchema`](schemars::JsonSchema)
//! implementations. A field is therefore added, renamed or documented in a single place, and a reply that the
//! document does not describe cannot be written.
//!
//! The crate depends on `carrel-domain` alone, so that a client stays small. Types with the same concept exist
//! in lower layers (a row in `store`, facts in `tools`); they differ in what they can say, and are converted
//! field by field where the reply is built. Three families stay with their owners because nothing but the server
//! serialises them: the conductor's snapshot (`conductor::snapshot`), the content of credentials
//! (`service::credentials`) and the record of a try (`trial`).
//!
//! Rules for these types:
//!
//! - Requests and query strings refuse unknown fields. Replies ignore them when they are parsed, so that an
//!   older client reads a newer server.
//! - An optional field of a request is left out when it is absent. An optional field of a reply is `null`
//!   unless its type says otherwise.
//! - Bounds that a schema states are constants in [`limits`] and [`pattern`]; the handlers check the same
//!   constants.
#![forbid(unsafe_code)]

mod command;
mod conductor;
mod credential;
mod file;
mod health;
pub mod limits;
pub mod pattern;
mod repository;
mod snapshot;
mod task;
mod task_event;
mod task_request;
mod tool;
mod trial;
mod workspace;

pub use command::{
    CommandCost, CommandDenial, CommandReply, CommandSandbox, DiffStat, ExecRequest, GitArguments,
    GitReply, GitRequest,
};
pub use conductor::{AnswerRequest, ConductorEventsQuery, IssueQuery, RefreshReply};
pub use credential::{CredentialNames, StoredCredential};
pub use file::{
    DirectoryEntry, DirectoryListing, DirectoryQuery, EntryType, FileContent, FileQuery,
    MatchingLine, ReadFileReply, SearchMatches, SearchQuery, WriteFileRequest, WrittenFile,
};
pub use health::{HealthReply, Readiness};
pub use repository::{CloneRequest, Repository, RepositoryList, RepositoryQuery};
pub use snapshot::{
    CreatedSnapshot, DeletedSnapshot, LeftOutPath, NewSnapshot, RestoredSnapshot, Snapshot,
    SnapshotChange, SnapshotDiff, SnapshotDiffQuery, SnapshotDiffReply, SnapshotList,
    SnapshotListQuery, SnapshotRestoreRequest,
};
pub use task::{
    CancelReply, StepResult, StepStatus, Task, TaskAccepted, TaskConfiguration, TaskList,
    TaskQuery, TaskResult, TaskSummary, TicketReply,
};
pub use task_event::{TaskEvent, TaskEventKind, TaskEventsQuery, TaskUpdate};
pub use task_request::{OnError, STEP_ACTIONS, StepRequest, TaskRequest};
pub use tool::{ToolArguments, ToolDescription, ToolList, ToolReply};
pub use trial::{NewTrial, RemovedTrial, TrialQuery};
pub use workspace::{
    AdoptedChanges, EndedFork, ForkChange, ForkChanges, ForkChangesQuery, ForkList, NewForks,
    NewWorkspace, Promoted, Promotion, Workspace, WorkspaceList, WorkspaceQuery, WorkspaceState,
    WorkspaceUsage,
};
