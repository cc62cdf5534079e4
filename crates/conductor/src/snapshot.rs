//! Read-only projections of the state for the API, the console and the terminal.
//!
//! A [`Snapshot`] is a copy of one published state at one time, so all its parts agree: the counts are the
//! lengths of the lists, and the totals include runs in progress up to `generated_at`. Its serialised form
//! is the reply of `GET /api/v1/state`, whose format is specified; so `codex_totals` counts agents of every
//! kind. The doc comments are the descriptions in `docs/openapi.json`.

mod issue_view;
mod rows;

pub use issue_view::{Attempts, IssueView, Logs, SessionLog, Status, WorkspaceView};
pub use rows::{BlockedRow, CleaningRow, Phase, RetryRow, RunningRow, TokenCounts, WaitingRow};

use std::collections::BTreeMap;

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::claimed_issue::ClaimedIssue;
use crate::notice::RunOutcome;
use crate::spend::Spend;
use crate::state::{Mode, NumberedNotice, PollState, State};

/// The state of the conductor at one time, as the API, the console and the terminal show it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConductorState")]
pub struct Snapshot {
    /// The time of the snapshot, to which all running times and waits refer.
    pub generated_at: Timestamp,
    /// The mode that an operator last set: `working`, `paused` or `draining`.
    pub mode: Mode,
    /// The lengths of the lists below.
    pub counts: IssueCounts,
    /// Issues that hold an agent slot: being checked, running or stopping.
    pub running: Vec<RunningRow>,
    /// Issues with a scheduled retry, ordered by due time, the next one first.
    pub retrying: Vec<RetryRow>,
    /// Issues that wait for an operator, the longest wait first.
    pub blocked: Vec<BlockedRow>,
    /// Eligible issues that wait for a slot, in dispatch order.
    pub waiting: Vec<WaitingRow>,
    /// Finished issues whose workspaces are being removed, or wait for another attempt to remove them.
    pub cleaning: Vec<CleaningRow>,
    /// Consumption of all issues, runs in progress included.
    pub codex_totals: Totals,
    /// Consumption of the current day (UTC), runs in progress included.
    pub today: Totals,
    /// The latest rate limits that an agent reported, in its provider's format.
    pub rate_limits: Option<Value>,
    /// The poll of the tracker: in flight, or when the next one is due.
    pub polling: Polling,
    /// Agent slots in all, from `agent.max_concurrent_agents`.
    pub max_concurrent_agents: usize,
    /// The end of the rate limit that stops dispatches, if one is in force.
    pub held_until: Option<Timestamp>,
    /// The error of an invalid workflow file; nothing is dispatched while it is set.
    pub workflow_error: Option<String>,
    /// Ended runs since the start of the conductor, by outcome.
    pub outcomes: BTreeMap<RunOutcome, u64>,
    /// The latest notices, oldest first, at most 100.
    pub recent_events: Vec<NumberedNotice>,
}

/// Numbers of issues by stage; a resting issue is in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "each is the length of the list of the same name")]
#[schemars(rename = "ConductorCounts")]
pub struct IssueCounts {
    pub running: usize,
    pub retrying: usize,
    pub blocked: usize,
    pub waiting: usize,
    pub cleaning: usize,
}

/// Consumption of agents: tokens as reported, time up to the snapshot, and counts of turns and runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConductorTotals")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Totals {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// All tokens as the agents count them, which need not be the sum of input and output.
    pub total_tokens: u64,
    /// Running time of agents in seconds, runs in progress included.
    pub seconds_running: f64,
    /// Turns that started, the current ones included.
    pub turns: u64,
    /// Runs that started, the current ones included.
    pub attempts: u64,
}

/// The poll of the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Polling {
    /// A poll, or the read at startup, is in flight.
    pub checking: bool,
    /// Milliseconds until the next poll; `null` while one is in flight or if none will follow.
    pub next_poll_in_ms: Option<u64>,
    /// The configured interval in milliseconds.
    pub poll_interval_ms: u64,
}

impl Snapshot {
    /// Creates the snapshot of a state. `now` is the end of the running times and the base of waits.
    pub fn of(state: &State, now: Timestamp) -> Self {
        let mut issues: Vec<&ClaimedIssue> = state.issues.values().collect();
        issues.sort_by(|one, other| one.issue.identifier.cmp(&other.issue.identifier));
        let issues = || issues.iter().copied();
        let running: Vec<_> = issues().filter_map(|claimed| RunningRow::of(claimed, now)).collect();
        let mut retrying: Vec<_> = issues().filter_map(RetryRow::of).collect();
        retrying.sort_by_key(|one| one.due_at);
        let mut blocked: Vec<_> = issues().filter_map(BlockedRow::of).collect();
        blocked.sort_by_key(|one| one.blocked_at);
        let waiting = WaitingRow::all(state);
        let cleaning: Vec<_> = issues().filter_map(CleaningRow::of).collect();
        let counts = IssueCounts {
            running: running.len(),
            retrying: retrying.len(),
            blocked: blocked.len(),
            waiting: waiting.len(),
            cleaning: cleaning.len(),
        };
        Self {
            generated_at: now,
            mode: state.ledger.mode,
            counts,
            running,
            retrying,
            blocked,
            waiting,
            cleaning,
            codex_totals: Totals::of(state.spent(now)),
            today: Totals::of(state.spent_today(now)),
            rate_limits: state.rate_limits.clone(),
            polling: Polling::of(state, now),
            max_concurrent_agents: state.rules.max_agents,
            held_until: state.ledger.rate_limited.until(now),
            workflow_error: state.workflow_error.clone(),
            outcomes: state.outcomes.clone(),
            recent_events: state.notices.iter().map(|notice| (**notice).clone()).collect(),
        }
    }
}

impl Totals {
    fn of(spent: Spend) -> Self {
        Self {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            total_tokens: spent.total_tokens,
            seconds_running: spent.time.as_secs_f64(),
            turns: spent.turns,
            attempts: spent.attempts,
        }
    }
}

impl Polling {
    fn of(state: &State, now: Timestamp) -> Self {
        let millis =
            |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (checking, next) = match state.poll {
            PollState::Waiting { due } => (false, Some(millis(now.age(due)))),
            PollState::InFlight { .. } | PollState::StartupCleanup { .. } => (true, None),
            PollState::NotStarted | PollState::Finished => (false, None),
        };
        let poll_interval_ms = millis(state.rules.poll_interval);
        Self { checking, next_poll_in_ms: next, poll_interval_ms }
    }
}
