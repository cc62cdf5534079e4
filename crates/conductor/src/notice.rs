//! What people are told.

use std::fmt;

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::claimed_issue::{BlockReason, RetryReason, RunId};
use crate::state::Mode;
use carrel_tracker::IssueId;

/// What a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IssueRef {
    /// What the tracker knows the issue by.
    #[serde(rename = "issue_id")]
    pub id: IssueId,
    /// What people know it by.
    #[serde(rename = "issue_identifier")]
    pub identifier: String,
    /// The session of its agent, if it has one.
    #[serde(rename = "session_id")]
    pub session: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RunOutcome")]
pub enum RunOutcome {
    /// As it was meant to.
    Success,
    /// By a failure.
    Failure,
    /// Without a sign of life.
    Stall,
    /// With a question, or because it got nowhere.
    Blocked,
    /// Because what it may spend is spent.
    BudgetExceeded,
    /// Because the provider wants fewer requests.
    RateLimited,
    /// Because its issue is finished, or not to be worked on any more.
    Stopped,
    /// Because somebody said so.
    Cancelled,
}

/// Something that people want to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Notice {
    /// An agent is started.
    Dispatched {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
        /// Its run.
        run: RunId,
        /// Which attempt it is.
        attempt: u32,
    },
    /// An agent is there and has begun.
    SessionStarted {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
        /// Its run.
        run: RunId,
    },
    /// Another turn begins.
    TurnBegan {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
        /// Which turn it is.
        turn: u64,
        /// How many there may be.
        of: u64,
    },
    /// An issue that was to be begun is left alone.
    Skipped {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
        /// Why.
        why: String,
    },
    /// An agent is told to end.
    Stopped {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
        /// Why.
        why: String,
    },
    /// An agent and everything that it started are gone.
    RunEnded {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
        /// Its run.
        run: RunId,
        /// How it ended.
        outcome: RunOutcome,
        /// What went wrong.
        error: Option<String>,
    },
    /// Another attempt follows.
    WillRetry {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
        /// Which attempt it will be.
        attempt: u32,
        /// What it waits for.
        why: RetryReason,
        /// In how many milliseconds.
        delay_ms: u64,
        /// What went wrong.
        error: Option<String>,
    },
    /// Somebody has to do something.
    Blocked {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
        /// What.
        #[serde(flatten)]
        reason: BlockReason,
    },
    /// The issue is nobody's any more.
    Released {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
    },
    /// The workspace of a finished issue is gone.
    Cleaned {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
    },
    /// A workspace could not be removed.
    CleanupFailed {
        /// The issue.
        #[serde(flatten)]
        issue: IssueRef,
        /// Why.
        error: String,
    },
    /// The tracker did not answer.
    TrackerFailed {
        /// What was asked.
        doing: &'static str,
        /// Why.
        error: String,
    },
    /// Nothing is begun for a while.
    Held {
        /// Who wants it.
        by: &'static str,
        /// How long.
        until: Timestamp,
    },
    /// Somebody changed whether work is begun.
    ModeChanged {
        /// To what.
        mode: Mode,
    },
    /// The workflow file was changed and is in force.
    WorkflowChanged,
    /// The workflow file cannot be used. Nothing is begun until it can.
    WorkflowBroken {
        /// Why.
        error: String,
    },
    /// An order cannot be carried out.
    Refused {
        /// Why.
        why: String,
    },
}

impl Notice {
    /// Tells whether somebody should look at it.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Blocked { .. }
            | Self::CleanupFailed { .. }
            | Self::TrackerFailed { .. }
            | Self::Held { .. }
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

    /// Returns what it is about.
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
            | Self::Cleaned { issue }
            | Self::CleanupFailed { issue, .. } => Some(issue),
            Self::TrackerFailed { .. }
            | Self::Held { .. }
            | Self::ModeChanged { .. }
            | Self::WorkflowChanged
            | Self::WorkflowBroken { .. }
            | Self::Refused { .. } => None,
        }
    }
}

/// Says how long something takes, in the unit that tells most.
fn length(millis: u64) -> String {
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
            Self::Continuation => "to go on",
            Self::Failure => "after a failure",
            Self::Stall => "after silence",
            Self::RateLimited => "when the provider allows it",
            Self::RunBudget => "after a run that used too much",
            Self::DayBudget => "when the next day begins",
            Self::Interrupted => "since Carrel was stopped",
            Self::Operator => "since somebody wants it",
        })
    }
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "well",
            Self::Failure => "with a failure",
            Self::Stall => "after silence",
            Self::Blocked => "blocked",
            Self::BudgetExceeded => "over its budget",
            Self::RateLimited => "at the limit of its provider",
            Self::Stopped => "since its issue has moved on",
            Self::Cancelled => "since somebody cancelled it",
        })
    }
}

/// One line for people.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatched { issue, attempt: 0, .. } => write!(f, "{issue}: an agent starts"),
            Self::Dispatched { issue, attempt, .. } => {
                write!(f, "{issue}: an agent starts, attempt {attempt}")
            }
            Self::SessionStarted { issue, .. } => write!(f, "{issue}: the agent is at work"),
            Self::TurnBegan { issue, turn, of } => write!(f, "{issue}: turn {turn} of {of} begins"),
            Self::Skipped { issue, why } => write!(f, "{issue}: left alone, {why}"),
            Self::Stopped { issue, why } => write!(f, "{issue}: the agent is told to end, {why}"),
            Self::RunEnded { issue, outcome, error: None, .. } => {
                write!(f, "{issue}: the run ended {outcome}")
            }
            Self::RunEnded { issue, outcome, error: Some(error), .. } => {
                write!(f, "{issue}: the run ended {outcome}: {error}")
            }
            Self::WillRetry { issue, attempt, why, delay_ms, .. } => {
                let wait = length(*delay_ms);
                write!(f, "{issue}: taken up again in {wait} {why}, attempt {attempt}")
            }
            Self::Blocked { issue, reason } => write!(f, "{issue}: waits for somebody, {reason}"),
            Self::Released { issue } => write!(f, "{issue}: let go"),
            Self::Cleaned { issue } => write!(f, "{issue}: finished, and its workspace is removed"),
            Self::CleanupFailed { issue, error } => {
                write!(f, "{issue}: its workspace could not be removed: {error}")
            }
            Self::TrackerFailed { doing, error } => {
                write!(f, "the tracker did not answer a {doing}: {error}")
            }
            Self::Held { by: "tracker", until } => {
                write!(f, "the tracker wants to be left alone until {until}")
            }
            Self::Held { until, .. } => {
                write!(f, "the provider of the agents wants to be left alone until {until}")
            }
            Self::ModeChanged { mode: Mode::Working } => f.write_str("work goes on"),
            Self::ModeChanged { mode: Mode::Paused } => f.write_str("paused: nothing is begun"),
            Self::ModeChanged { mode: Mode::Draining } => {
                f.write_str("draining: nothing is begun, and agents end after their turns")
            }
            Self::WorkflowChanged => f.write_str("the changed workflow file is in force"),
            Self::WorkflowBroken { error } => {
                write!(f, "the workflow file cannot be used, so nothing is begun: {error}")
            }
            Self::Refused { why } => write!(f, "refused: {why}"),
        }
    }
}

impl fmt::Display for IssueRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.identifier)
    }
}
