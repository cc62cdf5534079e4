//! Notices: what the conductor logs, publishes to subscribers and shows in the terminal.
//!
//! A notice is a fact for operators and programs; nothing is decided on it. It is serialised with the tag
//! `what`, and its [`fmt::Display`] form is the one-line message.

use std::fmt;

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::claimed_issue::{BlockReason, RetryReason, RunId};
use crate::state::Mode;
use carrel_tracker::IssueId;

/// The issue that a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IssueRef {
    /// The tracker's id of the issue.
    #[serde(rename = "issue_id")]
    pub id: IssueId,
    /// The identifier that people use, such as `ABC-123`.
    #[serde(rename = "issue_identifier")]
    pub identifier: String,
    /// The session of the issue's run at the time of the notice.
    #[serde(rename = "session_id")]
    pub session: Option<String>,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// It took its turns and finished.
    Success,
    /// It failed.
    Failure,
    /// It was stopped because its agent sent no event within the stall timeout.
    Stall,
    /// It ended with a question, a request for approval, or too many turns without progress.
    Blocked,
    /// It was stopped because a budget was exhausted.
    BudgetExceeded,
    /// It ended with a rate limit of the agent's provider.
    RateLimited,
    /// It was stopped because its issue is finished or no longer active.
    Stopped,
    /// It was stopped by an operator.
    Cancelled,
}

/// A fact for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of `issue`, `run`, `why` and `error` say it all")]
pub enum Notice {
    /// A run starts: its workspace is prepared next.
    Dispatched {
        #[serde(flatten)]
        issue: IssueRef,
        run: RunId,
        /// The number of the retry; 0 for the first run.
        attempt: u32,
    },
    /// The agent of a run has started its session, and the first turn is in progress.
    SessionStarted {
        #[serde(flatten)]
        issue: IssueRef,
        run: RunId,
    },
    /// A further turn starts.
    TurnBegan {
        #[serde(flatten)]
        issue: IssueRef,
        /// The number of the turn.
        turn: u64,
        /// The configured maximum.
        of: u64,
    },
    /// An issue that had a slot is not dispatched after all, because it changed or could not be read.
    Skipped {
        #[serde(flatten)]
        issue: IssueRef,
        why: String,
    },
    /// A run is told to end. [`Self::RunEnded`] follows when all its processes have ended.
    Stopped {
        #[serde(flatten)]
        issue: IssueRef,
        why: String,
    },
    /// A run and all its processes have ended.
    RunEnded {
        #[serde(flatten)]
        issue: IssueRef,
        run: RunId,
        outcome: RunOutcome,
        error: Option<String>,
    },
    /// A further run is scheduled.
    WillRetry {
        #[serde(flatten)]
        issue: IssueRef,
        /// The number of the retry.
        attempt: u32,
        why: RetryReason,
        /// The wait in milliseconds.
        delay_ms: u64,
        error: Option<String>,
    },
    /// An issue waits for an operator.
    Blocked {
        #[serde(flatten)]
        issue: IssueRef,
        #[serde(flatten)]
        reason: BlockReason,
    },
    /// The claim of an issue is released, because it is no longer active or visible.
    Released {
        #[serde(flatten)]
        issue: IssueRef,
    },
    /// The workspace of a finished issue is removed.
    Cleaned {
        #[serde(flatten)]
        issue: IssueRef,
        /// The name of unsaved work that is kept, for `carrel workspace restore`.
        kept: Option<String>,
    },
    /// A workspace could not be removed; the removal is repeated.
    CleanupFailed {
        #[serde(flatten)]
        issue: IssueRef,
        error: String,
    },
    /// A query to the tracker failed. Claimed issues stay as they are until the next one succeeds.
    TrackerFailed {
        /// The kind of query: `poll` or `read`.
        doing: &'static str,
        error: String,
    },
    /// A rate limit stops dispatches. Sent when the limit is reported or extended, not when it ends.
    #[serde(rename = "held")]
    RateLimited {
        /// The side that reported the limit: `tracker` or `agents`.
        by: &'static str,
        /// The end of the limit.
        until: Timestamp,
    },
    /// An operator changed the mode.
    ModeChanged { mode: Mode },
    /// A changed workflow file is in force.
    WorkflowChanged,
    /// The workflow file is invalid. Nothing is dispatched until it is repaired.
    WorkflowBroken { error: String },
    /// An operator's command was rejected.
    Refused { why: String },
}

