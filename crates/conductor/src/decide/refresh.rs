//! What follows from where issues stand now.

use std::collections::BTreeMap;

use crate::backoff;
use crate::entry::{BetweenTurns, Entry, Retry, Stage, Then, Why};
use crate::notice::Notice;
use crate::rules::Standing;
use crate::state::{Mode, Poll, Question};
use crate::text::{MAX_ERROR, bounded};
use carrel_tracker::{Fault, Issue, IssueId};

use super::Step;

/// How often an issue may be unreadable between two turns before the run ends.
const MOST_FAILURES: u32 = 5;

impl Step {
    pub(super) fn read(
        &mut self,
        question: Question,
        asked: &[IssueId],
        result: Result<Vec<Issue>, Fault>,
    ) {
        let sweep = self.state.poll == (Poll::Sweeping { asked: Some(question) });
        let went_well = result.is_ok();
        match result {
            Ok(found) => {
                let mut found: BTreeMap<_, _> =
                    found.into_iter().map(|issue| (issue.id.clone(), issue)).collect();
                for id in asked {
                    self.refresh(question, id, found.remove(id));
                }
            }
            Err(fault) => {
                self.hold_tracker(&fault);
                for id in asked {
                    self.unreadable(question, id, &fault);
                }
                let error = bounded(fault.message, MAX_ERROR);
                self.say(Notice::TrackerFailed { doing: "read", error });
            }
        }
        if sweep {
            if went_well {
                self.clean_what_was_left();
            }
            self.state.poll = Poll::Sweeping { asked: None };
            self.end_sweep();
        }
    }

    /// Does what an issue's standing asks for. One that is not there is not ours to see any more.
    pub(super) fn refresh(&mut self, question: Question, id: &IssueId, issue: Option<Issue>) {
        let Some(entry) = self.state.entries.get_mut(id) else { return };
        if question < entry.read {
            return;
        }
        entry.read = question;
        let visible = issue.is_some();
        let standing =
            issue.as_ref().map_or(Standing::Elsewhere, |issue| self.state.rules.standing(issue));
        if let Some(issue) = issue
            && issue != entry.issue
        {
            entry.issue = issue;
            self.changed.insert(id.clone());
        }
        let stage = entry.stage.clone();
        match (stage, standing) {
            (Stage::Running(_), Standing::Terminal) => self.stop(id, Then::Clean, "it is finished"),
            (Stage::Running(_), Standing::Elsewhere) => {
                self.stop(id, Then::Release, "it is not to be worked on any more");
            }
            (Stage::Running(run), Standing::Active) => {
                if run.between_turns.is_some_and(|between| between.asked <= question) {
                    self.next_turn(id);
                }
            }
            (Stage::Stopping { run, .. }, Standing::Terminal) => {
                self.put(id, Stage::Stopping { run, then: Then::Clean });
            }
            // It was finished and is so no more: what is there stays there.
            (Stage::Stopping { run, then: Then::Clean }, _) if visible => {
                self.put(id, Stage::Stopping { run, then: Then::Release });
            }
            (Stage::Cleaning { due: Some(_), .. }, Standing::Active | Standing::Elsewhere)
                if visible =>
            {
                self.release(id);
            }
            (Stage::Checking { asked, .. }, _) if question < asked => {}
            (Stage::Checking { retry, .. }, Standing::Active) => self.checked(id, retry),
            (Stage::Checking { retry: None, .. }, Standing::Elsewhere) => {
                self.skip(id, "it is not to be worked on any more");
            }
            (
                Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting,
                Standing::Terminal,
            ) => self.clean(id),
            (
                Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_),
                Standing::Elsewhere,
            ) => self.release(id),
            (
                Stage::Stopping { .. }
                | Stage::Retrying(_)
                | Stage::Blocked(_)
                | Stage::Resting
                | Stage::Cleaning { .. },
                _,
            ) => {}
        }
    }

    /// Starts an agent for an issue that was read once more, unless it may not start now after all.
    fn checked(&mut self, id: &IssueId, retry: Option<Retry>) {
        let Some(entry) = self.state.entries.get(id) else { return };
        let begins = self.state.ledger.mode == Mode::Working
            && self.state.broken.is_none()
            && !self.is_held();
        let state = entry.issue.normal_state();
        let has_place = |entry: &Entry| entry.stage.has_place();
        let there = self.ids(|entry| has_place(entry) && entry.issue.normal_state() == state).len();
        // It has a place of its own among those that are counted.
        let fits = there <= self.state.rules.agents_in(&state)
            && self.state.agents() <= self.state.rules.agents;
        if begins && fits {
            return self.start(id);
        }
        match retry {
            Some(retry) => self.put(id, Stage::Retrying(Retry { no_slot: !fits, ..retry })),
            None => self.wait_again(id),
        }
    }

    /// Puts an issue back among those that could be begun.
    fn wait_again(&mut self, id: &IssueId) {
        let Some(entry) = self.state.entries.get(id) else { return };
        let issue = entry.issue.clone();
        self.let_go(id);
        self.state.waiting.insert(id.clone(), (self.now, issue));
    }

    /// Gives an issue back that was to be begun.
    fn skip(&mut self, id: &IssueId, why: &str) {
        self.say(Notice::Skipped { issue: self.subject(id), why: why.to_owned() });
        self.release(id);
    }

    fn unreadable(&mut self, question: Question, id: &IssueId, fault: &Fault) {
        let Some(entry) = self.state.entries.get(id) else { return };
        match entry.stage.clone() {
            Stage::Checking { asked, .. } if question < asked => {}
            Stage::Checking { retry: None, .. } => {
                self.skip(id, "it could not be read once more");
            }
            Stage::Checking { retry: Some(_), .. } => {
                self.fail(id, Why::Failure, format!("retry poll failed: {}", fault.message));
            }
            Stage::Running(mut run) => {
                let Some(between) = run.between_turns.filter(|there| there.asked == question)
                else {
                    return;
                };
                let failures = between.failures + 1;
                if failures > MOST_FAILURES {
                    return self.finish_run(id);
                }
                let wait = backoff::before(failures, id, self.state.rules.longest_wait);
                let hold = self.state.ledger.hold.tracker.unwrap_or(self.now);
                let due = Some(self.now.after(wait).max(hold));
                run.between_turns = Some(BetweenTurns { failures, due, ..between });
                self.put(id, Stage::Running(run));
            }
            Stage::Stopping { .. }
            | Stage::Retrying(_)
            | Stage::Blocked(_)
            | Stage::Resting
            | Stage::Cleaning { .. } => {}
        }
    }
}
