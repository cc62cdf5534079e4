//! What the loop remembers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use carrel_domain::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::rules::Rules;
use crate::spend::{Day, Spend};
use carrel_tracker::{Issue, IssueId};

/// One run of an agent. No two ever have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

/// A question to the tracker. An answer to an old one is known as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question(pub u64);

/// Everything that the loop knows. It has one owner, and changes by [`crate::decide`] alone.
#[derive(Clone, Debug)]
pub struct State {
    /// What is in force.
    pub rules: Rules,
    /// Whether work is begun.
    pub mode: Mode,
    /// Every issue that somebody works on, is to work on again, or cleans up after.
    pub entries: BTreeMap<IssueId, Entry>,
    /// Issues that could be begun if there were a place, and since when.
    pub waiting: BTreeMap<IssueId, (Timestamp, Issue)>,
    /// The next look at the tracker.
    pub poll: Poll,
    /// What was spent on all issues.
    pub spent: Spend,
    /// What was spent today.
    pub today: Day,
    /// What an agent last said about the limits of its provider.
    pub rate_limits: Option<Value>,
    pub(crate) next_run: u64,
    pub(crate) next_question: u64,
    /// The last of those that rest and were asked about, so that all have their turn.
    pub(crate) rested: Option<IssueId>,
}

/// Whether work is begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Whatever can be begun is begun.
    #[default]
    Working,
    /// Nothing is begun; what runs goes on.
    Paused,
    /// Nothing is begun; what runs ends after its turn.
    Draining,
}

/// The next look at the tracker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Nothing has happened yet.
    Fresh,
    /// What finished issues left behind is cleaned up first.
    Sweeping {
        /// The question that is out, until it is answered.
        asked: Option<Question>,
    },
    /// It comes then.
    Waiting {
        /// When.
        due: Timestamp,
    },
    /// It is under way.
    Asked {
        /// The question.
        question: Question,
        /// Somebody wants another one right after it.
        again: bool,
    },
}

/// An issue that is ours for now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The issue, as it was last read.
    pub issue: Issue,
    /// Which attempt this is; none before the first has failed or been continued.
    pub attempt: u32,
    /// What was spent on it.
    pub spent: Spend,
    /// Where it is worked on, once that is known.
    pub workspace: Option<PathBuf>,
    /// The conversation of the agent, which can be taken up again.
    pub thread: Option<String>,
    /// What somebody answered to the agent's question.
    pub answer: Option<String>,
    /// Where it stands with us.
    pub stage: Stage,
}

/// Where an issue stands with us.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// It is read once more before an agent starts. It has a place already.
    Checking {
        /// It is a new attempt, and not one that nobody knew of before.
        again: bool,
    },
    /// An agent works on it.
    Running(Run),
    /// Its agent has been told to end.
    Stopping {
        /// The run.
        run: Run,
        /// What becomes of the issue when the agent is gone.
        then: Then,
    },
    /// It will be taken up again.
    Retrying(Retry),
    /// Somebody has to do something first.
    Blocked(Block),
    /// Nobody works on it; its workspace is still there.
    Resting,
    /// It is finished; its workspace is being removed.
    Cleaning {
        /// How often that failed.
        failures: u32,
        /// When it is tried again; nothing while it is being tried.
        due: Option<Timestamp>,
    },
}

/// An agent at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its number.
    pub id: RunId,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was last heard of.
    pub heard_at: Timestamp,
    /// The session, once there is one.
    pub session: Option<String>,
    /// The turn that it is in.
    pub turn: u64,
    /// When that turn began.
    pub turn_started_at: Timestamp,
    /// What it spent.
    pub spent: Spend,
    /// What it had spent when the turn began.
    pub spent_before_turn: Spend,
    /// A turn is over and waits for the issue to be read.
    pub between_turns: Option<BetweenTurns>,
    /// What the last turn left behind, to see whether the next one does more.
    pub last_turn: Option<Trace>,
    /// The last event, for people.
    pub last_event: Option<String>,
    /// The last message, for people.
    pub last_message: Option<String>,
}

/// A turn is over, and whether another follows depends on the issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BetweenTurns {
    /// How often the issue could not be read.
    pub failures: u32,
    /// When it is read again; nothing while it is being read.
    pub due: Option<Timestamp>,
}

/// What a turn left behind: two that are equal got nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The content of the workspace.
    pub tree: String,
    /// What the agent said at last.
    pub answer: String,
}

