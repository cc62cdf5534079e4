//! Hooks that ran, as the record remembers them.

use std::path::PathBuf;

use carrel_domain::Timestamp;
use carrel_exec::{Outcome, Stop};
use serde::{Deserialize, Serialize};

use super::Hook;

/// A hook that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRun {
    /// Which hook.
    pub hook: Hook,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// How it went.
    pub end: HookEnd,
    /// How many bytes it printed.
    pub output_bytes: u64,
    /// The file with all that it printed.
    #[serde(with = "carrel_domain::lossy_path")]
    pub log: PathBuf,
}

/// How a hook went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEnd {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It ran into its deadline.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

impl HookEnd {
    pub(super) fn of(outcome: &Outcome) -> Self {
        match outcome.stop {
            Some(Stop::Deadline) => Self::TimedOut,
            Some(Stop::Cancelled) => Self::Cancelled,
            None if outcome.succeeded() => Self::Succeeded,
            None => Self::Failed,
        }
    }

    /// Returns the words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Cancelled => "was cancelled",
        }
    }
}