impl Notice {
    /// Returns true for notices that an operator should look at.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Blocked { .. }
            | Self::CleanupFailed { .. }
            | Self::TrackerFailed { .. }
            | Self::RateLimited { .. }
            | Self::WorkflowBroken { .. } => true,
            Self::WillRetry { error, .. } | Self::RunEnded { error, .. } => error.is_some(),
            Self::Dispatched { .. }
            | Self::SessionStarted { .. }
            | Self::TurnBegan { .. }
            | Self::Skipped { .. }
            | Self::Stopped { .. }
            | Self::Released { .. }
            | Self::Cleaned { .. }
            | Self::ModeChanged { .. }
            | Self::WorkflowChanged
            | Self::Refused { .. } => false,
        }
    }

    /// Returns the issue, for notices about one.
    pub fn issue(&self) -> Option<&IssueRef> {
        match self {
            Self::Dispatched { issue, .. }
            | Self::SessionStarted { issue, .. }
            | Self::TurnBegan { issue, .. }
            | Self::Skipped { issue, .. }
            | Self::Stopped { issue, .. }
            | Self::RunEnded { issue, .. }
            | Self::WillRetry { issue, .. }
            | Self::Blocked { issue, .. }
            | Self::Released { issue }
            | Self::Cleaned { issue, .. }
            | Self::CleanupFailed { issue, .. } => Some(issue),
            Self::TrackerFailed { .. }
            | Self::RateLimited { .. }
            | Self::ModeChanged { .. }
            | Self::WorkflowChanged
            | Self::WorkflowBroken { .. }
            | Self::Refused { .. } => None,
        }
    }
}

/// Formats a wait in the largest unit that keeps two digits.
fn format_wait(millis: u64) -> String {
    match millis {
        0..10_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        10_000..600_000 => format!("{} s", millis / 1000),
        600_000..7_200_000 => format!("{} min", millis / 60_000),
        _ => format!("{} h", millis / 3_600_000),
    }
}

impl fmt::Display for RetryReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Continuation => "continuation",
            Self::Failure => "after a failure",
            Self::Stall => "after a stall",
            Self::RateLimited => "rate limit",
            Self::RunBudget => "run budget exhausted",
            Self::DayBudget => "daily budget exhausted",
            Self::Interrupted => "after an interruption",
            Self::Operator => "by an operator",
        })
    }
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "successfully",
            Self::Failure => "with a failure",
            Self::Stall => "after a stall",
            Self::Blocked => "blocked",
            Self::BudgetExceeded => "over its budget",
            Self::RateLimited => "at a rate limit",
            Self::Stopped => "as its issue is no longer active",
            Self::Cancelled => "as an operator cancelled it",
        })
    }
}

/// The one-line message.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatched { issue, attempt: 0, .. } => write!(f, "{issue}: a run starts"),
            Self::Dispatched { issue, attempt, .. } => {
                write!(f, "{issue}: a run starts, attempt {attempt}")
            }
            Self::SessionStarted { issue, .. } => write!(f, "{issue}: the session has started"),
            Self::TurnBegan { issue, turn, of } => write!(f, "{issue}: turn {turn} of {of} starts"),
            Self::Skipped { issue, why } => write!(f, "{issue}: skipped, {why}"),
            Self::Stopped { issue, why } => write!(f, "{issue}: the run is stopped, {why}"),
            Self::RunEnded { issue, outcome, error: None, .. } => {
                write!(f, "{issue}: the run ended {outcome}")
            }
            Self::RunEnded { issue, outcome, error: Some(error), .. } => {
                write!(f, "{issue}: the run ended {outcome}: {error}")
            }
            Self::WillRetry { issue, attempt, why, delay_ms, .. } => {
                let wait = format_wait(*delay_ms);
                write!(f, "{issue}: retry in {wait} ({why}), attempt {attempt}")
            }
            Self::Blocked { issue, reason } => write!(f, "{issue}: blocked, {reason}"),
            Self::Released { issue } => write!(f, "{issue}: released"),
            Self::Cleaned { issue, kept: None } => {
                write!(f, "{issue}: finished, its workspace is removed")
            }
            Self::Cleaned { issue, kept: Some(name) } => {
                write!(
                    f,
                    "{issue}: finished, its workspace is removed; unsaved work is kept as {name}"
                )
            }
            Self::CleanupFailed { issue, error } => {
                write!(f, "{issue}: its workspace could not be removed: {error}")
            }
            Self::TrackerFailed { doing, error } => {
                write!(f, "a {doing} of the tracker failed: {error}")
            }
            Self::RateLimited { by: "tracker", until } => {
                write!(f, "rate limit of the tracker until {until}")
            }
            Self::RateLimited { until, .. } => {
                write!(f, "rate limit of the agents' provider until {until}")
            }
            Self::ModeChanged { mode: Mode::Working } => f.write_str("resumed"),
            Self::ModeChanged { mode: Mode::Paused } => {
                f.write_str("paused: nothing is dispatched")
            }
            Self::ModeChanged { mode: Mode::Draining } => {
                f.write_str("draining: nothing is dispatched, and runs end after their turns")
            }
            Self::WorkflowChanged => f.write_str("the changed workflow file is in force"),
            Self::WorkflowBroken { error } => {
                write!(f, "the workflow file is invalid, so nothing is dispatched: {error}")
            }
            Self::Refused { why } => write!(f, "command rejected: {why}"),
        }
    }
}

impl fmt::Display for IssueRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.identifier)
    }
}
