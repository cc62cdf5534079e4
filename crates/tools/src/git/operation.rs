//! The operations there are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What git is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    /// What changed since the last commit.
    Status,
    /// The changes themselves.
    Diff,
    /// Commits.
    Log,
    /// A commit, a tag or a file of a commit.
    Show,
    /// Take changes up for the next commit.
    Add,
    /// Make a commit.
    Commit,
    /// List, make, rename or delete branches.
    Branch,
    /// Change to a branch, or bring files back.
    Checkout,
    /// Put changes aside: push, pop, apply, drop, list, show.
    Stash,
    /// Who wrote which line.
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

/// An operation that only looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Inspection {
    /// What changed since the last commit.
    Status,
    /// The changes themselves.
    Diff,
    /// Commits.
    Log,
    /// A commit, a tag or a file of a commit.
    Show,
    /// Who wrote which line.
    Blame,
    /// List branches.
    Branch,
    /// `list` or `show`.
    Stash,
}

impl Operation {
    /// Returns the word that git takes.
    pub(crate) fn as_str(self) -> &'static str {
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

impl From<Inspection> for Operation {
    fn from(inspection: Inspection) -> Self {
        match inspection {
            Inspection::Status => Self::Status,
            Inspection::Diff => Self::Diff,
            Inspection::Log => Self::Log,
            Inspection::Show => Self::Show,
            Inspection::Blame => Self::Blame,
            Inspection::Branch => Self::Branch,
            Inspection::Stash => Self::Stash,
        }
    }
}