/// What becomes of an issue when its agent is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// It is nobody's.
    Release,
    /// It is nobody's, and its workspace goes.
    Clean,
    /// It is taken up again, as after a failure.
    Fail(Why, String),
    /// It is taken up again, as after a success.
    Continue,
    /// It is taken up again when today's budget is tomorrow's.
    Tomorrow,
    /// It waits for somebody.
    Block(Reason),
}

/// A further attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// When it may begin.
    pub due: Timestamp,
    /// What it waits for.
    pub why: Why,
    /// What went wrong.
    pub error: Option<String>,
    /// It is due, and there is no place for it.
    pub no_slot: bool,
}

/// What a further attempt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A run ended well, and the issue may need another.
    Continuation,
    /// A run failed.
    Failure,
    /// A run showed no sign of life.
    Stall,
    /// The agent's provider wants fewer requests.
    RateLimited,
    /// Today's budget is used up.
    DayBudget,
    /// Carrel was stopped in the middle of a run.
    Interrupted,
    /// Somebody asked for it.
    Operator,
}

/// Somebody has to do something first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// What it is about.
    pub reason: Reason,
    /// Since when.
    pub since: Timestamp,
    /// The session that it happened in.
    pub session: Option<String>,
}

/// Why somebody has to do something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "detail", rename_all = "snake_case")]
pub enum Reason {
    /// The agent asks a question.
    Input(String),
    /// The agent wants to do something that it may not.
    Approval(String),
    /// A budget of the issue is used up.
    Budget(String),
    /// A turn changed nothing and said nothing new.
    NoProgress,
    /// Somebody stopped it.
    Cancelled,
}

impl Reason {
    /// Tells whether the agent waits for an answer.
    pub fn is_question(&self) -> bool {
        matches!(self, Self::Input(_) | Self::Approval(_))
    }
}

impl Entry {
    pub(crate) fn new(issue: Issue) -> Self {
        Self {
            issue,
            attempt: 0,
            spent: Spend::default(),
            workspace: None,
            thread: None,
            answer: None,
            stage: Stage::Resting,
        }
    }
}

impl Run {
    pub(crate) fn new(id: RunId, now: Timestamp) -> Self {
        let begun = Spend { attempts: 1, turns: 1, ..Spend::default() };
        Self {
            id,
            started_at: now,
            heard_at: now,
            session: None,
            turn: 1,
            turn_started_at: now,
            spent: begun,
            spent_before_turn: begun,
            between_turns: None,
            last_turn: None,
            last_event: None,
            last_message: None,
        }
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

    /// Tells whether nobody else may begin with it.
    pub fn is_claimed(&self) -> bool {
        !matches!(self, Self::Resting | Self::Cleaning { .. })
    }

    /// Tells whether it takes one of the places for agents.
    pub fn has_place(&self) -> bool {
        matches!(self, Self::Checking { .. }) || self.run().is_some()
    }
}

impl State {
    /// Begins with what was remembered. Whatever ran then runs no more.
    pub fn begin(rules: Rules, entries: BTreeMap<IssueId, Entry>, today: Day) -> Self {
        let spent = entries.values().fold(Spend::default(), |sum, entry| sum + entry.spent);
        Self {
            rules,
            mode: Mode::default(),
            entries,
            waiting: BTreeMap::new(),
            poll: Poll::Fresh,
            spent,
            today,
            rate_limits: None,
            next_run: 0,
            next_question: 0,
            rested: None,
        }
    }

    /// Counts the agents at work, those about to start and those about to end.
    pub fn agents(&self) -> usize {
        self.entries.values().filter(|entry| entry.stage.has_place()).count()
    }

    /// Tells whether there is a place for an issue in a state.
    pub(crate) fn has_slot(&self, state: &str) -> bool {
        let there = self
            .entries
            .values()
            .filter(|entry| entry.stage.has_place() && entry.issue.normal_state() == state);
        self.agents() < self.rules.agents && there.count() < self.rules.agents_in(state)
    }

    pub(crate) fn ask(&mut self) -> Question {
        self.next_question += 1;
        Question(self.next_question)
    }

    /// Returns the issue of a run that has not ended.
    pub(crate) fn issue_of(&self, run: RunId) -> Option<IssueId> {
        let found = self
            .entries
            .iter()
            .find(|(_, entry)| entry.stage.run().is_some_and(|there| there.id == run));
        found.map(|(id, _)| id.clone())
    }
}
