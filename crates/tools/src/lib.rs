//! The tools that agents call, defined once for every interface.
//!
//! A [`Tool`] has a typed input, typed facts about its result, an [`About`] with its description and rules,
//! and a function. The [`Registry`] takes a call from any [`Interface`], chooses the workspace, decodes the
//! arguments, runs the tool, masks known secrets and writes one audit event. MCP, REST and the command line
//! only encode the response.
//!
//! ```text
//! interface ──► Registry::call ──► workspace ──► decode ──► Tool::call ──► mask ──► audit event ──► ToolResponse
//! ```
//!
//! State has two owners: the [`Toolbox`] holds what all sessions of a server share (workspaces, runner, jobs,
//! secrets), and a [`Session`] holds what belongs to one caller (files read, view of the workspaces, last test
//! results). Jobs belong to the [`Owner`] of the session that started them.
#![forbid(unsafe_code)]

mod argument_coercion;
mod blocking;
mod brief_schema;
mod client_roots;
mod code;
mod files;
mod fork_tools;
mod forks;
mod git;
mod line_ranges;
mod named_workspace;
mod read_tracker;
mod redaction;
mod registry;
mod reply_limit;
mod resource_files;
mod response;
mod schema_dialect;
mod secret_tools;
mod secrets;
mod session;
mod shell;
mod shown_lines;
mod snapshots;
mod text;
mod tool;
mod tool_context;
mod tool_reference;
mod tool_schema;
mod toolbox;
mod tries;
mod verify;
mod workspace_list;
pub mod workspace_tools;
mod workspaces;

pub use carrel_audit::{
    AuditEvent, AuditLog, AuditRecord, AuditedCall, Interface, Mask, Violation,
};
pub use carrel_domain::{Failure, ToolGroup, ToolSelection};
pub use carrel_exec::{JobId, Owner};
pub use carrel_fork::{Change as ForkChange, ChangeKind as ForkChangeKind};
pub use carrel_snapshot::Rebased;
pub use carrel_snapshot::SnapshotName;
pub use client_roots::ClientRoots;
pub use code::SymbolIndexes;
pub use files::{Upload, UploadedFile};
pub use fork_tools::ForkHost;
pub use forks::{
    AdoptedChanges, Expired, ExpiredFork, ForkPatch, Forks, OtherForks, PromotedFork, RebasedFork,
};
pub use git::{GitFacts, GitOptions};
pub use named_workspace::{NamedWorkspace, Workspaces};
pub use registry::{Definition, Registry, definitions};
pub use reply_limit::{DEFAULT_REPLY_BYTES, MAX_REPLY_BYTES, MIN_REPLY_BYTES};
pub use resource_files::{FileStamp, MAX_LISTED_RESOURCES};
pub use response::{Reply, ToolContent, ToolResponse};
pub use schema_dialect::leave_out_number_format;
pub use secrets::Secrets;
pub use session::{Session, SessionEnd, SessionLifetime};
pub use shell::{CommandFacts, JobLogPart, JobPhase, JobView, NoteReader, notes};
pub use snapshots::{
    AutomaticSnapshot, ExportOmission, ExportRequest, ExportedBranch, ExportedCommit,
    ExportedSnapshots, SnapshotStores, SweepMode, SweptSnapshots, export_snapshots,
    sweep_snapshots,
};
pub use tool::{
    About, CallRules, Class, Effect, Exposure, ListingRule, Masking, QuotaRule, Tool, ToolResult,
    TrustMode, WorkspaceChoice,
};
pub use tool_context::{CallOptions, CommandSettings, HelperPrograms, Progress, ToolContext};
pub use tool_reference::tool_reference_markdown;
pub use tool_schema::WorkspaceCount;
pub use toolbox::{Toolbox, ToolboxOptions};
pub use tries::{
    LocalHost, NewTry, OpenFork, TryHost, TryRunner, TrySession, comparison, network_of,
};
pub use workspace_list::{
    WorkspaceEntry, WorkspaceListError, is_name as is_workspace_name, parse_workspaces,
};
