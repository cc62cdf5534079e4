//! What a tool is.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::response::Reply;
use crate::tool_context::ToolContext;

/// One operation that an agent can call.
pub trait Tool: Send + Sync + 'static {
    /// What it takes, beside `workspace`, which every tool takes. Unknown fields must be an error.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;
    /// The facts about its result. Bulk, such as the text of a file, is not among them.
    type Facts: Serialize + JsonSchema + Send + 'static;

    /// What it is for.
    const ABOUT: About;

    /// Does the work.
    fn call(
        &self,
        context: &ToolContext,
        input: Self::Input,
    ) -> impl Future<Output = Result<Reply<Self::Facts>, Failure>> + Send;
}

/// What there is to know about a tool before calling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The name that calls use.
    pub name: &'static str,
    /// The name that people see.
    pub title: &'static str,
    /// What it does to the workspace.
    pub class: Class,
    /// What it does beyond that, for clients that ask before they call.
    pub effect: Effect,
    /// Which workspaces one call can be about.
    pub workspaces: WorkspaceChoice,
    /// Teaches an agent when to use it, and how.
    pub description: &'static str,
}

/// What a tool does to a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Changes nothing.
    Read,
    /// Changes files.
    Write,
    /// Runs programs, which may change files.
    Execute,
}

/// What a client may want to know before it calls a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// It may take away what was there.
    pub destructive: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It may deal with something outside the workspace, such as a network.
    pub open_world: bool,
}

impl Effect {
    /// Nothing changes.
    pub const NONE: Self = Self { destructive: false, idempotent: true, open_world: false };
    /// Something is added; nothing is lost.
    pub const ADDS: Self = Self { destructive: false, idempotent: false, open_world: false };
    /// Something may be replaced or removed.
    pub const REPLACES: Self = Self { destructive: true, idempotent: false, open_world: false };
    /// Programs run, which may do anything that their walls allow.
    pub const RUNS: Self = Self { destructive: true, idempotent: false, open_world: true };
}

/// Which workspaces one call can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceChoice {
    /// Exactly one; with several, the call has to say which.
    One,
    /// One, or with `all` each of them in turn.
    OneOrAll,
    /// One, or no certain one.
    Optional,
}
