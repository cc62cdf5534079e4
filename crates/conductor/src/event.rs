//! What the loop hears, and what it wants done.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::rules::Rules;
use crate::spend::Spend;
use crate::state::{Question, Reason, RunId, Trace, Why};
use carrel_tracker::{Fault, Issue, IssueId};

/// Something that happened outside.
#[derive(Clone, Debug)]
pub enum Event {
    /// A time has come that [`crate::State::next_due`] named, or it is the beginning.
    Due,
    /// The tracker's issues in active states.
    Polled(Question, Result<Vec<Issue>, Fault>),
    /// Issues that were asked for by id. Those that are not there are gone from our sight.
    Read(Question, Vec<IssueId>, Result<Vec<Issue>, Fault>),
    /// An agent has its workspace.
    Placed(RunId, PathBuf),
    /// An agent shows a sign of life.
    Heard(RunId, News),
    /// An agent and everything that it started are gone.
    Ended(RunId, End),
    /// A workspace is removed, or could not be.
    Cleaned(IssueId, Result<(), String>),
    /// The workflow file was changed.
    Changed(Box<Rules>),
    /// Somebody wants something.
    Told(Order),
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// There is a session, in a conversation that can be taken up again.
    Session {
        /// The session.
        session: String,
        /// The conversation.
        thread: String,
    },
    /// What the run has used up so far.
    Usage(Spend),
    /// What the provider says about its limits.
    RateLimits(Value),
    /// A turn is over and went well.
    TurnEnded(Option<Trace>),
    /// Something else.
    Something {
        /// What kind of event it was.
        event: String,
        /// What it said.
        message: Option<String>,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As it was meant to.
    Well,
    /// By a failure.
    Failed(String),
    /// Because the provider wants fewer requests.
    RateLimited(Option<Duration>),
    /// Because somebody has to do something.
    Blocked(Reason),
}

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Look at the tracker now.
    Refresh,
    /// Begin nothing.
    Pause,
    /// Begin nothing, and let what runs end after its turn.
    Drain,
    /// Go on.
    Resume,
    /// End the work on an issue, and leave it until somebody says otherwise.
    Cancel(IssueId),
    /// Take an issue up again at once.
    RetryNow(IssueId),
    /// Answer the question of an issue's agent.
    Answer(IssueId, String),
}

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Read the issues in active states.
    Poll(Question),
    /// Read issues by id.
    Read(Question, Vec<IssueId>),
    /// Start an agent.
    Start(Box<Start>),
    /// Begin another turn in the same conversation.
    NextTurn {
        /// The run.
        run: RunId,
        /// The number of the turn.
        turn: u64,
    },
    /// End a session in peace: its turns are over.
    Finish(RunId),
    /// End an agent and everything that it started.
    Stop(RunId),
    /// Remove the workspace of an issue.
    Clean(Box<Issue>, Option<PathBuf>),
    /// Remember an entry as it stands.
    Save(IssueId),
    /// Forget an entry.
    Erase(IssueId),
    /// Tell people.
    Say(Notice),
}

/// An agent that is to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The number of its run.
    pub run: RunId,
    /// What it works on.
    pub issue: Issue,
    /// Which attempt it is; none for the first.
    pub attempt: Option<u32>,
    /// The conversation to take up again.
    pub thread: Option<String>,
    /// What somebody answered to the question that the last run ended with.
    pub answer: Option<String>,
    /// Where it was worked on before.
    pub workspace: Option<PathBuf>,
}

/// Something that people want to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Notice {
    /// An agent is started.
    Dispatched {
        /// The issue.
        issue: IssueId,
        /// Which attempt it is.
        attempt: u32,
    },
    /// An issue that was to be begun is left alone.
    Skipped {
        /// The issue.
        issue: IssueId,
        /// Why.
        why: String,
    },
    /// An agent is told to end.
    Stopped {
        /// The issue.
        issue: IssueId,
        /// Why.
        why: String,
    },
    /// Another attempt follows.
    WillRetry {
        /// The issue.
        issue: IssueId,
        /// Which attempt it will be.
        attempt: u32,
        /// What it waits for.
        why: Why,
        /// In how many milliseconds.
        delay_ms: u64,
        /// What went wrong.
        error: Option<String>,
    },
    /// Somebody has to do something.
    Blocked {
        /// The issue.
        issue: IssueId,
        /// What.
        reason: Reason,
    },
    /// The issue is nobody's any more.
    Released {
        /// The issue.
        issue: IssueId,
    },
    /// A workspace could not be removed.
    CleanupFailed {
        /// The issue.
        issue: IssueId,
        /// Why.
        error: String,
    },
    /// The tracker did not answer.
    TrackerFailed {
        /// What was asked.
        doing: &'static str,
        /// Why.
        error: String,
    },
    /// An order cannot be carried out.
    Refused {
        /// Why.
        why: String,
    },
}
