//! Who gets a place for an agent.

use carrel_domain::Timestamp;

use crate::rules::{order, urgency};
use crate::state::{Entry, Mode, Retry, Stage};
use carrel_tracker::{Issue, IssueId};

use super::Step;

/// An issue that wants a place.
struct Applicant {
    /// Since when it could be worked on.
    since: Timestamp,
    issue: Issue,
    /// It is ours already.
    again: bool,
}

impl Step {
    /// Gives free places to those that wait: by urgency, and then to those that have waited longest, so
    /// that issues that are continued for ever leave room for others. Waiting is no failure.
    pub(super) fn fill_places(&mut self) {
        if self.state.mode != Mode::Working || self.is_sweeping() {
            return;
        }
        for Applicant { issue, again, .. } in self.applicants() {
            let id = issue.id.clone();
            if self.state.has_slot(&issue.normal_state()) {
                self.state.waiting.remove(&id);
                self.take(&issue, again);
            } else if again {
                self.has_to_wait(&id);
            }
        }
    }

    fn applicants(&self) -> Vec<Applicant> {
        let due = self.state.entries.values().filter_map(|entry| match &entry.stage {
            Stage::Retrying(retry) if retry.due <= self.now => {
                Some(Applicant { since: retry.due, issue: entry.issue.clone(), again: true })
            }
            _ => None,
        });
        let waiting = self.state.waiting.values().map(|(since, issue)| Applicant {
            since: *since,
            issue: issue.clone(),
            again: false,
        });
        let mut all: Vec<_> = due.chain(waiting).collect();
        all.sort_by(|one, other| {
            let key = |applicant: &Applicant| (urgency(&applicant.issue), applicant.since);
            key(one).cmp(&key(other)).then_with(|| order(&one.issue, &other.issue))
        });
        all
    }

    /// Takes a place for an issue, which is read once more before its agent starts.
    fn take(&mut self, issue: &Issue, again: bool) {
        let id = issue.id.clone();
        if !again {
            let entry = self.state.entries.entry(id.clone());
            let entry = entry.or_insert_with(|| Entry::new(issue.clone()));
            entry.issue = issue.clone();
        }
        self.put(&id, Stage::Checking { again });
        self.wanted.push(id);
    }

    fn has_to_wait(&mut self, id: &IssueId) {
        let Some(Entry { stage: Stage::Retrying(retry), .. }) = self.state.entries.get(id) else {
            return;
        };
        if !retry.no_slot {
            let retry = Retry { no_slot: true, ..retry.clone() };
            self.put(id, Stage::Retrying(retry));
        }
    }
}
