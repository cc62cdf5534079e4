//! Rows of a snapshot: one per issue and stage.

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::claimed_issue::{ClaimedIssue, RetryReason, Run, Stage};
use crate::spend::Spend;
use crate::state::State;
use carrel_tracker::Issue;

/// An issue that holds an agent slot, from the read before its dispatch to the end of its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningRow {
    /// The tracker's id of the issue.
    pub issue_id: String,
    /// The identifier that people use, such as `ABC-123`.
    pub issue_identifier: String,
    /// The page of the issue in the tracker.
    pub issue_url: Option<String>,
    /// The state of the issue in the tracker, in the tracker's spelling.
    pub state: String,
    /// The phase of the run.
    pub phase: Phase,
    /// Always `null`, since runs are local; part of the specified format.
    pub worker_host: Option<String>,
    /// The directory of the workspace, once it exists.
    pub workspace_path: Option<String>,
    /// The number of the run, once it is dispatched.
    pub run: Option<u64>,
    /// The agent's session, once it has started; a new one with each turn.
    pub session_id: Option<String>,
    /// The number of the current turn, from 1; 0 before the dispatch.
    pub turn_count: u64,
    /// The number of the retry; 0 for the first run.
    pub attempt: u32,
    /// The kind of the agent's latest event.
    pub last_event: Option<String>,
    /// The latest text of the agent, which may be older than the latest event.
    pub last_message: Option<String>,
    /// The time of the dispatch.
    pub started_at: Option<Timestamp>,
    /// The time of the agent's latest event; the stall timeout counts from here.
    pub last_event_at: Option<Timestamp>,
    /// Seconds since the dispatch.
    pub runtime_seconds: u64,
    /// Tokens of the run.
    pub tokens: TokenCounts,
}

/// The phase of an issue that holds a slot, in the order in which a run passes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RunPhase")]
pub enum Phase {
    /// The issue is read from the tracker before its dispatch.
    Checking,
    /// The workspace is created or opened.
    PreparingWorkspace,
    /// The `before_run` hook runs, and the agent starts.
    StartingAgent,
    /// The agent works on a turn.
    Turn,
    /// A turn is over, and the issue is read to decide about the next one.
    BetweenTurns,
    /// The last turn is over, and the run is ending.
    Finishing,
    /// The run was told to end.
    Stopping,
}

/// Token counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct TokenCounts {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// All tokens as the agent counts them, which need not be the sum of input and output.
    pub total_tokens: u64,
}

/// An issue with a scheduled retry: after a success, a failure, a rate limit or an interruption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RetryRow {
    /// The tracker's id of the issue.
    pub issue_id: String,
    /// The identifier that people use, such as `ABC-123`.
    pub issue_identifier: String,
    /// The page of the issue in the tracker.
    pub issue_url: Option<String>,
    /// The number of the retry.
    pub attempt: u32,
    /// The earliest time of the run.
    pub due_at: Timestamp,
    /// The cause of the retry.
    pub why: RetryReason,
    /// The retry is due, but no slot is free.
    pub waits_for_slot: bool,
    /// The error of the run before, or else the lack of a slot; `null` after a success.
    pub error: Option<String>,
    /// Always `null`, since runs are local; part of the specified format.
    pub worker_host: Option<String>,
    /// The directory of the workspace, once it exists.
    pub workspace_path: Option<String>,
}

/// An issue that waits for an operator, with the question or limit that blocked it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BlockedRow {
    /// The tracker's id of the issue.
    pub issue_id: String,
    /// The identifier that people use, such as `ABC-123`.
    pub issue_identifier: String,
    /// The page of the issue in the tracker.
    pub issue_url: Option<String>,
    /// The state of the issue in the tracker.
    pub state: String,
    /// The kind of block: `input`, `approval`, `budget`, `no_progress` or `cancelled`.
    pub reason: &'static str,
    /// The reason as a sentence.
    pub error: String,
    /// True if the agent waits for an operator's answer.
    pub wants_answer: bool,
    /// Always `null`, since runs are local; part of the specified format.
    pub worker_host: Option<String>,
    /// The directory of the workspace, once it exists.
    pub workspace_path: Option<String>,
    /// The session that ended with the block.
    pub session_id: Option<String>,
    /// The time at which the issue was blocked.
    pub blocked_at: Timestamp,
    /// The kind of the agent's latest event.
    pub last_event: Option<String>,
    /// The latest text of the agent, which may be older than the latest event.
    pub last_message: Option<String>,
    /// The time of the agent's latest event.
    pub last_event_at: Option<Timestamp>,
}

/// An eligible issue that waits for a slot and has not been claimed yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitingRow {
    /// The tracker's id of the issue.
    pub issue_id: String,
    /// The identifier that people use, such as `ABC-123`.
    pub issue_identifier: String,
    /// The page of the issue in the tracker.
    pub issue_url: Option<String>,
    /// The state of the issue in the tracker.
    pub state: String,
    /// The priority in the tracker: 1 is the most urgent, 4 the least.
    pub priority: Option<i64>,
    /// The time since which it was eligible.
    pub since: Timestamp,
}

