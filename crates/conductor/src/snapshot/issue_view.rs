//! Everything there is to see about one issue.

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::claimed_issue::{ClaimedIssue, Stage};
use crate::state::State;
use carrel_tracker::{Issue, IssueId};

use super::Totals;
use super::rows::{BlockedRow, CleaningRow, EventRow, RetryRow, RunningRow, WaitingRow, path};

/// Everything there is to see about one issue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConductorIssue")]
pub struct IssueView {
    /// What people know it by.
    pub issue_identifier: String,
    /// What the tracker knows it by.
    pub issue_id: String,
    /// What it is about, in a line.
    pub title: String,
    /// Where people look at it.
    pub issue_url: Option<String>,
    /// Where it stands with the tracker.
    pub state: String,
    /// Where it stands here.
    pub status: Status,
    /// Where it is worked on.
    pub workspace: WorkspaceView,
    /// How often it was tried.
    pub attempts: Attempts,
    /// What was spent on it.
    pub totals: Totals,
    /// Its agent, if there is one.
    pub running: Option<RunningRow>,
    /// The next attempt, if it waits for one.
    pub retry: Option<RetryRow>,
    /// What it waits for, if somebody has to do something.
    pub blocked: Option<BlockedRow>,
    /// Since when it waits for a place, if it does.
    pub waiting: Option<WaitingRow>,
    /// The removal of its workspace, if it is finished.
    pub cleaning: Option<CleaningRow>,
    /// What was written down about its runs, the latest first.
    pub logs: Logs,
    /// What its agents were last heard to do, the latest last.
    pub recent_events: Vec<EventRow>,
    /// What last went wrong.
    pub last_error: Option<String>,
    /// Nothing; the reference has it.
    pub tracked: Map<String, Value>,
}

/// Where an issue stands here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "IssueStatus")]
pub enum Status {
    /// An agent works on it, is about to start or about to end.
    Running,
    /// It will be taken up again.
    Retrying,
    /// Somebody has to do something.
    Blocked,
    /// It waits for a place.
    Waiting,
    /// Nobody works on it; its workspace is kept.
    Resting,
    /// It is finished, and its workspace is being removed.
    Cleaning,
}

/// Where an issue is worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkspaceView {
    /// The directory, once there is one.
    pub path: Option<String>,
    /// The machine; always this one.
    pub host: Option<String>,
}

/// How often an issue was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Attempts {
    /// How often it was begun again.
    pub restart_count: u32,
    /// Which attempt this is; zero for the first.
    pub current_retry_attempt: u32,
}

/// What was written down about runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "IssueLogs")]
pub struct Logs {
    /// Each run with its transcript.
    pub codex_session_logs: Vec<SessionLog>,
}

/// What was written down about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionLog {
    /// The number of the run.
    pub run: u64,
    /// Which attempt it was.
    pub attempt: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended, in a word.
    pub outcome: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// The last session.
    pub session_id: Option<String>,
    /// The file with its transcript.
    pub path: Option<String>,
    /// Where the transcript is read over HTTP.
    pub url: Option<String>,
}

impl IssueView {
    /// Shows an issue, if there is something to see.
    pub fn of(state: &State, id: &IssueId, now: Timestamp, logs: Vec<SessionLog>) -> Option<Self> {
        let waiting = state.waiting.get(id);
        let entry = match (state.issues.get(id), waiting) {
            (Some(entry), _) => entry.clone(),
            (None, Some((_, issue))) => ClaimedIssue::new(issue.clone()),
            (None, None) => return None,
        };
        let waiting = waiting.map(|(since, issue)| WaitingRow::of(*since, issue));
        Some(Self::show(&entry, waiting, now, logs))
    }

    fn show(
        entry: &ClaimedIssue,
        waiting: Option<WaitingRow>,
        now: Timestamp,
        logs: Vec<SessionLog>,
    ) -> Self {
        let Issue { id, identifier, title, url, state, .. } = entry.issue.clone();
        let retry = RetryRow::of(entry);
        let blocked = BlockedRow::of(entry);
        let of_retry = retry.as_ref().and_then(|retry| retry.error.clone());
        let of_block = blocked.as_ref().map(|blocked| blocked.error.clone());
        let of_runs = logs.iter().find_map(|log| log.error.clone());
        Self {
            issue_identifier: identifier,
            issue_id: id.0,
            title,
            issue_url: url,
            state,
            status: Status::of(&entry.stage, waiting.is_some()),
            workspace: WorkspaceView { path: path(entry), host: None },
            attempts: Attempts {
                restart_count: entry.attempt.saturating_sub(1),
                current_retry_attempt: entry.attempt,
            },
            totals: Totals::of(entry.spent),
            running: RunningRow::of(entry, now),
            retry,
            blocked,
            waiting,
            cleaning: CleaningRow::of(entry),
            recent_events: entry.recent.iter().map(EventRow::of).collect(),
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
    /// Finds an issue by what people call it, or by what the tracker knows it by.
    pub fn find(&self, name: &str) -> Option<IssueId> {
        let entries = self.issues.values().map(|entry| &entry.issue);
        let waiting = self.waiting.values().map(|(_, issue)| issue);
        let mut all = entries.chain(waiting);
        let named = all.find(|issue| issue.identifier == name).map(|issue| issue.id.clone());
        named.or_else(|| self.find_id(name))
    }

    /// Finds an issue by what the tracker knows it by.
    pub fn find_id(&self, id: &str) -> Option<IssueId> {
        let id = IssueId(id.to_owned());
        let known = self.issues.contains_key(&id) || self.waiting.contains_key(&id);
        known.then_some(id)
    }
}
