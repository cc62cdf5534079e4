//! One line for each issue.

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::claimed_issue::{AgentEvent, ClaimedIssue, RetryReason, Run, Stage};
use crate::spend::Spend;
use crate::state::State;
use carrel_tracker::Issue;

/// An issue that takes a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningRow {
    /// What the tracker knows it by.
    pub issue_id: String,
    /// What people know it by.
    pub issue_identifier: String,
    /// Where people look at it.
    pub issue_url: Option<String>,
    /// Where it stands with the tracker.
    pub state: String,
    /// What is being done.
    pub phase: Phase,
    /// The machine; always this one.
    pub worker_host: Option<String>,
    /// Where it is worked on.
    pub workspace_path: Option<String>,
    /// The run, once there is one.
    pub run: Option<u64>,
    /// The session, once there is one.
    pub session_id: Option<String>,
    /// The turn that it is in.
    pub turn_count: u64,
    /// Which attempt it is; zero for the first.
    pub attempt: u32,
    /// What the agent was last heard to do.
    pub last_event: Option<String>,
    /// What it said.
    pub last_message: Option<String>,
    /// When the run began.
    pub started_at: Option<Timestamp>,
    /// When the agent was last heard of.
    pub last_event_at: Option<Timestamp>,
    /// Seconds that it runs.
    pub runtime_seconds: u64,
    /// What the run used up.
    pub tokens: TokenCounts,
}

/// What is being done for an issue that takes a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RunPhase")]
pub enum Phase {
    /// It is read once more.
    Checking,
    /// Its workspace is made ready.
    PreparingWorkspace,
    /// Hooks run, and the agent starts.
    StartingAgent,
    /// The agent is in a turn.
    Turn,
    /// A turn is over, and the issue is read.
    BetweenTurns,
    /// The last turn is over.
    Finishing,
    /// The agent is told to end.
    Stopping,
}

/// Tokens of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenCounts {
    /// Those that were read.
    pub input_tokens: u64,
    /// Those that were written.
    pub output_tokens: u64,
    /// All, as the agent counts them.
    pub total_tokens: u64,
}

/// An issue that will be taken up again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RetryRow {
    /// What the tracker knows it by.
    pub issue_id: String,
    /// What people know it by.
    pub issue_identifier: String,
    /// Where people look at it.
    pub issue_url: Option<String>,
    /// Which attempt it will be.
    pub attempt: u32,
    /// When it may begin.
    pub due_at: Timestamp,
    /// What it waits for.
    pub why: RetryReason,
    /// It is due, and there is no place for it.
    pub waits_for_slot: bool,
    /// What went wrong.
    pub error: Option<String>,
    /// The machine; always this one.
    pub worker_host: Option<String>,
    /// Where it is worked on.
    pub workspace_path: Option<String>,
}

/// An issue that waits for somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BlockedRow {
    /// What the tracker knows it by.
    pub issue_id: String,
    /// What people know it by.
    pub issue_identifier: String,
    /// Where people look at it.
    pub issue_url: Option<String>,
    /// Where it stands with the tracker.
    pub state: String,
    /// Why somebody has to do something, in a word.
    pub reason: &'static str,
    /// Why somebody has to do something.
    pub error: String,
    /// The agent waits for an answer.
    pub wants_answer: bool,
    /// The machine; always this one.
    pub worker_host: Option<String>,
    /// Where it is worked on.
    pub workspace_path: Option<String>,
    /// The session that it happened in.
    pub session_id: Option<String>,
    /// Since when.
    pub blocked_at: Timestamp,
    /// What the agent was last heard to do.
    pub last_event: Option<String>,
    /// What it said.
    pub last_message: Option<String>,
    /// When the agent was last heard of.
    pub last_event_at: Option<Timestamp>,
}

/// An issue that waits for a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitingRow {
    /// What the tracker knows it by.
    pub issue_id: String,
    /// What people know it by.
    pub issue_identifier: String,
    /// Where people look at it.
    pub issue_url: Option<String>,
    /// Where it stands with the tracker.
    pub state: String,
    /// How urgent it is; one is most urgent.
    pub priority: Option<i64>,
    /// Since when it could be worked on.
    pub since: Timestamp,
}

/// A finished issue whose workspace is being removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CleaningRow {
    /// What the tracker knows it by.
    pub issue_id: String,
    /// What people know it by.
    pub issue_identifier: String,
    /// Where its workspace is.
    pub workspace_path: Option<String>,
    /// How often the removal failed.
    pub failures: u32,
    /// When it is tried again; nothing while it is being tried.
    pub due_at: Option<Timestamp>,
}

