//! Who gets a place for an agent.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use carrel_domain::Timestamp;

use crate::claimed_issue::{ClaimedIssue, Retry, Stage};
use crate::rules::{Rules, dispatch_order, priority_rank};
use crate::state::{Mode, State};
use carrel_tracker::{Issue, IssueId};

use super::Transition;

/// An issue that wants a place.
struct Candidate<'a> {
    /// Since when it could be worked on.
    since: Timestamp,
    issue: &'a Issue,
    /// It is ours already.
    again: bool,
}

/// Places that are taken.
struct SlotUsage {
    all: usize,
    by_state: BTreeMap<String, usize>,
}

impl Transition {
    /// Gives free places to those that wait. Waiting is no failure.
    pub(super) fn fill_places(&mut self) {
        let begins = self.state.ledger.mode == Mode::Working && self.state.workflow_error.is_none();
        if !begins || self.state.is_sweeping() || self.is_held() {
            return;
        }
        let mut places = SlotUsage::taken(&self.state);
        if places.all >= self.state.rules.max_agents {
            return self.all_have_to_wait();
        }
        let mut chosen = Vec::new();
        let mut left_over = Vec::new();
        for applicant in self.applicants() {
            let fits = places.take(&self.state.rules, applicant.issue);
            let list = if fits { &mut chosen } else { &mut left_over };
            list.push((applicant.issue.id.clone(), applicant.again));
        }
        for (id, again) in chosen {
            self.take(&id, again);
        }
        for (id, _) in left_over.into_iter().filter(|(_, again)| *again) {
            self.has_to_wait(&id);
        }
    }

    /// Returns who wants a place, in order. New issues stand in theirs; those that are taken up again, by
    /// urgency and then by how long they have waited. Of the two that are first the same decides, so that
    /// issues that are continued for ever leave room for others.
    fn applicants(&self) -> Vec<Candidate<'_>> {
        let due = self.state.issues.values().filter_map(|entry| match &entry.stage {
            Stage::Retrying(retry) if retry.due <= self.now && self.state.takes_up(entry) => {
                Some(Candidate { since: retry.due, issue: &entry.issue, again: true })
            }
            _ => None,
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by(Candidate::compare);
        let new = self.state.waiting.values();
        let new = new.map(|(since, issue)| Candidate { since: *since, issue, again: false });
        let mut new: Vec<_> = new.collect();
        new.sort_by(|one, other| dispatch_order(one.issue, other.issue));
        let (mut due, mut new) = (due.into_iter().peekable(), new.into_iter().peekable());
        let merged = std::iter::from_fn(|| match (due.peek(), new.peek()) {
            (Some(again), Some(first)) if first.compare(again).is_gt() => due.next(),
            (Some(_), None) => due.next(),
            _ => new.next(),
        });
        merged.collect()
    }

    /// Takes a place for an issue, which is read once more before its agent starts.
    fn take(&mut self, id: &IssueId, again: bool) {
        let query = self.want(id.clone());
        if let Some((_, issue)) = self.state.waiting.remove(id)
            && !again
        {
            match self.state.issues.get_mut(id) {
                Some(entry) => entry.issue = issue,
                None => drop(self.state.issues.insert(id.clone(), ClaimedIssue::new(issue))),
            }
        }
        let retry = match self.state.issues.get(id).map(|entry| &entry.stage) {
            Some(Stage::Retrying(retry)) => Some(Retry { no_slot: false, ..retry.clone() }),
            _ => None,
        };
        self.put(id, Stage::Checking { retry, query });
    }

    /// Nobody can be begun, so that who would be first does not matter.
    fn all_have_to_wait(&mut self) {
        let due = self.ids(|entry| match &entry.stage {
            Stage::Retrying(retry) => {
                !retry.no_slot && retry.due <= self.now && self.state.takes_up(entry)
            }
            _ => false,
        });
        for id in due {
            self.has_to_wait(&id);
        }
    }

    fn has_to_wait(&mut self, id: &IssueId) {
        let Some(ClaimedIssue { stage: Stage::Retrying(retry), .. }) = self.state.issues.get(id)
        else {
            return;
        };
        if !retry.no_slot {
            let retry = Retry { no_slot: true, ..retry.clone() };
            self.put(id, Stage::Retrying(retry));
        }
    }
}

impl Candidate<'_> {
    fn compare(&self, other: &Self) -> Ordering {
        let key = |applicant: &Self| (priority_rank(applicant.issue), applicant.since);
        key(self).cmp(&key(other)).then_with(|| dispatch_order(self.issue, other.issue))
    }
}

impl SlotUsage {
    fn taken(state: &State) -> Self {
        let mut by_state = BTreeMap::new();
        let mut all = 0;
        for entry in state.issues.values().filter(|entry| entry.stage.holds_slot()) {
            all += 1;
            *by_state.entry(entry.issue.normal_state()).or_default() += 1;
        }
        Self { all, by_state }
    }

    /// Takes one for an issue, if there is one.
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
