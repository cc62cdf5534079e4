//! Hooks: the operator's scripts at points of a workspace's life.

mod error;
mod history;
mod runner;
mod sandbox;
mod settings;

pub use error::HookError;
pub use history::{HookEnd, HookRun};
pub(crate) use runner::HookSite;
pub use runner::Hooks;
pub use sandbox::{HookSandbox, HookSandboxError, SandboxedHook};
pub use settings::HookSettings;

use serde::{Deserialize, Serialize};

/// A hook, by its point in the life of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// Once, in a new directory. A failure removes the directory.
    AfterCreate,
    /// Before each attempt. A failure ends the attempt before its agent or command starts.
    BeforeRun,
    /// After each attempt, also a cancelled one. A failure is logged.
    AfterRun,
    /// Before the directory is removed. A failure is logged.
    BeforeRemove,
}

impl Hook {
    /// Returns the name in the workflow file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AfterCreate => "after_create",
            Self::BeforeRun => "before_run",
            Self::AfterRun => "after_run",
            Self::BeforeRemove => "before_remove",
        }
    }
}
