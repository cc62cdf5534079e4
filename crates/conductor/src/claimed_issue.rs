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

use crate::rules::Rules;
use crate::spend::Spend;
use crate::state::QueryId;
use carrel_tracker::Issue;

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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimedIssue {
    /// The issue as the tracker last returned it, by a poll or by a read.
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
    /// The agent's conversation, for agents that can resume one. A failure clears it, so the next run starts
    /// a new one.
    pub thread: Option<String>,
    /// An operator's answer to the agent's question, kept until a session that received it has started.
    pub answer: Option<String>,
    /// Consecutive turns without an effect, over all runs. A turn that failed or was interrupted counts neither way.
    #[serde(default)]
    pub turns_without_progress: u64,
    /// The latest agent events, oldest first, at most 20.
    #[serde(skip)]
    pub recent: VecDeque<AgentEvent>,
    /// The stage of the work. Only [`crate::decide`] changes it, and each change is journaled.
    pub stage: Stage,
    /// The latest query that returned this issue. Results of earlier queries are stale and ignored.
    #[serde(skip)]
    pub(crate) read: QueryId,
}

/// An event of an agent, as it was reported to the conductor.
// The doc comment is a description in `docs/openapi.json`. The transcript has all events in full; here the
// texts are truncated to 500 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "EventRow")]
#[expect(missing_docs, reason = "an event as it was received")]
pub struct AgentEvent {
    pub at: Timestamp,
    pub event: String,
    pub message: Option<String>,
}

/// The stage of a claimed issue. The diagram of the module shows the transitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the variant says it")]
pub enum Stage {
    /// A slot is taken, and the tracker is asked for the current state of the issue before a dispatch: the
    /// poll that listed it may be half a minute old. After a restart a first claim is released again, and a
    /// retry stays a retry.
    Checking {
        /// The retry that is due; `None` for an issue that is claimed for the first time.
        retry: Option<Retry>,
        /// The query whose result decides. Results of earlier queries are ignored.
        #[serde(skip)]
        query: QueryId,
    },
    /// A run is in progress. It leaves this stage through [`Self::Stopping`], or directly when it ends by
    /// itself; after a restart it becomes a retry that resumes the conversation.
    Running(Run),
    /// The run was told to end and has not ended yet. The slot stays taken and the workspace is not touched
    /// until all its processes have ended.
    Stopping {
        run: Run,
        /// The transition that follows the end of the run.
        then: FollowUp,
    },
    /// A further run starts when its time has come and a slot is free. The issue stays claimed meanwhile,
    /// so that a change in the tracker can cancel the retry.
    Retrying(Retry),
    /// An operator has to act first: answer, unblock or retry. A change of the issue to a terminal or
    /// inactive state ends the block as well.
    Blocked(Block),
    /// Not worked on and not claimed; the workspace and the spending record are kept. A later poll may
    /// claim the issue again, and a terminal state removes it.
    #[default]
    Resting,
    /// The issue is in a terminal state, and its workspace is being removed. The issue is erased when the
    /// removal has succeeded.
    Cleaning {
        /// Failed removals so far; the exponent of the back-off.
        failures: u32,
        /// The time of the next removal; `None` while one is in progress.
        due: Option<Timestamp>,
    },
}

/// A run: one agent session in a workspace, from its dispatch to the end of its last process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The number of the run, which names its transcript and its row in the journal.
    pub id: RunId,
    /// The time of the dispatch, from which the time budgets of run, issue and day count.
    pub started_at: Timestamp,
    /// The time of the last agent event; the stall timeout counts from here.
    pub last_event_at: Timestamp,
    /// The agent's session, once it has reported one. Each turn has a session of its own.
    pub session: Option<String>,
    /// The number of the current turn, from 1 to [`crate::Rules::max_turns`].
    pub turn: u64,
    /// The start of the current turn, from which the time budget of a turn counts.
    pub turn_started_at: Timestamp,
    /// Spending of this run so far, without its time, which is known from [`Self::started_at`].
    pub spent: Spend,
    /// The value of [`Self::spent`] at the start of the current turn.
    pub spent_before_turn: Spend,
    /// Set between the end of a turn and the decision about the next one.
    pub between_turns: Option<BetweenTurns>,
    /// The last turn is over and the run was told to finish. It is no longer in a turn, so turn budgets do
    /// not apply, but a run that does not finish can still stall.
    #[serde(default)]
    pub finishing: bool,
    /// The issue changed in the tracker during the current turn, which counts as an effect of the turn.
    #[serde(default)]
    pub issue_changed: bool,
}

/// The wait between two turns: whether another follows depends on the state of the issue in the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BetweenTurns {
    /// Failed reads of the issue so far. After five the run finishes instead of waiting longer.
    pub failures: u32,
    /// The time of the next read; `None` while one is in flight.
    pub due: Option<Timestamp>,
    /// The query in flight. Results of earlier queries may predate the end of the turn.
    #[serde(skip)]
    pub(crate) query: QueryId,
}