/// What an agent was heard to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventRow {
    /// When.
    pub at: Timestamp,
    /// What kind of event it was.
    pub event: String,
    /// What it said.
    pub message: Option<String>,
}

/// Returns entries in the order of what people call them.
pub(super) fn entries(state: &State) -> impl Iterator<Item = &ClaimedIssue> {
    let mut all: Vec<_> = state.issues.values().collect();
    all.sort_by(|one, other| one.issue.identifier.cmp(&other.issue.identifier));
    all.into_iter()
}

impl RunningRow {
    pub(super) fn of(entry: &ClaimedIssue, now: Timestamp) -> Option<Self> {
        let phase = Phase::of(entry)?;
        let run = entry.stage.run();
        let issue = &entry.issue;
        let last = entry.recent.back();
        Some(Self {
            issue_id: issue.id.0.clone(),
            issue_identifier: issue.identifier.clone(),
            issue_url: issue.url.clone(),
            state: issue.state.clone(),
            phase,
            worker_host: None,
            workspace_path: path(entry),
            run: run.map(|run| run.id.0),
            session_id: run.and_then(|run| run.session.clone()),
            turn_count: run.map_or(0, |run| run.turn),
            attempt: entry.attempt,
            last_event: last.map(|said| said.event.clone()),
            last_message: last_message(entry),
            started_at: run.map(|run| run.started_at),
            last_event_at: run.map(|run| run.last_event_at),
            runtime_seconds: run.map_or(0, |run| run.started_at.age(now).as_secs()),
            tokens: run.map(|run| TokenCounts::of(run.spent)).unwrap_or_default(),
        })
    }
}

impl Phase {
    fn of(entry: &ClaimedIssue) -> Option<Self> {
        match &entry.stage {
            Stage::Checking { .. } => Some(Self::Checking),
            Stage::Stopping { .. } => Some(Self::Stopping),
            Stage::Running(run) => Some(Self::of_run(entry, run)),
            Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting | Stage::Cleaning { .. } => {
                None
            }
        }
    }

    fn of_run(entry: &ClaimedIssue, run: &Run) -> Self {
        if run.finishing {
            Self::Finishing
        } else if run.between_turns.is_some() {
            Self::BetweenTurns
        } else if run.session.is_some() {
            Self::Turn
        } else if entry.workspace.is_some() {
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
    pub(super) fn of(entry: &ClaimedIssue) -> Option<Self> {
        let Stage::Retrying(retry) = &entry.stage else { return None };
        let issue = &entry.issue;
        let no_slot = retry.no_slot.then(|| "no place for another agent".to_owned());
        Some(Self {
            issue_id: issue.id.0.clone(),
            issue_identifier: issue.identifier.clone(),
            issue_url: issue.url.clone(),
            attempt: entry.attempt,
            due_at: retry.due,
            why: retry.reason,
            waits_for_slot: retry.no_slot,
            error: retry.error.clone().or(no_slot),
            worker_host: None,
            workspace_path: path(entry),
        })
    }
}

impl BlockedRow {
    pub(super) fn of(entry: &ClaimedIssue) -> Option<Self> {
        let Stage::Blocked(block) = &entry.stage else { return None };
        let issue = &entry.issue;
        let last = entry.recent.back();
        Some(Self {
            issue_id: issue.id.0.clone(),
            issue_identifier: issue.identifier.clone(),
            issue_url: issue.url.clone(),
            state: issue.state.clone(),
            reason: block.reason.name(),
            error: block.reason.to_string(),
            wants_answer: block.reason.is_question(),
            worker_host: None,
            workspace_path: path(entry),
            session_id: block.session.clone(),
            blocked_at: block.since,
            last_event: last.map(|said| said.event.clone()),
            last_message: last_message(entry),
            last_event_at: last.map(|said| said.at),
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
    pub(super) fn of(entry: &ClaimedIssue) -> Option<Self> {
        let Stage::Cleaning { failures, due } = entry.stage else { return None };
        Some(Self {
            issue_id: entry.issue.id.0.clone(),
            issue_identifier: entry.issue.identifier.clone(),
            workspace_path: path(entry),
            failures,
            due_at: due,
        })
    }
}

impl EventRow {
    pub(super) fn of(said: &AgentEvent) -> Self {
        Self { at: said.at, event: said.event.clone(), message: said.message.clone() }
    }
}

pub(super) fn path(entry: &ClaimedIssue) -> Option<String> {
    entry.workspace.as_ref().map(|path| path.to_string_lossy().into_owned())
}

/// Returns the last thing that was said, which may be older than the last event.
fn last_message(entry: &ClaimedIssue) -> Option<String> {
    entry.recent.iter().rev().find_map(|said| said.message.clone())
}
