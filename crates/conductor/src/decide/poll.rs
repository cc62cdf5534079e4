//! Looking at the tracker.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::claimed_issue::{ClaimedIssue, Retry, RetryReason, Run, Stage};
use crate::effect::Effect;
use crate::notice::Notice;
use crate::spend::Spend;
use crate::state::{PollState, QueryId};
use crate::truncate::{MAX_ERROR, truncated};
use carrel_tracker::{Issue, IssueId, TrackerError};

use super::Transition;

/// Resting issues that are asked about at once.
const RESTING_AT_ONCE: usize = 50;

impl Transition {
    /// Sees to what was remembered, once and before anything else: whatever ran then runs no more.
    pub(super) fn begin(&mut self) {
        if self.state.poll != PollState::NotStarted {
            return;
        }
        self.state.poll = PollState::StartupCleanup { query: None };
        for id in self.ids(|_| true) {
            self.take_over(&id);
        }
        let all = self.ids(|_| true);
        if all.is_empty() {
            return self.end_sweep();
        }
        let query = self.state.new_query();
        self.state.poll = PollState::StartupCleanup { query: Some(query) };
        self.effects.push(Effect::Read(query, all));
    }

    fn take_over(&mut self, id: &IssueId) {
        let Some(entry) = self.state.issues.get(id) else { return };
        match entry.stage.clone() {
            // It had not begun, so it is not ours.
            Stage::Checking { retry: None, .. } => self.release(id),
            Stage::Checking { retry: Some(retry), .. } => self.put(id, Stage::Retrying(retry)),
            Stage::Running(run) => {
                self.count_time_of(id, &run);
                let reason = RetryReason::Interrupted;
                let retry = Retry { due: self.now, reason, error: None, no_slot: false };
                self.put(id, Stage::Retrying(retry));
            }
            // Nothing of the run is left, so what was to follow follows.
            Stage::Stopping { run, then } => {
                self.count_time_of(id, &run);
                self.put(id, Stage::Resting);
                if then == crate::claimed_issue::FollowUp::Clean {
                    self.put(id, Stage::Cleaning { failures: 0, due: Some(self.now) });
                } else {
                    self.follow(id, then, run.session);
                }
            }
            // Whether it is still finished is known when it has been read.
            Stage::Cleaning { failures, .. } => {
                self.put(id, Stage::Cleaning { failures, due: Some(self.now) });
            }
            Stage::Retrying(retry) => {
                self.put(id, Stage::Retrying(Retry { no_slot: false, ..retry }));
            }
            Stage::Blocked(_) | Stage::Resting => {}
        }
    }

    /// Counts the time of a run whose end nobody saw, up to its last known sign of life.
    fn count_time_of(&mut self, id: &IssueId, run: &Run) {
        let time = run.started_at.age(run.last_event_at);
        let spent = Spend { time, ..Spend::default() };
        let begin = self.state.ledger.today.begin();
        let today = run.started_at.max(begin).age(run.last_event_at);
        self.spend_on(id, spent, Spend { time: today, ..spent });
    }

    /// Asks the tracker for issues if it is time.
    pub(super) fn look_at_tracker(&mut self) {
        if matches!(self.state.poll, PollState::Waiting { due } if due <= self.now) {
            let query = self.state.new_query();
            self.state.poll = PollState::InFlight { query, repeat: false };
            self.effects.push(Effect::Poll(query));
        }
    }

    pub(super) fn polled(&mut self, query: QueryId, result: Result<Vec<Issue>, TrackerError>) {
        let PollState::InFlight { query: expected, repeat } = self.state.poll else { return };
        if query != expected {
            return;
        }
        let wait = if repeat { Duration::ZERO } else { self.state.rules.poll_interval };
        self.state.poll = PollState::Waiting { due: self.now.after(wait) };
        if let Some(once) = &mut self.state.single_pass {
            once.polled_at = Some(self.now);
            self.state.poll = PollState::Finished;
        }
        match result {
            Ok(found) => self.found(query, found),
            Err(fault) => {
                self.hold_tracker(&fault);
                let error = truncated(fault.message, MAX_ERROR);
                self.say(Notice::TrackerFailed { doing: "poll", error });
                // The agents that run may still be in step by another kind of question.
                self.want_unseen(&BTreeSet::new());
            }
        }
    }

    fn found(&mut self, query: QueryId, found: Vec<Issue>) {
        for issue in &found {
            self.refresh(query, &issue.id, Some(issue.clone()));
        }
        let seen = found.iter().map(|issue| issue.id.clone()).collect();
        self.want_unseen(&seen);
        self.queue(found);
    }

    /// Reads those of ours that the tracker did not list, since they may have moved on.
    fn want_unseen(&mut self, seen: &BTreeSet<IssueId>) {
        if self.state.ledger.rate_limited.tracker.is_some() {
            return;
        }
        let unseen = |step: &Self, wanted: fn(&Stage) -> bool| {
            let mut ids = step.ids(|entry| wanted(&entry.stage));
            ids.retain(|id| !seen.contains(id));
            ids
        };
        let ours = unseen(self, |stage| match stage {
            // It is being read, or will be before anything else happens to it.
            Stage::Checking { .. } | Stage::Cleaning { due: None, .. } | Stage::Resting => false,
            Stage::Running(_)
            | Stage::Stopping { .. }
            | Stage::Retrying(_)
            | Stage::Blocked(_)
            | Stage::Cleaning { due: Some(_), .. } => true,
        });
        let resting = unseen(self, |stage| *stage == Stage::Resting);
        let after = self.state.last_resting_read.take();
        let next = resting.iter().position(|id| Some(id) > after.as_ref()).unwrap_or_default();
        let turn: Vec<_> = resting.into_iter().skip(next).take(RESTING_AT_ONCE).collect();
        self.state.last_resting_read = turn.last().cloned();
        for id in ours.into_iter().chain(turn) {
            self.want(id);
        }
    }

    /// Notes which issues could be begun, and keeps in mind since when they could.
    fn queue(&mut self, found: Vec<Issue>) {
        let before = std::mem::take(&mut self.state.waiting);
        for issue in found {
            let known = self.state.issues.get(&issue.id);
            let free = known.is_none_or(|entry: &ClaimedIssue| entry.stage == Stage::Resting);
            if free && self.state.rules.is_eligible(&issue) {
                let since = before.get(&issue.id).map_or(self.now, |(since, _)| *since);
                self.state.waiting.insert(issue.id.clone(), (since, issue));
            }
        }
    }
}
