//! What a caller means a command to be able to do.

use std::path::PathBuf;

use carrel_domain::{Network, WorkspaceAccess};

/// What the commands of a workspace may do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// The workspace, by its own absolute path without links.
    pub workspace: PathBuf,
    /// Who owns it on disk.
    pub owner: Owner,
    /// What they may do with its files.
    pub access: WorkspaceAccess,
    /// The repository at the top of the workspace, whose hooks they must not change.
    pub git_directory: GitDirectory,
    /// A directory of their own for `/tmp` and `/dev/shm`, on the disk of the workspace. It is
    /// absolute, without links, and has the directories `tmp` and `shm`.
    pub scratch: PathBuf,
    /// More that they may read.
    pub readable: Vec<PathBuf>,
    /// More that they may change.
    pub writable: Vec<PathBuf>,
    /// What must not be among that, such as the records of the server.
    pub hidden: Vec<PathBuf>,
    /// What they can reach over the network.
    pub network: Network,
    /// The host user ids for commands of a server that runs as root.
    pub users: UserRange,
}

/// A user and a group, by their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Owner {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

/// What is at the top of a workspace under the name `.git`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GitDirectory {
    /// Nothing, or nothing that is a directory.
    #[default]
    Absent,
    /// A directory without hooks.
    WithoutHooks,
    /// A directory with a directory of hooks.
    WithHooks,
}

/// A range of host user ids that belong to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserRange {
    /// The first of them.
    pub first: u32,
    /// How many there are, at least one.
    pub count: u32,
}

impl Default for UserRange {
    /// Between the ids that container managers take and those that some file systems cannot store.
    fn default() -> Self {
        Self { first: 2_000_000_000, count: 1 << 16 }
    }
}
