//! What the loop remembers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::{Entry, RunId};
use crate::notice::{Notice, Outcome, Subject};
use crate::rules::Rules;
use crate::spend::{Day, Spend};
use carrel_tracker::{Issue, IssueId};

/// Notices that are kept for people to see.
const MOST_NOTICES: usize = 100;

/// A question to the tracker. Later ones have greater numbers, so an answer to an old one is known as such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question(pub u64);

/// Everything that the loop knows. It has one owner, and changes by [`crate::decide`] alone.
#[derive(Clone, Debug)]
pub struct State {
    /// What is in force.
    pub rules: Rules,
    /// Why the workflow file cannot be used, while it cannot. Nothing is begun then.
    pub broken: Option<String>,
    /// Every issue that somebody works on, is to work on again, or cleans up after.
    pub entries: BTreeMap<IssueId, Entry>,
    /// Issues that could be begun if there were a place, and since when.
    pub waiting: BTreeMap<IssueId, (Timestamp, Issue)>,
    /// The next look at the tracker.
    pub poll: Poll,
    /// What is remembered beside the entries.
    pub ledger: Ledger,
    /// What an agent last said about the limits of its provider.
    pub rate_limits: Option<Value>,
    /// How runs ended since the beginning.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// What people were last told.
    pub notices: VecDeque<Arc<Told>>,
    /// How often people were told something since the beginning.
    pub told: u64,
    /// Only what one look at the tracker finds is worked on, each issue once.
    pub(crate) once: Option<Once>,
    pub(crate) next_run: u64,
    pub(crate) next_question: u64,
    /// The last of those that rest and were asked about, so that all have their turn.
    pub(crate) rested: Option<IssueId>,
}

/// Something that people were told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Its number, from one on.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub notice: Notice,
}

/// What is remembered beside the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Whether work is begun.
    pub mode: Mode,
    /// What was spent on all issues.
    pub spent: Spend,
    /// What was spent today.
    pub today: Day,
    /// Who wants to be left alone, and until when.
    pub hold: Hold,
}

/// Who wants to be left alone, and until when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hold {
    /// The tracker: it is not asked, so nothing is begun.
    pub tracker: Option<Timestamp>,
    /// The provider of the agents: nothing is begun.
    pub agents: Option<Timestamp>,
}

/// One look at the tracker and no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Once {
    /// When the tracker answered. What is to be retried later than that is left for another time.
    pub(crate) looked_at: Option<Timestamp>,
}

/// Whether work is begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ConductorMode")]
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
    /// There was one, and there will be no other.
    Over,
}

impl Hold {
    /// Returns when everybody may be asked again, if somebody may not be now.
    pub fn until(&self, now: Timestamp) -> Option<Timestamp> {
        self.tracker.max(self.agents).filter(|until| *until > now)
    }

    /// Forgets what is over.
    pub(crate) fn pass(&mut self, now: Timestamp) {
        self.tracker = self.tracker.filter(|until| *until > now);
        self.agents = self.agents.filter(|until| *until > now);
    }
}

impl State {
    /// Begins with what was remembered. Whatever ran then runs no more.
    pub fn begin(rules: Rules, mut entries: BTreeMap<IssueId, Entry>, ledger: Ledger) -> Self {
        // Questions are counted anew.
        for entry in entries.values_mut() {
            entry.read = Question::default();
        }
        let runs = entries.values().filter_map(|entry| entry.stage.run());
        let next_run = runs.map(|run| run.id.0).max().unwrap_or_default();
        Self {
            rules,
            broken: None,
            entries,
            waiting: BTreeMap::new(),
            poll: Poll::Fresh,
            ledger,
            rate_limits: None,
            outcomes: BTreeMap::new(),
            notices: VecDeque::new(),
            told: 0,
            once: None,
            next_run,
            next_question: 0,
            rested: None,
        }
    }

    /// Numbers runs from here on, so that none has a number that was given before.
    #[must_use]
    pub fn after_run(self, last: RunId) -> Self {
        Self { next_run: last.0.max(self.next_run), ..self }
    }

    /// Looks at the tracker once: what that finds is worked on once, as places become free.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: Some(Once::default()), ..self }
    }

    /// Tells whether one look at the tracker was to be taken, and all that follows from it is done.
    pub fn is_over(&self) -> bool {
        let at_work = |entry: &Entry| {
            let removing = matches!(entry.stage, crate::entry::Stage::Cleaning { due: None, .. });
            entry.stage.has_place() || removing || self.is_wanted_once(entry)
        };
        let waits = !self.waiting.is_empty() && self.ledger.mode == Mode::Working;
        self.poll == Poll::Over && !waits && !self.entries.values().any(at_work)
    }

    fn is_wanted_once(&self, entry: &Entry) -> bool {
        self.ledger.mode == Mode::Working && self.is_due_once(entry)
    }

    /// Tells whether an attempt was due when the tracker was looked at, the one time.
    pub(crate) fn is_due_once(&self, entry: &Entry) -> bool {
        let looked_at = self.once.and_then(|once| once.looked_at);
        matches!((&entry.stage, looked_at),
            (crate::entry::Stage::Retrying(retry), Some(looked_at)) if retry.due <= looked_at)
    }

    /// Counts the agents at work, those about to start and those about to end.
    pub fn agents(&self) -> usize {
        self.entries.values().filter(|entry| entry.stage.has_place()).count()
    }

    /// Returns what was spent in all, that of agents that are still at work included.
    pub fn spent(&self, now: Timestamp) -> Spend {
        let runs = self.entries.values().filter_map(|entry| entry.stage.run());
        let live = runs.map(|run| run.started_at.age(now)).sum();
        self.ledger.spent + Spend { time: live, ..Spend::default() }
    }

    /// Returns what was spent today, that of agents that are still at work included.
    pub fn spent_today(&self, now: Timestamp) -> Spend {
        let today = self.ledger.today;
        let runs = self.entries.values().filter_map(|entry| entry.stage.run());
        let live = runs.map(|run| run.started_at.max(today.begin()).age(now)).sum();
        today.spent + Spend { time: live, ..Spend::default() }
    }

    /// Returns what an issue is called, for people.
    pub fn subject(&self, id: &IssueId) -> Subject {
        let entry = self.entries.get(id);
        let waiting = self.waiting.get(id).map(|(_, issue)| issue);
        let issue = entry.map(|entry| &entry.issue).or(waiting);
        let session = entry.and_then(|entry| entry.stage.run()).and_then(|run| run.session.clone());
        Subject {
            id: id.clone(),
            identifier: issue.map_or_else(|| id.0.clone(), |issue| issue.identifier.clone()),
            session,
        }
    }

    /// Returns what people were told after a number, as far as it is kept. A number that was never given
    /// is one of an earlier time, before which everything is new.
    pub fn told_after(&self, number: u64) -> impl Iterator<Item = &Arc<Told>> {
        let after = if number > self.told { 0 } else { number };
        self.notices.iter().filter(move |told| told.number > after)
    }

    /// Tells whether a look at the tracker is under way or about to be, so that another changes nothing.
    pub fn is_looking(&self, now: Timestamp) -> bool {
        match self.poll {
            Poll::Waiting { due } => due <= now,
            Poll::Fresh | Poll::Sweeping { .. } | Poll::Asked { .. } => true,
            Poll::Over => false,
        }
    }

    pub(crate) fn keep(&mut self, now: Timestamp, notice: Notice) {
        if self.notices.len() == MOST_NOTICES {
            self.notices.pop_front();
        }
        self.told += 1;
        self.notices.push_back(Arc::new(Told { number: self.told, at: now, notice }));
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
