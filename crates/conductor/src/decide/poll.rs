//! Polls of the tracker.
//!
//! A poll lists the issues in active states. Listed issues that are claimed are reconciled; eligible ones
//! that are not enter the queue for slots. Claimed issues that the poll did not list are read by id, since
//! they have left the active states or are invisible; of resting ones [`MAX_RESTING_READS`] at a time, in rotation, so
//! that a long history does not make each poll expensive. A failed poll changes nothing but the time of
//! the next one.
//!
//! A rate limit of the tracker postpones the next poll and, since every dispatch reads its issue first, all
//! dispatches. One of the agents' provider stops dispatches only; runs and polls continue. Both are part of the
//! ledger and survive a restart. An operator's `resume` clears the provider's.

use std::collections::BTreeSet;
use std::time::Duration;

use carrel_domain::Timestamp;

use crate::claimed_issue::{ClaimedIssue, Stage};
use crate::effect::Effect;
use crate::notice::Notice;
use crate::provider_limits::MAX_RATE_LIMIT;
use crate::state::{PollState, QueryId};
use crate::truncate::{MAX_ERROR, truncated};
use carrel_tracker::{Issue, IssueId, TrackerError};

use super::Transition;

/// Resting issues that one poll reads.
const MAX_RESTING_READS: usize = 50;

impl Transition {
    pub(super) fn poll_if_due(&mut self) {
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
            Ok(found) => self.issues_listed(query, found),
            Err(fault) => {
                self.rate_limit_tracker(&fault);
                let error = truncated(fault.message, MAX_ERROR);
                self.notify(Notice::TrackerFailed { doing: "poll", error });
                // A read by id may succeed where the list failed, and keeps the runs reconciled.
                self.read_unlisted(&BTreeSet::new());
            }
        }
    }

    fn issues_listed(&mut self, query: QueryId, found: Vec<Issue>) {
        for issue in &found {
            self.reconcile(query, &issue.id, Some(issue.clone()));
        }
        let seen = found.iter().map(|issue| issue.id.clone()).collect();
        self.read_unlisted(&seen);
        self.queue_eligible(found);
    }

    /// Requests the claimed issues that the poll did not list.
    fn read_unlisted(&mut self, seen: &BTreeSet<IssueId>) {
        if self.state.ledger.rate_limited.tracker.is_some() {
            return;
        }
        let unseen = |transition: &Self, wanted: fn(&Stage) -> bool| {
            let mut ids = transition.ids(|claimed| wanted(&claimed.stage));
            ids.retain(|id| !seen.contains(id));
            ids
        };
        let ours = unseen(self, |stage| match stage {
            // It is being read, or is read before anything else happens to it.
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
        let turn: Vec<_> = resting.into_iter().skip(next).take(MAX_RESTING_READS).collect();
        self.state.last_resting_read = turn.last().cloned();
        for id in ours.into_iter().chain(turn) {
            self.request_read(id);
        }
    }

    /// Replaces the queue of eligible issues. An issue that was in it keeps its waiting time.
    fn queue_eligible(&mut self, found: Vec<Issue>) {
        let before = std::mem::take(&mut self.state.waiting);
        for issue in found {
            let known = self.state.issues.get(&issue.id);
            let free = known.is_none_or(|claimed: &ClaimedIssue| claimed.stage == Stage::Resting);
            if free && self.state.rules.is_eligible(&issue) {
                let since = before.get(&issue.id).map_or(self.now, |(since, _)| *since);
                self.state.waiting.insert(issue.id.clone(), (since, issue));
            }
        }
    }

    /// Applies the `retry_after` of a tracker error, at most [`MAX_RATE_LIMIT`].
    pub(super) fn rate_limit_tracker(&mut self, fault: &TrackerError) {
        let Some(wait) = fault.retry_after else { return };
        let until = self.now.after(wait.min(MAX_RATE_LIMIT));
        let hold = &mut self.state.ledger.rate_limited.tracker;
        if hold.is_none_or(|there| there < until) {
            *hold = Some(until);
            self.notify(Notice::RateLimited { by: "tracker", until });
        }
        self.postpone_poll();
    }

    pub(super) fn rate_limit_agents(&mut self, until: Timestamp) {
        let hold = &mut self.state.ledger.rate_limited.agents;
        if until > self.now && hold.is_none_or(|there| there < until) {
            *hold = Some(until);
            self.notify(Notice::RateLimited { by: "agents", until });
        }
    }

    pub(super) fn is_rate_limited(&self) -> bool {
        self.state.ledger.rate_limited.until(self.now).is_some()
    }

    /// Moves a scheduled poll behind the tracker's rate limit.
    pub(super) fn postpone_poll(&mut self) {
        let hold = self.state.ledger.rate_limited.tracker;
        if let (PollState::Waiting { due }, Some(until)) = (&mut self.state.poll, hold) {
            *due = until.max(*due);
        }
    }

    /// Moves a scheduled poll forward, to at most `most` from now.
    pub(super) fn poll_within(&mut self, most: Duration) {
        let latest = self.now.after(most);
        if let PollState::Waiting { due } = &mut self.state.poll {
            *due = latest.min(*due);
        }
        self.postpone_poll();
    }
}