/// The transition that follows the end of a stopped run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowUp {
    /// Release the claim; the workspace stays, for an issue that is no longer active.
    Release,
    /// Release the claim and remove the workspace, for an issue that is finished.
    Clean,
    /// Retry with back-off in a new conversation, as after a failure.
    Fail(RetryReason, String),
    /// Retry after the continuation delay of one second, as after a success.
    Continue,
    /// Retry when the daily budget starts anew, at midnight UTC.
    Tomorrow,
    /// Wait for an operator, with the reason that is shown to them.
    Block(BlockReason),
}

/// A scheduled further run. It needs a slot and a read of the issue when it is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The earliest time of the run. It is a wall-clock time, so it holds across a restart.
    pub due: Timestamp,
    /// The cause of the retry.
    pub reason: RetryReason,
    /// The error of the run before, if it failed, truncated to 2000 bytes.
    pub error: Option<String>,
    /// The retry is due, but all slots are taken. Shown to operators; the attempt count does not change.
    pub no_slot: bool,
}

/// The cause of a retry, which decides its back-off and is shown to operators.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum RetryReason {
    /// The run succeeded and the issue is still active. The next run starts a new conversation.
    Continuation,
    Failure,
    /// The agent sent no event within the stall timeout. Counts as a failure.
    Stall,
    /// The agent's provider answered with a rate limit. Does not count as a failure of the issue.
    RateLimited,
    /// The run exhausted the budget of a run during a turn. Counts as a failure.
    RunBudget,
    DayBudget,
    /// The conductor was stopped or killed during the run. The retry is due at once.
    Interrupted,
    Operator,
}

/// The reason and time of a block, which an operator lifts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The reason, which decides how an operator can lift the block.
    pub reason: BlockReason,
    /// The time at which the issue was blocked.
    pub since: Timestamp,
    /// The agent session that ended with the block, if there was one.
    pub session: Option<String>,
}

/// The reason for a block. The detail is text for the operator, truncated to 2000 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "detail", rename_all = "snake_case")]
pub enum BlockReason {
    /// The agent asked a question, which an operator can answer.
    Input(String),
    /// The agent requested an approval that the policy does not give.
    Approval(String),
    /// A budget of the turn or of the issue is exhausted. Unblocking grants the budget once more.
    Budget(String),
    /// As many consecutive turns as the rules allow had no effect, also if a restart or another run lay between them.
    NoProgress,
    /// An operator cancelled the run, or an issue that waited.
    Cancelled,
}

impl BlockReason {
    /// Returns true if the agent waits for an operator's answer.
    pub fn is_question(&self) -> bool {
        matches!(self, Self::Input(_) | Self::Approval(_))
    }

    /// Returns the wire name of the reason, as in the member `reason` of a snapshot.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input(_) => "input",
            Self::Approval(_) => "approval",
            Self::Budget(_) => "budget",
            Self::NoProgress => "no_progress",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn map_detail(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Input(text) => Self::Input(change(text)),
            Self::Approval(text) => Self::Approval(change(text)),
            Self::Budget(text) => Self::Budget(change(text)),
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
            Self::NoProgress => f.write_str(
                "no progress: its last turns changed neither files, commits nor the tracker",
            ),
            Self::Cancelled => f.write_str("an operator cancelled it"),
        }
    }
}

impl ClaimedIssue {
    pub(crate) fn new(issue: Issue) -> Self {
        Self { issue, ..Self::default() }
    }

    /// Returns the spending that counts against the budget of the issue.
    pub(crate) fn spent_of_budget(&self) -> Spend {
        self.spent.since(self.spent_at_unblock)
    }

    /// Returns true if the issue has had as many turns without an effect as the rules allow.
    pub(crate) fn lacks_progress(&self, rules: &Rules) -> bool {
        let most = rules.max_turns_without_progress;
        most.is_some_and(|most| self.turns_without_progress >= most)
    }

    /// Counts a change of the issue as an effect of the turn in progress, or of the one that has just ended.
    pub(crate) fn note_issue_change(&mut self) {
        let Stage::Running(run) = &mut self.stage else { return };
        if run.is_in_turn() {
            run.issue_changed = true;
        } else if run.between_turns.is_some() {
            self.turns_without_progress = 0;
        }
    }

    pub(crate) fn record_event(&mut self, event: AgentEvent) {
        if self.recent.len() == MAX_RECENT_EVENTS {
            self.recent.pop_front();
        }
        self.recent.push_back(event);
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
            issue_changed: false,
        }
    }

    /// Returns true while the agent works, and false while it waits for the conductor.
    pub fn is_in_turn(&self) -> bool {
        self.between_turns.is_none() && !self.finishing
    }
}

impl Stage {
    /// Returns the run that has not ended yet: in the stages running and stopping.
    pub fn run(&self) -> Option<&Run> {
        let (Self::Running(run) | Self::Stopping { run, .. }) = self else { return None };
        Some(run)
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Run> {
        let (Self::Running(run) | Self::Stopping { run, .. }) = self else { return None };
        Some(run)
    }

    /// Returns true if the issue takes one of the agent slots.
    pub fn holds_slot(&self) -> bool {
        matches!(self, Self::Checking { .. }) || self.run().is_some()
    }
}
