//! The whole state of the conductor's loop.
//!
//! [`State`] has one owner, the drive loop, and only [`crate::decide`] changes it. Three parts of it
//! survive a restart: [`State::issues`] and [`State::ledger`], which the journal stores as JSON, and the
//! last run number. Everything else (the queue of eligible issues, notices, the poll state) is rebuilt
//! from the tracker by the first poll.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use carrel_domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claimed_issue::{ClaimedIssue, RunId, Stage};
use crate::notice::{IssueRef, Notice, RunOutcome};
use crate::rules::Rules;
use crate::spend::{DailySpend, Spend};
use carrel_tracker::{Issue, IssueId};

/// Notices in [`State::notices`]; a subscriber that is further behind misses the older ones.
const MAX_NOTICES: usize = 100;

/// The number of a request to the tracker. Later requests have greater numbers, so that the result of an
/// overtaken one is recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub u64);

/// The state of the conductor's loop. Cloned for each published copy, so it holds no handles.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The rules of the last valid workflow file.
    pub rules: Rules,
    /// The error of an invalid workflow file. While it is set nothing is dispatched; runs continue with
    /// the last valid rules.
    pub workflow_error: Option<String>,
    /// Claimed issues in every stage, and released ones whose workspace still exists.
    pub issues: BTreeMap<IssueId, ClaimedIssue>,
    /// Eligible issues that wait for a slot, with the time since which they were eligible. Replaced by
    /// each successful poll.
    pub waiting: BTreeMap<IssueId, (Timestamp, Issue)>,
    /// The poll of the tracker: when the next one is due, or which query is in flight.
    pub poll: PollState,
    /// The durable values that belong to no single issue. Written to the journal when they change.
    pub ledger: Ledger,
    /// The latest rate limits that an agent reported, in the provider's format.
    pub rate_limits: Option<Value>,
    /// Ended runs since the start of this conductor, by outcome; for metrics.
    pub outcomes: BTreeMap<RunOutcome, u64>,
    /// The latest notices, oldest first, at most 100.
    pub notices: VecDeque<Arc<NumberedNotice>>,
    /// Notices since the start; the number of the latest.
    pub notice_count: u64,
    /// Set when the conductor polls once and then ends.
    pub(crate) single_pass: Option<SinglePass>,
    pub(crate) next_run: u64,
    pub(crate) next_query: u64,
    /// The last resting issue that was read. Resting issues are read in rotation, 50 per poll.
    pub(crate) last_resting_read: Option<IssueId>,
}

/// A notice with its number, its time and its one-line message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ConductorEvent")]
pub struct NumberedNotice {
    /// The number of the notice, from 1 since the start; a subscriber's cursor.
    pub number: u64,
    /// The time of the notice.
    pub at: Timestamp,
    /// The one-line message.
    pub message: String,
    /// True for notices that an operator should look at.
    pub warning: bool,
    /// The members of the notice.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub notice: Notice,
}

/// Durable values that belong to no single issue. One JSON document per tracker in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// The mode that an operator last set. It survives a restart, so a paused conductor stays paused.
    pub mode: Mode,
    /// Consumption of all issues, finished ones included, without the time of runs in progress.
    pub spent: Spend,
    /// Consumption of the current day in UTC, against which the daily budget is checked.
    pub today: DailySpend,
    /// Rate limits in force, so that a restart does not ask too early.
    pub rate_limited: RateLimitedUntil,
}

/// The ends of the rate limits in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateLimitedUntil {
    /// The tracker's: no polls, and no dispatches, since each needs a read.
    pub tracker: Option<Timestamp>,
    /// The agents' provider's: no dispatches.
    pub agents: Option<Timestamp>,
}

/// State of `carrel run --once`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SinglePass {
    /// The time of the poll result. Retries that are due later are left to the next conductor.
    pub(crate) polled_at: Option<Timestamp>,
}

/// The operator's setting for dispatches, changed by pause, drain and resume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ConductorMode")]
pub enum Mode {
    /// Eligible issues are dispatched.
    #[default]
    Working,
    /// Nothing is dispatched; runs continue.
    Paused,
    /// Nothing is dispatched; runs end after their current turn, and are continued in the same
    /// conversation after a resume.
    Draining,
}

/// The poll of the tracker. At most one is in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say it")]
pub enum PollState {
    /// No event has been decided yet. The first decision takes over the journal.
    #[default]
    NotStarted,
    /// Issues of the journal are read and workspaces of finished ones removed, before the first poll.
    StartupCleanup {
        /// The read of all journaled issues, while it is in flight.
        query: Option<QueryId>,
    },
    Waiting {
        due: Timestamp,
    },
    InFlight {
        query: QueryId,
        /// An operator requested a refresh meanwhile; the next poll follows immediately.
        repeat: bool,
    },
    /// The only poll of a single pass is done.
    Finished,
}

impl RateLimitedUntil {
    /// Returns the time at which the last rate limit in force ends.
    pub fn until(&self, now: Timestamp) -> Option<Timestamp> {
        self.tracker.max(self.agents).filter(|until| *until > now)
    }

    pub(crate) fn expire(&mut self, now: Timestamp) {
        self.tracker = self.tracker.filter(|until| *until > now);
        self.agents = self.agents.filter(|until| *until > now);
    }
}

