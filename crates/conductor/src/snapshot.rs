//! What people and programs see of the loop, made from its state alone.
//!
//! Looking changes nothing: a [`Snapshot`] is a copy, and whoever draws it cannot disturb the work.

mod issue_view;
mod rows;

pub use issue_view::{Attempts, IssueView, Logs, SessionLog, Status, WorkspaceView};
pub use rows::{
    BlockedRow, CleaningRow, EventRow, Phase, RetryRow, RunningRow, TokenCounts, WaitingRow,
};

use std::collections::BTreeMap;

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::notice::{Notice, RunOutcome};
use crate::spend::Spend;
use crate::state::{Mode, NumberedNotice, PollState, State};
use rows::entries;

/// Everything that there is to see, at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConductorState")]
pub struct Snapshot {
    /// When that was.
    pub generated_at: Timestamp,
    /// Whether work is begun.
    pub mode: Mode,
    /// How many issues are where.
    pub counts: IssueCounts,
    /// Issues that take a place: about to start, at work, or about to end.
    pub running: Vec<RunningRow>,
    /// Issues that will be taken up again, the next one first.
    pub retrying: Vec<RetryRow>,
    /// Issues that wait for somebody, the longest first.
    pub blocked: Vec<BlockedRow>,
    /// Issues that wait for a place, in the order in which they get one.
    pub waiting: Vec<WaitingRow>,
    /// Finished issues whose workspaces are being removed.
    pub cleaning: Vec<CleaningRow>,
    /// What was used up in all, agents that are still at work included.
    pub codex_totals: Totals,
    /// What was used up today (UTC), agents that are still at work included.
    pub today: Totals,
    /// What an agent last said about the limits of its provider.
    pub rate_limits: Option<Value>,
    /// The looks at the tracker.
    pub polling: Polling,
    /// How many agents may run at once.
    pub max_concurrent_agents: usize,
    /// Until when nothing is begun because tracker or provider want it.
    pub held_until: Option<Timestamp>,
    /// Why the workflow file cannot be used, while it cannot.
    pub workflow_error: Option<String>,
    /// How runs ended since the start.
    pub outcomes: BTreeMap<RunOutcome, u64>,
    /// What was last told, the latest last.
    pub recent_events: Vec<NoticeRow>,
}

/// How many issues are where.
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

/// What was used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConductorTotals")]
pub struct Totals {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// All tokens, as the agents count them.
    pub total_tokens: u64,
    /// Seconds that agents ran, those that still run included.
    pub seconds_running: f64,
    /// Turns that were begun.
    pub turns: u64,
    /// Runs that were begun.
    pub attempts: u64,
}

/// The looks at the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Polling {
    /// One is under way.
    pub checking: bool,
    /// Milliseconds until the next; nothing while one is under way, or if there will be none.
    pub next_poll_in_ms: Option<u64>,
    /// Milliseconds between two.
    pub poll_interval_ms: u64,
}

/// Something that was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ConductorEvent")]
pub struct NoticeRow {
    /// Its number, from one on since the start.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// In words.
    pub message: String,
    /// Whether somebody should look at it.
    pub warning: bool,
    /// The same for programs.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub notice: Notice,
}

impl Snapshot {
    /// Copies what there is to see.
    pub fn of(state: &State, now: Timestamp) -> Self {
        let mut retrying: Vec<_> = entries(state).filter_map(RetryRow::of).collect();
        retrying.sort_by_key(|one| one.due_at);
        let mut blocked: Vec<_> = entries(state).filter_map(BlockedRow::of).collect();
        blocked.sort_by_key(|one| one.blocked_at);
        let running: Vec<_> =
            entries(state).filter_map(|entry| RunningRow::of(entry, now)).collect();
        let waiting = WaitingRow::all(state);
        let cleaning: Vec<_> = entries(state).filter_map(CleaningRow::of).collect();
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
            recent_events: state.notices.iter().map(|told| NoticeRow::of(told)).collect(),
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
        let next = match state.poll {
            PollState::Waiting { due } => Some(millis(now.age(due))),
            PollState::NotStarted
            | PollState::StartupCleanup { .. }
            | PollState::InFlight { .. }
            | PollState::Finished => None,
        };
        Self {
            checking: matches!(
                state.poll,
                PollState::InFlight { .. } | PollState::StartupCleanup { .. }
            ),
            next_poll_in_ms: next,
            poll_interval_ms: millis(state.rules.poll_interval),
        }
    }
}

impl NoticeRow {
    /// Puts a notice into words.
    pub fn of(told: &NumberedNotice) -> Self {
        Self {
            number: told.number,
            at: told.at,
            message: told.notice.to_string(),
            warning: told.notice.is_warning(),
            notice: told.notice.clone(),
        }
    }
}
