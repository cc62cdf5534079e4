//! What the loop hears, and what it wants done.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::entry::{Reason, RunId, Trace};
use crate::notice::Notice;
use crate::rules::Rules;
use crate::spend::Spend;
use crate::state::Question;
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
    /// The workflow file cannot be used, for this reason.
    Broken(String),
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
    /// Tokens that the run has used up so far. What a conversation cost before this run is not its.
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
    /// Lift what holds an issue up, a used-up budget included, and take it up again.
    Unblock(IssueId),
    /// Answer the question of an issue's agent.
    Answer(IssueId, String),
}

/// Something to be done outside.
///
/// Each [`Effect::Poll`], [`Effect::Read`] and [`Effect::Clean`] is answered once, and each
/// [`Effect::Start`] by one [`Event::Ended`], whatever goes wrong. What is to be saved or erased is on
/// the disk before anything behind it is done.
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
    /// End a session in peace: its turns are over, and went well.
    Finish(RunId),
    /// End an agent and everything that it started.
    Stop(RunId),
    /// Remove the workspace of an issue.
    Clean(Box<Issue>, Option<PathBuf>),
    /// Remember an entry as it stands.
    Save(IssueId),
    /// Forget an entry.
    Erase(IssueId),
    /// Remember [`crate::State::ledger`] as it stands.
    SaveLedger,
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
