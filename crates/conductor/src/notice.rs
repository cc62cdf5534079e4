//! What people are told.

use std::fmt;

use carrel_domain::Timestamp;
use serde::Serialize;

use crate::entry::{Reason, RunId, Why};
use crate::state::Mode;
use carrel_tracker::IssueId;

/// What a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subject {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
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
        issue: Subject,
        /// Its run.
        run: RunId,
        /// Which attempt it is.
        attempt: u32,
    },
    /// An agent is there and has begun.
    SessionStarted {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
        /// Its run.
        run: RunId,
    },
    /// Another turn begins.
    TurnBegan {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
        /// Which turn it is.
        turn: u64,
        /// How many there may be.
        of: u64,
    },
    /// An issue that was to be begun is left alone.
    Skipped {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
        /// Why.
        why: String,
    },
    /// An agent is told to end.
    Stopped {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
        /// Why.
        why: String,
    },
    /// An agent and everything that it started are gone.
    RunEnded {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
        /// Its run.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
        /// What went wrong.
        error: Option<String>,
    },
    /// Another attempt follows.
    WillRetry {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
        /// Which attempt it will be.
        attempt: u32,
        /// What it waits for.
        why: Why,
        /// In how many milliseconds.
        delay_ms: u64,
        /// What went wrong.
        error: Option<String>,
    },
    /// Somebody has to do something.
    Blocked {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
        /// What.
        #[serde(flatten)]
        reason: Reason,
    },
    /// The issue is nobody's any more.
    Released {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
    },
    /// The workspace of a finished issue is gone.
    Cleaned {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
    },
    /// A workspace could not be removed.
    CleanupFailed {
        /// The issue.
        #[serde(flatten)]
        issue: Subject,
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
    pub fn issue(&self) -> Option<&Subject> {
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

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.identifier)
    }
}