/// A finished issue whose workspace is being removed; it disappears when the removal has succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CleaningRow {
    /// The tracker's id of the issue.
    pub issue_id: String,
    /// The identifier that people use, such as `ABC-123`.
    pub issue_identifier: String,
    /// The directory of the workspace.
    pub workspace_path: Option<String>,
    /// Failed removals so far.
    pub failures: u32,
    /// The time of the next removal; `null` while one is in progress.
    pub due_at: Option<Timestamp>,
}

impl RunningRow {
    pub(super) fn of(claimed: &ClaimedIssue, now: Timestamp) -> Option<Self> {
        let phase = Phase::of(claimed)?;
        let run = claimed.stage.run();
        let issue = &claimed.issue;
        let last = claimed.recent.back();
        Some(Self {
            issue_id: issue.id.0.clone(),
            issue_identifier: issue.identifier.clone(),
            issue_url: issue.url.clone(),
            state: issue.state.clone(),
            phase,
            worker_host: None,
            workspace_path: path(claimed),
            run: run.map(|run| run.id.0),
            session_id: run.and_then(|run| run.session.clone()),
            turn_count: run.map_or(0, |run| run.turn),
            attempt: claimed.attempt,
            last_event: last.map(|event| event.event.clone()),
            last_message: last_message(claimed),
            started_at: run.map(|run| run.started_at),
            last_event_at: run.map(|run| run.last_event_at),
            runtime_seconds: run.map_or(0, |run| run.started_at.age(now).as_secs()),
            tokens: run.map(|run| TokenCounts::of(run.spent)).unwrap_or_default(),
        })
    }
}

impl Phase {
    fn of(claimed: &ClaimedIssue) -> Option<Self> {
        match &claimed.stage {
            Stage::Checking { .. } => Some(Self::Checking),
            Stage::Stopping { .. } => Some(Self::Stopping),
            Stage::Running(run) => Some(Self::of_run(claimed, run)),
            Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting | Stage::Cleaning { .. } => {
                None
            }
        }
    }

    fn of_run(claimed: &ClaimedIssue, run: &Run) -> Self {
        if run.finishing {
            Self::Finishing
        } else if run.between_turns.is_some() {
            Self::BetweenTurns
        } else if run.session.is_some() {
            Self::Turn
        } else if claimed.workspace.is_some() {
            Self::StartingAgent
        } else {
            Self::PreparingWorkspace
        }
    }
}

impl TokenCounts {
    pub(super) fn of(spent: Spend) -> Self {
        Self {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            total_tokens: spent.total_tokens,
        }
    }
}

impl RetryRow {
    pub(super) fn of(claimed: &ClaimedIssue) -> Option<Self> {
        let Stage::Retrying(retry) = &claimed.stage else { return None };
        let issue = &claimed.issue;
        let no_slot = retry.no_slot.then(|| "no free agent slot".to_owned());
        Some(Self {
            issue_id: issue.id.0.clone(),
            issue_identifier: issue.identifier.clone(),
            issue_url: issue.url.clone(),
            attempt: claimed.attempt,
            due_at: retry.due,
            why: retry.reason,
            waits_for_slot: retry.no_slot,
            error: retry.error.clone().or(no_slot),
            worker_host: None,
            workspace_path: path(claimed),
        })
    }
}

impl BlockedRow {
    pub(super) fn of(claimed: &ClaimedIssue) -> Option<Self> {
        let Stage::Blocked(block) = &claimed.stage else { return None };
        let issue = &claimed.issue;
        let last = claimed.recent.back();
        Some(Self {
            issue_id: issue.id.0.clone(),
            issue_identifier: issue.identifier.clone(),
            issue_url: issue.url.clone(),
            state: issue.state.clone(),
            reason: block.reason.name(),
            error: block.reason.to_string(),
            wants_answer: block.reason.is_question(),
            worker_host: None,
            workspace_path: path(claimed),
            session_id: block.session.clone(),
            blocked_at: block.since,
            last_event: last.map(|event| event.event.clone()),
            last_message: last_message(claimed),
            last_event_at: last.map(|event| event.at),
        })
    }
}

impl WaitingRow {
    pub(super) fn all(state: &State) -> Vec<Self> {
        let mut waiting: Vec<_> = state.waiting.values().collect();
        waiting.sort_by(|(_, one), (_, other)| crate::rules::dispatch_order(one, other));
        waiting.into_iter().map(|(since, issue)| Self::of(*since, issue)).collect()
    }

    pub(super) fn of(since: Timestamp, issue: &Issue) -> Self {
        Self {
            issue_id: issue.id.0.clone(),
            issue_identifier: issue.identifier.clone(),
            issue_url: issue.url.clone(),
            state: issue.state.clone(),
            priority: issue.priority,
            since,
        }
    }
}

impl CleaningRow {
    pub(super) fn of(claimed: &ClaimedIssue) -> Option<Self> {
        let Stage::Cleaning { failures, due } = claimed.stage else { return None };
        Some(Self {
            issue_id: claimed.issue.id.0.clone(),
            issue_identifier: claimed.issue.identifier.clone(),
            workspace_path: path(claimed),
            failures,
            due_at: due,
        })
    }
}

pub(super) fn path(claimed: &ClaimedIssue) -> Option<String> {
    claimed.workspace.as_ref().map(|path| path.to_string_lossy().into_owned())
}

fn last_message(claimed: &ClaimedIssue) -> Option<String> {
    claimed.recent.iter().rev().find_map(|event| event.message.clone())
}
