//! An issue that is ours for now, and where it stands with us.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spend::Spend;
use crate::state::Question;
use crate::text::bounded;
use carrel_tracker::{Issue, IssueId};

/// Events of its agents that are kept for people to see.
pub(crate) const MOST_RECENT: usize = 20;

/// One run of an agent. No two ever have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

/// An issue that is ours for now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The issue, as it was last read.
    pub issue: Issue,
    /// Which attempt this is; none before the first has failed or been continued.
    pub attempt: u32,
    /// How often in a row the agent's provider wanted fewer requests.
    #[serde(default)]
    pub limited: u32,
    /// What was spent on it.
    pub spent: Spend,
    /// What was spent on it when somebody last lifted its budget.
    #[serde(default)]
    pub forgiven: Spend,
    /// Where it is worked on, once that is known.
    pub workspace: Option<PathBuf>,
    /// The conversation of the agent, which can be taken up again.
    pub thread: Option<String>,
    /// What somebody answered to the agent's question, until an agent has heard it.
    pub answer: Option<String>,
    /// What the last turn left behind, to see whether the next one does more.
    #[serde(default)]
    pub last_turn: Option<Trace>,
    /// What its agents were last heard to do, for people.
    #[serde(skip)]
    pub recent: VecDeque<Said>,
    /// Where it stands with us.
    pub stage: Stage,
    /// The latest question that told us of it. Answers to earlier ones say nothing new.
    #[serde(skip)]
    pub(crate) read: Question,
}

/// What an agent was heard to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// When.
    pub at: Timestamp,
    /// What kind of event it was.
    pub event: String,
    /// What it said.
    pub message: Option<String>,
}

/// Where an issue stands with us.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// It is read once more before an agent starts. It has a place already.
    Checking {
        /// The further attempt that it is; nothing for one that nobody knew of before.
        retry: Option<Retry>,
        /// The question. Answers to earlier ones do not count.
        #[serde(skip)]
        asked: Question,
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
    /// Its last turn is over, and it was told to end in peace.
    #[serde(default)]
    pub finishing: bool,
}

/// A turn is over, and whether another follows depends on the issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BetweenTurns {
    /// How often the issue could not be read.
    pub failures: u32,
    /// When it is read again; nothing while it is being read.
    pub due: Option<Timestamp>,
    /// The question. Answers to earlier ones may be older than the end of the turn.
    #[serde(skip)]
    pub(crate) asked: Question,
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
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RetryReason")]
pub enum Why {
    /// A run ended well, and the issue may need another.
    Continuation,
    /// A run failed.
    Failure,
    /// A run showed no sign of life.
    Stall,
    /// The agent's provider wants fewer requests.
    RateLimited,
    /// A run used up what one run may.
    RunBudget,
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

    /// Returns it in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input(_) => "input",
            Self::Approval(_) => "approval",
            Self::Budget(_) => "budget",
            Self::NoProgress => "no_progress",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn bounded(self, most: usize) -> Self {
        match self {
            Self::Input(text) => Self::Input(bounded(text, most)),
            Self::Approval(text) => Self::Approval(bounded(text, most)),
            Self::Budget(text) => Self::Budget(bounded(text, most)),
            Self::NoProgress | Self::Cancelled => self,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(question) => write!(f, "the agent asks: {question}"),
            Self::Approval(what) => write!(f, "the agent wants to do what it may not: {what}"),
            Self::Budget(what) => write!(f, "its budget is used up: {what}"),
            Self::NoProgress => f.write_str("a turn changed nothing and said nothing new"),
            Self::Cancelled => f.write_str("somebody stopped it"),
        }
    }
}

impl Entry {
    pub(crate) fn new(issue: Issue) -> Self {
        Self {
            issue,
            attempt: 0,
            limited: 0,
            spent: Spend::default(),
            forgiven: Spend::default(),
            workspace: None,
            thread: None,
            answer: None,
            last_turn: None,
            recent: VecDeque::new(),
            stage: Stage::Resting,
            read: Question::default(),
        }
    }

    /// Returns what counts against the budget of the issue.
    pub(crate) fn spent_of_budget(&self) -> Spend {
        self.spent.since(self.forgiven)
    }

    pub(crate) fn remember(&mut self, said: Said) {
        if self.recent.len() == MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(said);
    }

    /// Returns the id of the issue.
    pub fn id(&self) -> &IssueId {
        &self.issue.id
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
            finishing: false,
        }
    }

    /// Tells whether the agent is at work, and not waiting for us.
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

    /// Returns the run that has not ended yet.
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

    /// Tells whether nobody else may begin with it.
    pub fn is_claimed(&self) -> bool {
        !matches!(self, Self::Resting | Self::Cleaning { .. })
    }

    /// Tells whether it takes one of the places for agents.
    pub fn has_place(&self) -> bool {
        matches!(self, Self::Checking { .. }) || self.run().is_some()
    }
}
