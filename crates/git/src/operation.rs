//! The operations that callers can choose from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A git subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GitOperation {
    /// Show changed and untracked files.
    Status,
    /// Show changes.
    Diff,
    /// Show commits.
    Log,
    /// Show a commit, a tag or a file of a commit.
    Show,
    /// Stage changes for the next commit.
    Add,
    /// Make a commit.
    Commit,
    /// List, create, rename or delete branches.
    Branch,
    /// Switch to a branch, or restore files.
    Checkout,
    /// Put changes aside: push, pop, apply, drop, list, show.
    Stash,
    /// Show the last commit of each line.
    Blame,
    /// Get commits from a remote.
    Fetch,
    /// Get commits from a remote and merge them.
    Pull,
    /// Send commits to a remote.
    Push,
    /// Copy a repository.
    Clone,
}

/// A subcommand that can be run without changing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadOnlyOperation {
    /// Show changed and untracked files.
    Status,
    /// Show changes.
    Diff,
    /// Show commits.
    Log,
    /// Show a commit, a tag or a file of a commit.
    Show,
    /// Show the last commit of each line.
    Blame,
    /// List branches.
    Branch,
    /// `list` or `show`.
    Stash,
}

impl GitOperation {
    /// Returns git's name of the subcommand.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Diff => "diff",
            Self::Log => "log",
            Self::Show => "show",
            Self::Add => "add",
            Self::Commit => "commit",
            Self::Branch => "branch",
            Self::Checkout => "checkout",
            Self::Stash => "stash",
            Self::Blame => "blame",
            Self::Fetch => "fetch",
            Self::Pull => "pull",
            Self::Push => "push",
            Self::Clone => "clone",
        }
    }
}

impl From<ReadOnlyOperation> for GitOperation {
    fn from(operation: ReadOnlyOperation) -> Self {
        match operation {
            ReadOnlyOperation::Status => Self::Status,
            ReadOnlyOperation::Diff => Self::Diff,
            ReadOnlyOperation::Log => Self::Log,
            ReadOnlyOperation::Show => Self::Show,
            ReadOnlyOperation::Blame => Self::Blame,
            ReadOnlyOperation::Branch => Self::Branch,
            ReadOnlyOperation::Stash => Self::Stash,
        }
    }
}
