//! The detailed view of one issue.

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::claimed_issue::{AgentEvent, ClaimedIssue, Stage};
use crate::state::State;
use carrel_tracker::{Issue, IssueId};

use super::Totals;
use super::rows::{BlockedRow, CleaningRow, RetryRow, RunningRow, WaitingRow, path};

/// One issue with its stage, its runs and its latest events. Exactly one of `running`, `retry`, `blocked`,
/// `waiting` and `cleaning` is set, or none for a resting issue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConductorIssue")]
pub struct IssueView {
    /// The identifier that people use, such as `ABC-123`.
    pub issue_identifier: String,
    /// The tracker's id of the issue.
    pub issue_id: String,
    /// The title of the issue.
    pub title: String,
    /// The page of the issue in the tracker.
    pub issue_url: Option<String>,
    /// The state of the issue in the tracker.
    pub state: String,
    /// The stage of the issue in the conductor.
    pub status: Status,
    /// The workspace of the issue, which is kept between runs.
    pub workspace: WorkspaceView,
    /// The number of retries.
    pub attempts: Attempts,
    /// Consumption of all runs of the issue that have ended, and the tokens of the current one.
    pub totals: Totals,
    /// The run, if the issue holds a slot.
    pub running: Option<RunningRow>,
    /// The scheduled retry, with its due time and cause.
    pub retry: Option<RetryRow>,
    /// The block, if the issue waits for an operator.
    pub blocked: Option<BlockedRow>,
    /// The wait for a slot, for an issue that is eligible and not claimed.
    pub waiting: Option<WaitingRow>,
    /// The removal of the workspace, if the issue is finished.
    pub cleaning: Option<CleaningRow>,
    /// Runs with their transcripts, the latest first.
    pub logs: Logs,
    /// The latest agent events, oldest first, at most 20.
    pub recent_events: Vec<AgentEvent>,
    /// The error of the block, the retry or the latest failed run.
    pub last_error: Option<String>,
    /// Always empty; part of the specified format.
    pub tracked: Map<String, Value>,
}

/// The stage of an issue in the conductor, as one word for lists and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "IssueStatus")]
pub enum Status {
    /// It holds a slot: being checked, running or stopping.
    Running,
    /// A retry is scheduled.
    Retrying,
    /// It waits for an operator.
    Blocked,
    /// It is eligible and waits for a slot.
    Waiting,
    /// It is not claimed; its workspace is kept.
    Resting,
    /// It is finished, and its workspace is being removed.
    Cleaning,
}

/// The workspace of an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkspaceView {
    /// The directory, once it exists.
    pub path: Option<String>,
    /// Always `null`, since workspaces are local; part of the specified format.
    pub host: Option<String>,
}

/// The number of retries of an issue since its last success or release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Attempts {
    /// Retries after the first one, at least 0.
    pub restart_count: u32,
    /// The number of the current retry; 0 for the first run.
    pub current_retry_attempt: u32,
}

/// The runs of an issue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "IssueLogs")]
pub struct Logs {
    /// The runs, the latest first.
    pub codex_session_logs: Vec<SessionLog>,
}

/// A run and its transcript, from the journal. Runs are kept for 30 days, transcripts for 20 runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionLog {
    /// The number of the run.
    pub run: u64,
    /// The number of the retry; 0 for the first run.
    pub attempt: u32,
    /// The time of the dispatch.
    pub started_at: Timestamp,
    /// The time of its end; `null` while it runs.
    pub ended_at: Option<Timestamp>,
    /// The outcome, such as `success` or `failure`; `null` while it runs.
    pub outcome: Option<String>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// The session of its last turn.
    pub session_id: Option<String>,
    /// The path of the transcript on the conductor's machine.
    pub path: Option<String>,
    /// The API path of the transcript; `null` for a run without one.
    pub url: Option<String>,
}

impl IssueView {
    /// Creates the view of a claimed or waiting issue; `None` for an unknown one.
    pub fn of(state: &State, id: &IssueId, now: Timestamp, logs: Vec<SessionLog>) -> Option<Self> {
        let waiting = state.waiting.get(id);
        let claimed = match (state.issues.get(id), waiting) {
            (Some(claimed), _) => claimed.clone(),
            (None, Some((_, issue))) => ClaimedIssue::new(issue.clone()),
            (None, None) => return None,
        };
        let waiting = waiting.map(|(since, issue)| WaitingRow::of(*since, issue));
        Some(Self::show(&claimed, waiting, now, logs))
    }

    fn show(
        claimed: &ClaimedIssue,
        waiting: Option<WaitingRow>,
        now: Timestamp,
        logs: Vec<SessionLog>,
    ) -> Self {
        let Issue { id, identifier, title, url, state, .. } = claimed.issue.clone();
        let retry = RetryRow::of(claimed);
        let blocked = BlockedRow::of(claimed);
        let of_retry = retry.as_ref().and_then(|retry| retry.error.clone());
        let of_block = blocked.as_ref().map(|blocked| blocked.error.clone());
        let of_runs = logs.iter().find_map(|log| log.error.clone());
        Self {
            issue_identifier: identifier,
            issue_id: id.0,
            title,
            issue_url: url,
            state,
            status: Status::of(&claimed.stage, waiting.is_some()),
            workspace: WorkspaceView { path: path(claimed), host: None },
            attempts: Attempts {
                restart_count: claimed.attempt.saturating_sub(1),
                current_retry_attempt: claimed.attempt,
            },
            totals: Totals::of(claimed.spent),
            running: RunningRow::of(claimed, now),
            retry,
            blocked,
            waiting,
            cleaning: CleaningRow::of(claimed),
            recent_events: claimed.recent.iter().cloned().collect(),
            last_error: of_block.or(of_retry).or(of_runs),
            logs: Logs { codex_session_logs: logs },
            tracked: Map::new(),
        }
    }
}

impl Status {
    fn of(stage: &Stage, waits: bool) -> Self {
        match stage {
            Stage::Checking { .. } | Stage::Running(_) | Stage::Stopping { .. } => Self::Running,
            Stage::Retrying(_) => Self::Retrying,
            Stage::Blocked(_) => Self::Blocked,
            Stage::Cleaning { .. } => Self::Cleaning,
            Stage::Resting if waits => Self::Waiting,
            Stage::Resting => Self::Resting,
        }
    }
}

impl State {
    /// Returns the id of a known issue by its identifier or its id.
    pub fn find(&self, name: &str) -> Option<IssueId> {
        let issues = self.issues.values().map(|claimed| &claimed.issue);
        let waiting = self.waiting.values().map(|(_, issue)| issue);
        let mut all = issues.chain(waiting);
        let named = all.find(|issue| issue.identifier == name).map(|issue| issue.id.clone());
        named.or_else(|| self.find_id(name))
    }

    /// Returns the id of a known issue by its id.
    pub fn find_id(&self, id: &str) -> Option<IssueId> {
        let id = IssueId(id.to_owned());
        let known = self.issues.contains_key(&id) || self.waiting.contains_key(&id);
        known.then_some(id)
    }
}
