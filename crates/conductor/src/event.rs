//! Inputs of [`crate::decide`]: results of effects, agent updates and operator commands.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::claimed_issue::{BlockReason, RunId};
use crate::rules::Rules;
use crate::spend::Spend;
use crate::state::QueryId;
use carrel_tracker::{Issue, IssueId, TrackerError};

/// An input of [`crate::decide`].
#[derive(Clone, Debug)]
pub enum Event {
    /// The time that [`crate::State::next_due`] returned has come, or the conductor starts.
    Due,
    /// The result of [`crate::Effect::Poll`]: the tracker's issues in active states.
    Polled(QueryId, Result<Vec<Issue>, TrackerError>),
    /// The result of [`crate::Effect::Read`], with the ids that were requested. An id without an issue
    /// is no longer visible.
    Read(QueryId, Vec<IssueId>, Result<Vec<Issue>, TrackerError>),
    /// The workspace of a run exists and is locked. From now on no process of an earlier run can be in it.
    WorkspaceReady(RunId, PathBuf),
    /// The agent of a run sent an event.
    AgentUpdated(RunId, AgentUpdate),
    /// The agent and every process that it started have ended, or could not be killed. This is the only
    /// event that frees the slot of a run.
    RunEnded(RunId, RunEnd),
    /// The result of [`crate::Effect::Clean`], with the name of unsaved work that is kept.
    Cleaned(IssueId, Result<Option<String>, String>),
    /// The workflow file changed and is valid. The new rules apply to this decision already.
    WorkflowChanged(Box<Rules>),
    /// The workflow file changed and is invalid, with the reason. The last valid rules stay in force.
    WorkflowInvalid(String),
    /// An operator's command, which [`crate::State::reject`] may refuse.
    Command(OperatorCommand),
}

/// The part of an agent's event that the conductor decides on. Each one resets the stall timeout.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentUpdate {
    /// A turn has started in a session.
    SessionStarted {
        /// The session, which names one turn.
        session: String,
        /// The conversation, which a later run can resume.
        thread: String,
    },
    /// Tokens that the run has used so far, as a total. Turns of the same conversation in earlier runs
    /// are excluded.
    Usage(Spend),
    /// The provider's report about its rate limits, in the provider's format.
    RateLimits(Value),
    /// A turn succeeded, with these effects.
    TurnEnded(TurnEffects),
    /// Any other event.
    Other {
        /// The agent's name for the kind of event.
        event: String,
        /// The text of the event.
        message: Option<String>,
    },
}

/// The effects of a turn outside the conversation. Progress is measured by them, never by the agent's words.
///
/// Changes of the issue that the conductor sees when it reads the tracker count beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnEffects {
    /// Files in the workspace differ in content, mode or name from before the turn, ignored ones aside. Also
    /// true if that could not be found out.
    pub files: bool,
    /// Branches, tags or stashes of a repository differ, or commits were pushed.
    pub commits: bool,
    /// The tracker accepted a call of the agent that does more than read.
    pub tracker: bool,
}

impl TurnEffects {
    /// Returns true if there is any effect.
    pub fn any(self) -> bool {
        self.files || self.commits || self.tracker
    }
}

/// The effects as words: `files, tracker`, or `none`.
impl fmt::Display for TurnEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [(self.files, "files"), (self.commits, "commits"), (self.tracker, "tracker")];
        let parts = parts.into_iter().filter_map(|(there, name)| there.then_some(name));
        let parts: Vec<&str> = parts.collect();
        f.write_str(if parts.is_empty() { "none" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The conductor finished the run after its last turn. Another run follows while the issue is active.
    Completed,
    /// The run failed or was stopped during a turn. If the conductor stopped it, the reason to stop decides
    /// what follows, and not this error.
    Failed(String),
    /// The provider answered with a rate limit, with the wait if it named one.
    RateLimited(Option<Duration>),
    /// The agent cannot continue without an operator.
    Blocked(BlockReason),
}

/// A command of an operator, from the command line or the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorCommand {
    /// Poll the tracker now, or once more after the poll in flight. A rate limit still postpones it.
    Refresh,
    /// Dispatch nothing; runs continue. The mode survives a restart.
    Pause,
    /// Dispatch nothing, and end runs after their current turn.
    Drain,
    /// Dispatch again, also if the agents' provider has reported a rate limit.
    Resume,
    /// Stop the run of an issue and block it until it is unblocked. It applies to waiting issues too.
    Cancel(IssueId),
    /// Retry an issue without waiting for its back-off.
    RetryNow(IssueId),
    /// Lift the block of an issue, an exhausted budget included, and retry it.
    Unblock(IssueId),
    /// Answer the question of an issue's agent and retry the issue.
    Answer(IssueId, String),
}
