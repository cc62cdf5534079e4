//! The tools that agents call, defined once for every door.
//!
//! A [`Tool`] is a typed input, typed facts about its result, an [`About`] that says what it is for,
//! and a function. The [`Registry`] takes a call from any door, picks the workspace, checks the
//! arguments against the derived schema, runs the tool, masks known secrets, keeps the answer within
//! its budget and writes one event. MCP, REST and the command line only encode what it returns.
//!
//! ```text
//! door ──► Registry::call ──► workspace ──► decode ──► Tool::call ──► mask ──► event ──► Answer
//! ```
#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod blocking;
mod call;
mod events;
mod failure;
mod files;
mod git;
mod place;
mod redact;
mod reference;
mod registry;
mod schema;
mod secrets;
mod service;
mod session;
mod shell;
mod spec;
mod text;
mod tool;
mod toolbox;
mod tracker;
mod verify;
mod workspaces;

pub use answer::{Answer, Content, Reply};
pub use call::{Call, CallOptions, Progress, Terms};
pub use events::{Door, Event, Events, Record};
pub use failure::Failure;
pub use files::{Arrived, Upload};
pub use git::{Credential, CredentialSource, EnvironmentCredentials, GitOptions};
pub use place::{Place, Workspaces};
pub use reference::tool_reference_markdown;
pub use registry::{Definition, Registry, Toolset, definitions};
pub use schema::leave_out_number_format;
pub use secrets::{SecretSource, Secrets};
pub use session::Session;
pub use shell::{CommandFacts, CostFacts, SandboxFacts, notes};
pub use spec::{SpecError, WorkspaceEntry, is_name as is_workspace_name, parse_workspaces};
pub use tool::{About, Class, Effect, Scope, Tool};
pub use toolbox::{Toolbox, ToolboxOptions};
pub use workspaces::SECRET_TOOLS;
