//! Looking at the tracker.

use std::collections::BTreeSet;

use crate::event::{Effect, Notice};
use crate::state::{Entry, Poll, Question, Retry, Stage, Then, Why};
use carrel_tracker::{Fault, Issue, IssueId};

use super::Step;

/// Resting issues that are asked about at once.
const RESTING_AT_ONCE: usize = 50;

impl Step {
    /// Sees to what was remembered, once: whatever ran then runs no more.
    pub(super) fn begin(&mut self) {
        if self.state.poll != Poll::Fresh {
            return;
        }
        self.state.poll = Poll::Sweeping { asked: None };
        for id in self.ids(|_| true) {
            self.take_over(&id);
        }
        let all = self.ids(|entry| !matches!(entry.stage, Stage::Cleaning { .. }));
        if all.is_empty() {
            self.end_sweep();
            return;
        }
        let question = self.state.ask();
        self.state.poll = Poll::Sweeping { asked: Some(question) };
        self.effects.push(Effect::Read(question, all));
    }

    fn take_over(&mut self, id: &IssueId) {
        let Some(entry) = self.state.entries.get(id) else { return };
        let retry = Retry { due: self.now, why: Why::Interrupted, error: None, no_slot: false };
        match entry.stage.clone() {
            // It had not begun, so it is not ours.
            Stage::Checking { again: false } => self.release(id),
            Stage::Checking { again: true } | Stage::Running(_) => {
                self.put(id, Stage::Retrying(retry));
            }
            Stage::Stopping { run, then: Then::Continue | Then::Tomorrow | Then::Fail(..) } => {
                drop(run);
                self.put(id, Stage::Retrying(retry));
            }
            Stage::Stopping { run, then } => {
                // Nothing of the run is left, so what was to follow follows.
                let session = run.session;
                self.put(id, Stage::Resting);
                self.follow(id, then, session);
            }
            Stage::Cleaning { .. } => self.clean(id),
            Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting => {}
        }
    }

    /// Begins with the tracker when nothing is left to be cleaned up.
    pub(super) fn end_sweep(&mut self) {
        let cleaning = |entry: &Entry| matches!(entry.stage, Stage::Cleaning { due: None, .. });
        if self.state.poll == (Poll::Sweeping { asked: None }) && self.ids(cleaning).is_empty() {
            self.state.poll = Poll::Waiting { due: self.now };
        }
    }

    /// Asks the tracker for issues if it is time.
    pub(super) fn look_at_tracker(&mut self) {
        if matches!(self.state.poll, Poll::Waiting { due } if due <= self.now) {
            let question = self.state.ask();
            self.state.poll = Poll::Asked { question, again: false };
            self.effects.push(Effect::Poll(question));
        }
    }

    pub(super) fn polled(&mut self, question: Question, result: Result<Vec<Issue>, Fault>) {
        let Poll::Asked { question: asked, again } = self.state.poll else { return };
        if asked != question {
            return;
        }
        let pause = result.as_ref().err().and_then(|fault| fault.retry_after).unwrap_or_default();
        let wait = if again { pause } else { self.state.rules.interval.max(pause) };
        self.state.poll = Poll::Waiting { due: self.now.after(wait) };
        let failed = result.is_err();
        let found = match result {
            Ok(found) => found,
            Err(fault) => {
                self.say(Notice::TrackerFailed { doing: "poll", error: fault.message });
                Vec::new()
            }
        };
        let seen: BTreeSet<IssueId> = found.iter().map(|issue| issue.id.clone()).collect();
        for issue in &found {
            self.refresh(&issue.id.clone(), Some(issue.clone()));
        }
        let unseen = self.unseen(&seen);
        self.wanted.extend(unseen);
        if !failed {
            self.queue(found);
        }
    }

    /// Returns those of ours that the tracker did not list, since they may have moved on.
    fn unseen(&mut self, seen: &BTreeSet<IssueId>) -> Vec<IssueId> {
        let unseen = |step: &Self, wanted: fn(&Stage) -> bool| {
            let mut ids = step.ids(|entry| wanted(&entry.stage));
            ids.retain(|id| !seen.contains(id));
            ids
        };
        let mut ids =
            unseen(self, |stage| stage.is_claimed() && !matches!(stage, Stage::Checking { .. }));
        let resting = unseen(self, |stage| *stage == Stage::Resting);
        let after = self.state.rested.take();
        let next = resting.iter().position(|id| Some(id) > after.as_ref()).unwrap_or_default();
        let turn = resting[next..].iter().take(RESTING_AT_ONCE);
        ids.extend(turn.cloned());
        self.state.rested = ids.last().cloned();
        ids
    }

    /// Notes which issues could be begun, and keeps in mind since when they could.
    fn queue(&mut self, found: Vec<Issue>) {
        let before = std::mem::take(&mut self.state.waiting);
        for issue in found {
            let known = self.state.entries.get(&issue.id);
            let free = known.is_none_or(|entry| entry.stage == Stage::Resting);
            if free && self.state.rules.is_eligible(&issue) {
                let since = before.get(&issue.id).map_or(self.now, |(since, _)| *since);
                self.state.waiting.insert(issue.id.clone(), (since, issue));
            }
        }
    }
}
