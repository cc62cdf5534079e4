//! What is said about workspaces.

use carrel_domain::{Layout, Network, Timestamp, WorkspaceId};
use schemars::JsonSchema;
use serde::Serialize;

/// A workspace.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Workspace")]
pub(super) struct WorkspaceShown {
    pub(super) id: WorkspaceId,
    /// What people call it.
    pub(super) name: String,
    /// How its inside is arranged.
    pub(super) layout: Layout,
    /// The network of its commands when they do not say; the operator's if none.
    pub(super) network: Option<Network>,
    /// `ready`; `new` if it has no directory yet; `unreachable` if no worker answers for its volume.
    pub(super) state: &'static str,
    pub(super) created_at: Timestamp,
    /// How many bytes it holds.
    pub(super) usage_bytes: u64,
    /// How many bytes it may hold.
    pub(super) quota_bytes: u64,
}

/// A part of the workspaces.
#[derive(Serialize, JsonSchema)]
pub(super) struct WorkspaceList {
    pub(super) workspaces: Vec<WorkspaceShown>,
    /// What to ask with as `after` for those that follow, if there may be any.
    pub(super) next_after: Option<WorkspaceId>,
}

/// What a workspace uses.
#[derive(Serialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "clients know the names")]
pub(super) struct Usage {
    pub(super) id: WorkspaceId,
    /// How many bytes it holds.
    pub(super) usage_bytes: u64,
    /// How many files it holds.
    pub(super) files: u64,
    /// How many bytes it may hold.
    pub(super) quota_bytes: u64,
    /// How many files, directories and links it may hold.
    pub(super) quota_files: Option<u64>,
    /// When that was counted; nothing if there is no directory yet.
    pub(super) as_of: Option<Timestamp>,
}
