//! The tools that agents call, defined once for every door.
//!
//! A [`Tool`] is a typed input, typed facts about its result, an [`About`] that says what it is for,
//! and a function. The [`Registry`] takes a call from any door, picks the workspace, checks the
//! arguments against the derived schema, runs the tool, masks known secrets, keeps the answer within
//! its budget and writes one event. MCP, REST and the command line only encode what it returns.
//!
//! ```text
//! door ──► Registry::call ──► workspace ──► decode ──► Tool::call ──► mask ──► event ──► ToolResponse
//! ```
#![forbid(unsafe_code)]

mod arguments;
mod audit_log;
mod blocking;
mod failure;
mod files;
mod git;
mod interface;
mod named_workspace;
mod read_tracker;
mod redaction;
mod reference;
mod registry;
mod response;
mod schema;
mod secret_tools;
mod secrets;
mod session;
mod shell;
mod text;
mod tool;
mod tool_context;
mod toolbox;
mod verify;
mod workspace_list;
pub mod workspace_tools;
mod workspaces;

pub use audit_log::{AuditEvent, AuditLog, AuditRecord};
pub use failure::Failure;
pub use files::{Upload, UploadedFile};
pub use git::{GitFacts, GitOptions};
pub use interface::Interface;
pub use named_workspace::{NamedWorkspace, Workspaces};
pub use redaction::{RedactFacts, Redactor};
pub use reference::tool_reference_markdown;
pub use registry::{Definition, Registry, Toolset, definitions};
pub use response::{Reply, ToolContent, ToolResponse};
pub use schema::leave_out_number_format;
pub use secrets::{SecretSource, Secrets};
pub use session::Session;
pub use shell::{CommandFacts, notes};
pub use tool::{
    About, CallRules, Class, CostClass, Effect, Exposure, Masking, QuotaRule, Tool, TrustMode,
    WorkspaceChoice,
};
pub use tool_context::{CallOptions, CommandSettings, Progress, ToolContext};
pub use toolbox::{Toolbox, ToolboxOptions};
pub use workspace_list::{
    WorkspaceEntry, WorkspaceListError, is_name as is_workspace_name, parse_workspaces,
};
