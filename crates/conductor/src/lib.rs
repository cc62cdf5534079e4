//! The conductor: one workspace and one agent for each issue of a tracker.
//!
//! [`decide`] is the whole policy, a pure function from a [`State`] and an [`Event`] to the next state and
//! the [`Effect`]s that follow. [`drive`] owns the state, writes the effects' journal entries, performs
//! the effects in tasks of their own and feeds their results back as events; it takes no decisions.
//! [`snapshot`] and [`dashboard`] are read-only projections of the state for the API and the terminal.
//!
//! ```text
//! tracker   ──► Polled, Read            ──►┐                ┌──► Poll, Read ──► tracker
//! agents    ──► AgentUpdated, RunEnded  ──►┤ State ► decide ├──► Dispatch, NextTurn, Stop ──► agents
//! operators ──► Command                 ──►┘                └──► Save, Clean, Notify
//! ```
#![forbid(unsafe_code)]

mod backoff;
mod claimed_issue;
mod command_rejection;
pub mod dashboard;
mod deadlines;
mod decide;
pub mod drive;
mod effect;
mod event;
mod notice;
mod provider_limits;
mod rules;
pub mod snapshot;
mod spend;
mod state;
mod truncate;

pub use carrel_tracker::{Blocker, Issue, IssueId, TrackerError, TrackerErrorKind};
pub use claimed_issue::{
    AgentEvent, BetweenTurns, Block, BlockReason, ClaimedIssue, FollowUp, Retry, RetryReason, Run,
    RunId, Stage,
};
pub use command_rejection::CommandRejection;
pub use decide::decide;
pub use effect::{Dispatch, Effect};
pub use event::{AgentUpdate, Event, OperatorCommand, RunEnd, TurnEffects};
pub use notice::{IssueRef, Notice, RunOutcome};
pub use rules::{Disposition, Rules, dispatch_order};
pub use spend::{DailySpend, Spend};
pub use state::{Ledger, Mode, NumberedNotice, PollState, QueryId, RateLimitedUntil, State};
