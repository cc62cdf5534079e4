//! `/api/workspaces`

use carrel_domain::{Layout, MAX_FORKS, Network, Timestamp, WorkspaceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{DEFAULT_PAGE, MAX_NAME_CHARS, MAX_PAGE, MAX_QUOTA_GB, MIN_QUOTA_GB};
use crate::pattern::NO_CONTROL;

/// A workspace to create.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkspace {
    /// The name for people. Several workspaces may have the same.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NO_CONTROL))]
    pub name: String,
    /// The layout of its directory.
    #[serde(default = "tenant")]
    pub layout: Layout,
    /// The quota in GiB, fractions included; the server's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = MIN_QUOTA_GB, max = MAX_QUOTA_GB))]
    pub quota_gb: Option<f64>,
    /// The network of commands that do not ask for one, and the most that any of them gets. It cannot be more
    /// than the operator allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

fn tenant() -> Layout {
    Layout::Tenant
}

impl NewWorkspace {
    /// Returns a workspace of this name with the server's defaults.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), layout: tenant(), quota_gb: None, network: None }
    }
}

/// The query of the list of workspaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceQuery {
    /// The last workspace of the page before: the list continues after it.
    pub after: Option<WorkspaceId>,
    /// The most workspaces to return.
    #[schemars(range(min = 1, max = MAX_PAGE), extend("default" = DEFAULT_PAGE))]
    pub limit: Option<u32>,
}

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workspace {
    /// The id.
    pub id: WorkspaceId,
    /// The name for people.
    pub name: String,
    /// The layout of its directory.
    pub layout: Layout,
    /// The network of commands that do not ask for one, and the most that any of them gets; the operator's
    /// default and cap if `null`.
    pub network: Option<Network>,
    /// `ready`; `new` while it has no directory; `unreachable` if no worker answers for its volume.
    #[schemars(with = "String")]
    pub state: WorkspaceState,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// Bytes in use; 0 while the workspace is not `ready`.
    pub usage_bytes: u64,
    /// The quota in bytes.
    pub quota_bytes: u64,
}

/// The state of a workspace's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceState {
    /// The directory exists on a volume that a worker serves.
    Ready,
    /// The directory is created by the first request that needs it.
    New,
    /// No worker answers for the volume of the directory.
    Unreachable,
}

/// A page of the workspaces that the token covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceList {
    /// The workspaces, by id.
    pub workspaces: Vec<Workspace>,
    /// The value of `after` for the next page; `null` after the last.
    pub next_after: Option<WorkspaceId>,
}

/// The disk usage of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceUsage {
    /// The id of the workspace.
    pub id: WorkspaceId,
    /// Bytes in use: allocated blocks, each inode counted once.
    pub usage_bytes: u64,
    /// Files, directories and links in use.
    pub files: u64,
    /// The quota in bytes.
    pub quota_bytes: u64,
    /// The quota in files, directories and links.
    pub quota_files: Option<u64>,
    /// The time of the measurement; `null` while the workspace has no directory.
    pub as_of: Option<Timestamp>,
}

/// Forks to make of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewForks {
    /// The number of forks.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MAX_FORKS))]
    pub count: u8,
    /// The snapshot with the work of a fork that has ended: the one new fork begins with that, put onto this workspace as it
    /// is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

fn one() -> u8 {
    1
}

/// The forks of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkList {
    /// The forks. Each is a workspace, which a token for the base covers too.
    pub forks: Vec<Workspace>,
    /// The seconds without a use after which a fork is ended, and its work becomes a snapshot of the base; `null` if none is.
    pub idle_seconds: Option<u64>,
}

/// The difference of a file between a fork and its base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkChange {
    /// The path, relative to the workspace.
    pub path: String,
    /// `added`, `modified`, `deleted`, `mode`, `type` or `attributes`.
    pub change: String,
}

/// The comparison of a fork.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkChangesQuery {
    /// Another fork of the same base to compare with; the base if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<WorkspaceId>,
    /// Also return the differences of text files.
    #[serde(default)]
    pub patch: bool,
}

/// The changes of a fork against its base, or another fork of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkChanges {
    /// The changes, in path order.
    pub changes: Vec<ForkChange>,
    /// The number of all changes, of which the list may have only the first.
    pub total: usize,
    /// The differences in the form of `git diff`, if they were asked for, as far as they fit. What changed below `.git` is
    /// not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The number of changes that are not in the patch, since it would be too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<usize>,
}

/// Changes of a base that a fork has taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdoptedChanges {
    /// The base.
    pub base: WorkspaceId,
    /// The first of the entries of the base that changed.
    pub changed: Vec<String>,
    /// The number of all of them.
    pub total: usize,
}

/// A promotion of a fork.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// End the other forks of the base without a snapshot of their work.
    #[serde(default)]
    pub discard_others: bool,
}

/// A promoted fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promoted {
    /// The base, which is now what the fork was.
    pub base: WorkspaceId,
    /// The changes of the base.
    #[serde(flatten)]
    pub changes: ForkChanges,
    /// The snapshot of the base as it was before; `null` if nothing changed.
    pub before: Option<String>,
    /// The other forks, which have ended.
    pub ended: Vec<EndedFork>,
}

/// A fork that ended because another one was promoted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedFork {
    /// Its id.
    pub id: String,
    /// The snapshot of the base with its work; `null` if it had changed nothing or was discarded.
    pub snapshot: Option<String>,
    /// It changed files, but only such as ignore rules exclude, which no snapshot has.
    pub only_ignored: bool,
}