impl State {
    /// Creates the initial state from the journal. Runs in it were ended by their conductor's death; the
    /// first decision turns them into retries.
    pub fn begin(
        rules: Rules,
        mut issues: BTreeMap<IssueId, ClaimedIssue>,
        ledger: Ledger,
    ) -> Self {
        // Query numbers start from 0 again.
        for issue in issues.values_mut() {
            issue.read = QueryId::default();
        }
        let runs = issues.values().filter_map(|issue| issue.stage.run());
        let next_run = runs.map(|run| run.id.0).max().unwrap_or_default();
        Self { rules, issues, ledger, next_run, ..Self::default() }
    }

    /// Numbers further runs after `last`, the greatest run number in the journal.
    #[must_use]
    pub fn after_run(self, last: RunId) -> Self {
        Self { next_run: last.0.max(self.next_run), ..self }
    }

    /// Makes the conductor poll once, dispatch each issue of that poll once, and end.
    #[must_use]
    pub fn once(self) -> Self {
        Self { single_pass: Some(SinglePass::default()), ..self }
    }

    /// Returns true if this is a single pass and all its work is done.
    pub fn is_over(&self) -> bool {
        let at_work = |issue: &ClaimedIssue| {
            let removing = matches!(issue.stage, Stage::Cleaning { due: None, .. });
            let dispatched_later =
                self.ledger.mode == Mode::Working && self.is_due_in_single_pass(issue);
            issue.stage.holds_slot() || removing || dispatched_later
        };
        let waits = !self.waiting.is_empty() && self.ledger.mode == Mode::Working;
        self.poll == PollState::Finished && !waits && !self.issues.values().any(at_work)
    }

    /// Returns true if a retry was due at the time of the single poll.
    pub(crate) fn is_due_in_single_pass(&self, issue: &ClaimedIssue) -> bool {
        let polled_at = self.single_pass.and_then(|pass| pass.polled_at);
        matches!((&issue.stage, polled_at),
            (Stage::Retrying(retry), Some(polled_at)) if retry.due <= polled_at)
    }

    /// Returns the number of slots that are taken: issues that are checked, running or stopping.
    pub fn agents(&self) -> usize {
        self.issues.values().filter(|issue| issue.stage.holds_slot()).count()
    }

    /// Returns the consumption of all issues, the time of runs in progress included.
    pub fn spent(&self, now: Timestamp) -> Spend {
        let runs = self.issues.values().filter_map(|issue| issue.stage.run());
        let live = runs.map(|run| run.started_at.age(now)).sum();
        self.ledger.spent + Spend::of_time(live)
    }

    /// Returns today's consumption, the time of runs in progress since midnight UTC included.
    pub fn spent_today(&self, now: Timestamp) -> Spend {
        let today = self.ledger.today;
        let runs = self.issues.values().filter_map(|issue| issue.stage.run());
        let live = runs.map(|run| run.started_at.max(today.begin()).age(now)).sum();
        today.spent + Spend::of_time(live)
    }

    /// Returns the reference to an issue that notices carry. An unknown issue is identified by its id.
    pub fn issue_ref(&self, id: &IssueId) -> IssueRef {
        let claimed = self.issues.get(id);
        let waiting = self.waiting.get(id).map(|(_, issue)| issue);
        let issue = claimed.map(|claimed| &claimed.issue).or(waiting);
        let session = claimed.and_then(|claimed| claimed.stage.run()?.session.clone());
        IssueRef {
            id: id.clone(),
            identifier: issue.map_or_else(|| id.0.clone(), |issue| issue.identifier.clone()),
            session,
        }
    }

    /// Returns the kept notices after a cursor. A cursor beyond the latest number is one of an earlier
    /// conductor, and all kept notices follow it.
    pub fn notices_after(&self, cursor: u64) -> impl Iterator<Item = &Arc<NumberedNotice>> {
        let after = if cursor > self.notice_count { 0 } else { cursor };
        self.notices.iter().filter(move |notice| notice.number > after)
    }

    /// Returns true if a poll is due or in flight, so that a refresh adds nothing.
    pub fn is_polling(&self, now: Timestamp) -> bool {
        match self.poll {
            PollState::Waiting { due } => due <= now,
            PollState::NotStarted
            | PollState::StartupCleanup { .. }
            | PollState::InFlight { .. } => true,
            PollState::Finished => false,
        }
    }

    pub(crate) fn record_notice(&mut self, now: Timestamp, notice: Notice) {
        if self.notices.len() == MAX_NOTICES {
            self.notices.pop_front();
        }
        self.notice_count += 1;
        let (message, warning) = (notice.to_string(), notice.is_warning());
        let number = self.notice_count;
        let numbered = NumberedNotice { number, at: now, message, warning, notice };
        self.notices.push_back(Arc::new(numbered));
    }

    pub(crate) fn new_query(&mut self) -> QueryId {
        self.next_query += 1;
        QueryId(self.next_query)
    }

    /// Returns the issue of a run that has not ended. Updates of an ended run find none and are dropped.
    pub(crate) fn issue_of(&self, run: RunId) -> Option<IssueId> {
        let is_run = |claimed: &ClaimedIssue| claimed.stage.run().is_some_and(|it| it.id == run);
        let found = self.issues.iter().find(|(_, claimed)| is_run(claimed));
        found.map(|(id, _)| id.clone())
    }
}
