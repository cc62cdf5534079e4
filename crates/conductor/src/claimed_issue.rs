//! An issue that the conductor has claimed, and the stage of its work.
//!
//! A [`ClaimedIssue`] is the unit of the journal: [`crate::decide`] changes it in memory, the drive loop
//! writes it as JSON before any effect of the change begins, and a restarted conductor continues from
//! that JSON. Fields marked `#[serde(skip)]` therefore hold nothing that a restart needs.
//!
//! ```text
//!   (eligible) ─► Checking ─► Running ─► Stopping ─► Retrying ─► Checking …
//!                    │           │                └► Blocked ──► Retrying (operator)
//!                    ▼           ▼
//!                 Resting     Cleaning ─► (erased)
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spend::Spend;
use crate::state::QueryId;
use crate::truncate::truncated;
use carrel_tracker::{Issue, IssueId};

/// The length of [`ClaimedIssue::recent`]; older events are only in the transcript.
pub(crate) const MAX_RECENT_EVENTS: usize = 20;

/// The number of a run, unique per tracker for all time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

/// A claimed issue and its dispatch state.
///
/// It exists from the moment a slot is taken for the issue until the workspace of the finished issue is
/// removed, so that spending and the workspace path survive the time between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimedIssue {
    /// The issue as the tracker last returned it.
    pub issue: Issue,
    /// The number of the retry: 0 for the first run, 1 after a continuation or the first failure.
    pub attempt: u32,
    /// Consecutive runs that the agent's provider ended with a rate limit; the exponent of that back-off.
    #[serde(default)]
    pub rate_limited_runs: u32,
    /// Everything that was spent on the issue, over all its runs.
    pub spent: Spend,
    /// The value of [`Self::spent`] when an operator last unblocked an exhausted budget. The budget of
    /// the issue applies to the difference.
    #[serde(default)]
    pub spent_at_unblock: Spend,
    /// The directory of the workspace, once the first run has created it.
    pub workspace: Option<PathBuf>,
    /// The agent's conversation, for agents that can resume one.
    pub thread: Option<String>,
    /// An operator's answer to the agent's question, kept until a session that received it has started.
    pub answer: Option<String>,
    /// The fingerprint of the last turn; an equal one after the next turn means no progress.
    #[serde(default)]
    pub last_turn: Option<TurnFingerprint>,
    /// The latest agent events, oldest first, at most 20.
    #[serde(skip)]
    pub recent: VecDeque<AgentEvent>,
    /// The stage of the work.
    pub stage: Stage,
    /// The latest query that returned this issue. Results of earlier queries are stale and ignored.
    #[serde(skip)]
    pub(crate) read: QueryId,
}

/// One event of an agent, kept for the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentEvent {
    /// The time at which the conductor received it.
    pub at: Timestamp,
    /// The agent's name for the kind of event.
    pub event: String,
    /// The text of the event, truncated to 500 bytes.
    pub message: Option<String>,
}

/// The stage of a claimed issue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// A slot is taken, and the tracker is asked for the current state of the issue before a dispatch.
    Checking {
        /// The retry that is due; `None` for an issue that is claimed for the first time.
        retry: Option<Retry>,
        /// The query whose result decides. Results of earlier queries are ignored.
        #[serde(skip)]
        query: QueryId,
    },
    /// An agent runs.
    Running(Run),
    /// The run was told to end and has not ended yet. The slot stays taken.
    Stopping {
        /// The run that is ending.
        run: Run,
        /// The transition that follows the end of the run.
        then: FollowUp,
    },
    /// A further run starts when its time has come and a slot is free.
    Retrying(Retry),
    /// An operator has to act first.
    Blocked(Block),
    /// Not worked on and not claimed; the workspace and the spending record are kept.
    Resting,
    /// The issue is in a terminal state, and its workspace is being removed.
    Cleaning {
        /// Failed removals so far; the exponent of the back-off.
        failures: u32,
        /// The time of the next removal; `None` while one is in progress.
        due: Option<Timestamp>,
    },
}

/// A run: one agent session in a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The number of the run.
    pub id: RunId,
    /// The time of the dispatch.
    pub started_at: Timestamp,
    /// The time of the last agent event; the stall timeout counts from here.
    pub last_event_at: Timestamp,
    /// The agent's session, once it has reported one.
    pub session: Option<String>,
    /// The number of the current turn, from 1.
    pub turn: u64,
    /// The start of the current turn.
    pub turn_started_at: Timestamp,
    /// Spending of this run so far.
    pub spent: Spend,
    /// The value of [`Self::spent`] at the start of the current turn.
    pub spent_before_turn: Spend,
    /// Set between the end of a turn and the decision about the next one.
    pub between_turns: Option<BetweenTurns>,
    /// The last turn is over and the run was told to finish.
    #[serde(default)]
    pub finishing: bool,
}

/// The wait between two turns: whether another follows depends on the state of the issue in the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BetweenTurns {
    /// Failed reads of the issue so far.
    pub failures: u32,
    /// The time of the next read; `None` while one is in flight.
    pub due: Option<Timestamp>,
    /// The query in flight. Results of earlier queries may predate the end of the turn.
    #[serde(skip)]
    pub(crate) query: QueryId,
}

/// A fingerprint of a turn's result. Two consecutive equal ones mean that the agent made no progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFingerprint {
    /// A SHA-256 over the files of the workspace and the git references.
    pub tree: String,
    /// A SHA-256 of the agent's last message.
    pub answer: String,
}

