//! The policy: the operator's decision about the commands of one workspace, with every path resolved.
//!
//! A policy says nothing about mechanisms. [`Plan::new`](crate::Plan::new) turns it into mounts, rules
//! and filters, and refuses policies that cannot be enforced.

use std::path::PathBuf;

use carrel_domain::{Network, WorkspaceAccess};

/// The files, network and users that the commands of a workspace may use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// The absolute path of the workspace, without symbolic links.
    pub workspace: PathBuf,
    /// The owner of the workspace directory on disk.
    pub owner: Owner,
    /// The origin of the tree that commands see at the workspace's path.
    pub workspace_source: WorkspaceSource,
    /// A second path of the tree, in tier `full`: that of a fork's base, which programs and settings name that were
    /// installed there. Absolute, without links, and neither in the workspace nor above it. It is left out where a
    /// granted path covers it.
    pub alias: Option<PathBuf>,
    /// The access of commands to the files of the workspace.
    pub access: WorkspaceAccess,
    /// The state of `.git` at the top of the workspace. Commands must not change its hooks, which git
    /// runs outside the sandbox later.
    pub git_directory: GitDirectory,
    /// The scratch directory for `/tmp` and `/dev/shm`, on the disk of the workspace so that it counts
    /// against its quota. Absolute, without links, with the directories `tmp` and `shm` in it.
    pub scratch: PathBuf,
    /// The home directory of commands on the host: absolute, without links, on the disk of the workspace, and
    /// below a directory that only Carrel can change. `None` makes the workspace itself the home.
    pub home: Option<PathBuf>,
    /// Further paths of the host that commands may read.
    pub readable: Vec<PathBuf>,
    /// Further paths of the host that commands may change.
    pub writable: Vec<PathBuf>,
    /// Paths that no grant may reveal, such as the records of the server. A plan that would show one is
    /// refused.
    pub hidden: Vec<PathBuf>,
    /// The network that commands can reach.
    pub network: Network,
    /// The host user ids for commands of a server that runs as root.
    pub users: UserRange,
}

/// A numeric user id and group id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Owner {
    /// The user id.
    pub user: u32,
    /// The group id.
    pub group: u32,
}

/// The origin of the tree that commands see at the path of a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WorkspaceSource {
    /// The directory at that path.
    #[default]
    Directory,
    /// An overlay that is mounted there in a mount namespace of its own: the tree of a fork. Needs tier `full`.
    Overlay,
}

/// The state of the `.git` entry at the top of a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GitDirectory {
    /// There is none, or it is not a directory (a worktree's `.git` is a file).
    #[default]
    Absent,
    /// A directory without hooks.
    WithoutHooks,
    /// A directory with a directory of hooks.
    WithHooks,
}

/// A range of host user ids that no account uses. A server that runs as root gives each workspace one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserRange {
    /// The first id.
    pub first: u32,
    /// The number of ids, at least one.
    pub count: u32,
}

impl Default for UserRange {
    /// Starts above the ids that container managers allocate and ends below 2^31, above
    /// which some file systems cannot store ids.
    fn default() -> Self {
        Self { first: 2_000_000_000, count: 1 << 16 }
    }
}
