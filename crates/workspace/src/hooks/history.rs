//! Past runs of hooks, as the record keeps them.

use std::path::PathBuf;

use carrel_domain::Timestamp;
use carrel_exec::{Outcome, Stop};
use serde::{Deserialize, Serialize};

use super::Hook;

/// A run of a hook: its start, its duration, its result, the size of its output and the file that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the summary defines the fields")]
pub struct HookRun {
    pub hook: Hook,
    pub started_at: Timestamp,
    pub duration_ms: u64,
    pub end: HookEnd,
    pub output_bytes: u64,
    #[serde(with = "carrel_domain::lossy_path")]
    pub log: PathBuf,
}

/// The result of a hook. It fails with any exit status but zero, and if its script was never reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names define the variants")]
pub enum HookEnd {
    Succeeded,
    Failed,
    TimedOut,
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

    /// Returns the phrase for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Cancelled => "was cancelled",
        }
    }
}
