//! What follows from where issues stand now.

use std::collections::BTreeMap;

use crate::event::{Effect, Notice};
use crate::rules::Standing;
use crate::state::{BetweenTurns, Poll, Question, Retry, Stage, Then, Why};
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
        match result {
            Ok(found) => {
                let mut found: BTreeMap<_, _> =
                    found.into_iter().map(|issue| (issue.id.clone(), issue)).collect();
                for id in asked {
                    self.refresh(id, found.remove(id));
                }
            }
            Err(fault) => {
                for id in asked {
                    self.unreadable(id, &fault);
                }
                self.say(Notice::TrackerFailed { doing: "read", error: fault.message });
            }
        }
        if sweep {
            self.state.poll = Poll::Sweeping { asked: None };
            self.end_sweep();
        }
    }

    /// Does what an issue's standing asks for. One that is not there is not ours to see any more.
    pub(super) fn refresh(&mut self, id: &IssueId, issue: Option<Issue>) {
        let Some(entry) = self.state.entries.get(id) else { return };
        let standing =
            issue.as_ref().map_or(Standing::Elsewhere, |issue| self.state.rules.standing(issue));
        let stage = entry.stage.clone();
        if let Some(issue) = issue
            && issue != entry.issue
        {
            if let Some(entry) = self.entry(id) {
                entry.issue = issue;
            }
            self.changed.insert(id.clone());
        }
        match (stage, standing) {
            (Stage::Running(_), Standing::Terminal) => self.stop(id, Then::Clean, "it is finished"),
            (Stage::Running(_), Standing::Elsewhere) => {
                self.stop(id, Then::Release, "it is not to be worked on any more");
            }
            (Stage::Running(run), Standing::Active) if run.between_turns.is_some() => {
                self.next_turn(id);
            }
            (Stage::Stopping { run, .. }, Standing::Terminal) => {
                self.put(id, Stage::Stopping { run, then: Then::Clean });
            }
            (Stage::Checking { again }, Standing::Active) => self.checked(id, again),
            (
                Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting,
                Standing::Terminal,
            ) => self.clean(id),
            (
                Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_),
                Standing::Elsewhere,
            ) => self.release(id),
            (
                Stage::Running(_)
                | Stage::Stopping { .. }
                | Stage::Retrying(_)
                | Stage::Blocked(_)
                | Stage::Resting
                | Stage::Cleaning { .. },
                _,
            ) => {}
        }
    }

    /// Starts an agent for an issue that was read once more, unless there is no place for it now.
    fn checked(&mut self, id: &IssueId, again: bool) {
        let Some(entry) = self.state.entries.get(id) else { return };
        let state = entry.issue.normal_state();
        // It has a place of its own among those that are counted.
        let there =
            self.ids(|entry| entry.stage.has_place() && entry.issue.normal_state() == state);
        if there.len() <= self.state.rules.agents_in(&state) {
            self.start(id);
        } else if again {
            let why = Why::Continuation;
            let retry = Retry { due: self.now, why, error: None, no_slot: true };
            self.put(id, Stage::Retrying(retry));
        } else {
            self.skip(id, "there is no place for its new state");
        }
    }

    /// Gives an issue back that was to be begun.
    fn skip(&mut self, id: &IssueId, why: &str) {
        self.say(Notice::Skipped { issue: id.clone(), why: why.to_owned() });
        self.release(id);
    }

    fn unreadable(&mut self, id: &IssueId, fault: &Fault) {
        let Some(entry) = self.state.entries.get(id) else { return };
        match entry.stage.clone() {
            Stage::Checking { again: false } => self.skip(id, "it could not be read once more"),
            Stage::Checking { again: true } => {
                self.fail(id, Why::Failure, format!("retry poll failed: {}", fault.message));
            }
            Stage::Running(mut run) => {
                let Some(between) = run.between_turns else { return };
                let failures = between.failures + 1;
                if failures > MOST_FAILURES {
                    self.effects.push(Effect::Finish(run.id));
                    run.between_turns = None;
                } else {
                    let wait = crate::backoff::before(failures, id, self.state.rules.longest_wait);
                    let due = Some(self.now.after(wait.max(fault.retry_after.unwrap_or_default())));
                    run.between_turns = Some(BetweenTurns { failures, due });
                }
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
