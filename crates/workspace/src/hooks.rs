//! The operator's scripts at the turning points of a workspace's life.

mod error;
mod history;
mod runner;
mod sandbox;
mod settings;

pub use error::HookError;
pub use history::{HookEnd, HookRun};
pub use runner::Hooks;
pub(crate) use runner::{HookContext, Site};
pub use sandbox::{HookSandbox, HookSandboxError, SandboxedHook};
pub use settings::HookSettings;

use serde::{Deserialize, Serialize};

/// A point in the life of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// Once, in a new directory. A failure takes the directory back.
    AfterCreate,
    /// Before each attempt. A failure ends the attempt.
    BeforeRun,
    /// After each attempt, also a cancelled one. A failure is logged.
    AfterRun,
    /// Before the directory goes. A failure is logged.
    BeforeRemove,
}

impl Hook {
    /// Returns the name of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AfterCreate => "after_create",
            Self::BeforeRun => "before_run",
            Self::AfterRun => "after_run",
            Self::BeforeRemove => "before_remove",
        }
    }
}
