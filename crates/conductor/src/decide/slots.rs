//! Assignment of agent slots.
//!
//! `max_concurrent_agents` slots are shared by all issues, and a state may have a smaller number of its
//! own. An issue holds a slot from the read before its dispatch until its run has ended. Retries and new
//! issues compete: each group is ordered by itself, and of their two first candidates the one with the
//! better priority, then the longer wait, goes first. So issues that are continued again and again do not
//! starve new ones of the same priority. Waiting for a slot counts as no failure.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use carrel_domain::Timestamp;

use crate::claimed_issue::{ClaimedIssue, Retry, Stage};
use crate::rules::{Rules, dispatch_order, priority_rank};
use crate::state::State;
use carrel_tracker::{Issue, IssueId};

use super::Transition;

struct Candidate<'a> {
    since: Timestamp,
    issue: &'a Issue,
    is_retry: bool,
}

struct SlotUsage {
    all: usize,
    by_state: BTreeMap<String, usize>,
}

impl Transition {
    /// Takes slots for retries that are due and for eligible issues, in their order.
    pub(super) fn fill_slots(&mut self) {
        if !self.state.may_dispatch() || self.is_rate_limited() {
            return;
        }
        let mut slots = SlotUsage::taken(&self.state);
        // Without a free slot the order of the candidates does not matter.
        if slots.all < self.state.rules.max_agents {
            let mut chosen = Vec::new();
            for candidate in self.candidates() {
                if slots.take(&self.state.rules, candidate.issue) {
                    chosen.push((candidate.issue.id.clone(), candidate.is_retry));
                }
            }
            for (id, is_retry) in chosen {
                self.take_slot(&id, is_retry);
            }
        }
        self.mark_waiting();
    }

    /// Returns the candidates for slots in their order: new issues by [`dispatch_order`], retries by
    /// priority and waiting time, merged by the latter.
    fn candidates(&self) -> Vec<Candidate<'_>> {
        let due = self.state.issues.values().filter_map(|claimed| {
            let since = self.due_retry(claimed)?.due;
            Some(Candidate { since, issue: &claimed.issue, is_retry: true })
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by(Candidate::compare);
        let new = self.state.waiting.values();
        let new = new.map(|(since, issue)| Candidate { since: *since, issue, is_retry: false });
        let mut new: Vec<_> = new.collect();
        new.sort_by(|one, other| dispatch_order(one.issue, other.issue));
        let (mut due, mut new) = (due.into_iter().peekable(), new.into_iter().peekable());
        let merged = std::iter::from_fn(|| match (due.peek(), new.peek()) {
            (Some(retry), Some(first)) if first.compare(retry).is_gt() => due.next(),
            (Some(_), None) => due.next(),
            _ => new.next(),
        });
        merged.collect()
    }

    /// Takes a slot for an issue and requests its current state; the dispatch follows the result. Taking
    /// the slot first keeps two issues from being dispatched into one slot while their reads are in flight.
    fn take_slot(&mut self, id: &IssueId, is_retry: bool) {
        let query = self.request_read(id.clone());
        if let Some((_, issue)) = self.state.waiting.remove(id)
            && !is_retry
        {
            match self.state.issues.get_mut(id) {
                Some(claimed) => claimed.issue = issue,
                None => drop(self.state.issues.insert(id.clone(), ClaimedIssue::new(issue))),
            }
        }
        let retry = match self.state.issues.get(id).map(|claimed| &claimed.stage) {
            Some(Stage::Retrying(retry)) => Some(Retry { no_slot: false, ..retry.clone() }),
            _ => None,
        };
        self.set_stage(id, Stage::Checking { retry, query });
    }

    /// Marks the retries that are due and got no slot.
    fn mark_waiting(&mut self) {
        let is_new =
            |claimed: &ClaimedIssue| self.due_retry(claimed).is_some_and(|retry| !retry.no_slot);
        for id in self.ids(is_new) {
            if let Some(ClaimedIssue { stage: Stage::Retrying(retry), .. }) = self.issue_mut(&id) {
                retry.no_slot = true;
                self.changed.insert(id);
            }
        }
    }

    fn due_retry<'a>(&self, claimed: &'a ClaimedIssue) -> Option<&'a Retry> {
        let Stage::Retrying(retry) = &claimed.stage else { return None };
        (retry.due <= self.now && self.state.retries_now(claimed)).then_some(retry)
    }
}

impl Candidate<'_> {
    fn compare(&self, other: &Self) -> Ordering {
        let key = |candidate: &Self| (priority_rank(candidate.issue), candidate.since);
        key(self).cmp(&key(other)).then_with(|| dispatch_order(self.issue, other.issue))
    }
}

impl SlotUsage {
    fn taken(state: &State) -> Self {
        let mut by_state = BTreeMap::new();
        let mut all = 0;
        for claimed in state.issues.values().filter(|claimed| claimed.stage.holds_slot()) {
            all += 1;
            *by_state.entry(claimed.issue.normal_state()).or_default() += 1;
        }
        Self { all, by_state }
    }

    /// Takes a slot for an issue. Returns false if none is free for its state.
    fn take(&mut self, rules: &Rules, issue: &Issue) -> bool {
        if self.all >= rules.max_agents {
            return false;
        }
        let state = issue.normal_state();
        let most = rules.max_agents_in(&state);
        let there = self.by_state.entry(state).or_default();
        let free = *there < most;
        if free {
            *there += 1;
            self.all += 1;
        }
        free
    }
}