/// The transition that follows the end of a stopped run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowUp {
    /// Release the claim; the workspace stays.
    Release,
    /// Release the claim and remove the workspace.
    Clean,
    /// Retry with back-off, as after a failure.
    Fail(RetryReason, String),
    /// Retry after the continuation delay, as after a success.
    Continue,
    /// Retry when the daily budget starts anew.
    Tomorrow,
    /// Wait for an operator.
    Block(BlockReason),
}

/// A scheduled further run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The earliest time of the run.
    pub due: Timestamp,
    /// The cause of the retry.
    pub reason: RetryReason,
    /// The error of the run before, if it failed.
    pub error: Option<String>,
    /// The retry is due, but all slots are taken.
    pub no_slot: bool,
}

/// The cause of a retry.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RetryReason {
    /// The run succeeded and the issue is still active.
    Continuation,
    /// The run failed.
    Failure,
    /// The agent sent no event within the stall timeout.
    Stall,
    /// The agent's provider answered with a rate limit.
    RateLimited,
    /// The run exhausted the budget of a run.
    RunBudget,
    /// The daily budget is exhausted.
    DayBudget,
    /// The conductor was stopped or killed during the run.
    Interrupted,
    /// An operator requested the retry.
    Operator,
}

/// The reason and time of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The reason, which decides how an operator can lift the block.
    pub reason: BlockReason,
    /// The time at which the issue was blocked.
    pub since: Timestamp,
    /// The agent session that ended with the block.
    pub session: Option<String>,
}

/// The reason for a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "detail", rename_all = "snake_case")]
pub enum BlockReason {
    /// The agent asked a question.
    Input(String),
    /// The agent requested an approval that the policy does not give.
    Approval(String),
    /// A budget of the issue is exhausted.
    Budget(String),
    /// Two consecutive turns had the same fingerprint.
    NoProgress,
    /// An operator cancelled the run.
    Cancelled,
}

impl BlockReason {
    /// Returns true if the agent waits for an operator's answer.
    pub fn is_question(&self) -> bool {
        matches!(self, Self::Input(_) | Self::Approval(_))
    }

    /// Returns the wire name of the reason.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input(_) => "input",
            Self::Approval(_) => "approval",
            Self::Budget(_) => "budget",
            Self::NoProgress => "no_progress",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn truncated(self, max_bytes: usize) -> Self {
        match self {
            Self::Input(text) => Self::Input(truncated(text, max_bytes)),
            Self::Approval(text) => Self::Approval(truncated(text, max_bytes)),
            Self::Budget(text) => Self::Budget(truncated(text, max_bytes)),
            Self::NoProgress | Self::Cancelled => self,
        }
    }
}

impl fmt::Display for BlockReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(question) => write!(f, "the agent asks: {question}"),
            Self::Approval(request) => write!(f, "the agent requests approval: {request}"),
            Self::Budget(limit) => write!(f, "its budget is exhausted: {limit}"),
            Self::NoProgress => f.write_str("two turns in a row changed nothing"),
            Self::Cancelled => f.write_str("an operator cancelled it"),
        }
    }
}

impl ClaimedIssue {
    pub(crate) fn new(issue: Issue) -> Self {
        Self {
            issue,
            attempt: 0,
            rate_limited_runs: 0,
            spent: Spend::default(),
            spent_at_unblock: Spend::default(),
            workspace: None,
            thread: None,
            answer: None,
            last_turn: None,
            recent: VecDeque::new(),
            stage: Stage::Resting,
            read: QueryId::default(),
        }
    }

    /// Returns the spending that counts against the budget of the issue.
    pub(crate) fn spent_of_budget(&self) -> Spend {
        self.spent.since(self.spent_at_unblock)
    }

    pub(crate) fn record_event(&mut self, event: AgentEvent) {
        if self.recent.len() == MAX_RECENT_EVENTS {
            self.recent.pop_front();
        }
        self.recent.push_back(event);
    }

    /// Returns the id of the issue.
    pub fn id(&self) -> &IssueId {
        &self.issue.id
    }
}

impl Run {
    pub(crate) fn new(id: RunId, now: Timestamp) -> Self {
        let spent = Spend { attempts: 1, turns: 1, ..Spend::default() };
        Self {
            id,
            started_at: now,
            last_event_at: now,
            session: None,
            turn: 1,
            turn_started_at: now,
            spent,
            spent_before_turn: spent,
            between_turns: None,
            finishing: false,
        }
    }

    /// Returns true while the agent works, and false while it waits for the conductor.
    pub fn is_in_turn(&self) -> bool {
        self.between_turns.is_none() && !self.finishing
    }
}

impl Stage {
    /// Returns the run that has not ended yet.
    pub fn run(&self) -> Option<&Run> {
        match self {
            Self::Running(run) | Self::Stopping { run, .. } => Some(run),
            Self::Checking { .. }
            | Self::Retrying(_)
            | Self::Blocked(_)
            | Self::Resting
            | Self::Cleaning { .. } => None,
        }
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Run> {
        match self {
            Self::Running(run) | Self::Stopping { run, .. } => Some(run),
            Self::Checking { .. }
            | Self::Retrying(_)
            | Self::Blocked(_)
            | Self::Resting
            | Self::Cleaning { .. } => None,
        }
    }

    /// Returns true if the issue is not available for a first dispatch.
    pub fn is_claimed(&self) -> bool {
        !matches!(self, Self::Resting | Self::Cleaning { .. })
    }

    /// Returns true if the issue takes one of the agent slots.
    pub fn holds_slot(&self) -> bool {
        matches!(self, Self::Checking { .. }) || self.run().is_some()
    }
}
