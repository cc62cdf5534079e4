//! What follows from where issues stand now.

use std::collections::BTreeMap;

use crate::backoff;
use crate::claimed_issue::{BetweenTurns, ClaimedIssue, FollowUp, Retry, RetryReason, Stage};
use crate::notice::Notice;
use crate::rules::Disposition;
use crate::state::{Mode, PollState, QueryId};
use crate::truncate::{MAX_ERROR, truncated};
use carrel_tracker::{Issue, IssueId, TrackerError};

use super::Transition;

/// How often an issue may be unreadable between two turns before the run ends.
const MOST_FAILURES: u32 = 5;

impl Transition {
    pub(super) fn read(
        &mut self,
        query: QueryId,
        ids: &[IssueId],
        result: Result<Vec<Issue>, TrackerError>,
    ) {
        let sweep = self.state.poll == (PollState::StartupCleanup { query: Some(query) });
        let went_well = result.is_ok();
        match result {
            Ok(found) => {
                let mut found: BTreeMap<_, _> =
                    found.into_iter().map(|issue| (issue.id.clone(), issue)).collect();
                for id in ids {
                    self.refresh(query, id, found.remove(id));
                }
            }
            Err(fault) => {
                self.hold_tracker(&fault);
                for id in ids {
                    self.unreadable(query, id, &fault);
                }
                let error = truncated(fault.message, MAX_ERROR);
                self.say(Notice::TrackerFailed { doing: "read", error });
            }
        }
        if sweep {
            if went_well {
                self.clean_what_was_left();
            }
            self.state.poll = PollState::StartupCleanup { query: None };
            self.end_sweep();
        }
    }

    /// Does what an issue's standing asks for. One that is not there is not ours to see any more.
    pub(super) fn refresh(&mut self, query: QueryId, id: &IssueId, issue: Option<Issue>) {
        let Some(entry) = self.state.issues.get_mut(id) else { return };
        if query < entry.read {
            return;
        }
        entry.read = query;
        let visible = issue.is_some();
        let disposition =
            issue.as_ref().map_or(Disposition::Inactive, |issue| self.state.rules.classify(issue));
        if let Some(issue) = issue
            && issue != entry.issue
        {
            entry.issue = issue;
            self.changed.insert(id.clone());
        }
        let stage = entry.stage.clone();
        match (stage, disposition) {
            (Stage::Running(_), Disposition::Terminal) => {
                self.stop(id, FollowUp::Clean, "it is finished")
            }
            (Stage::Running(_), Disposition::Inactive) => {
                self.stop(id, FollowUp::Release, "it is not to be worked on any more");
            }
            (Stage::Running(run), Disposition::Active) => {
                if run.between_turns.is_some_and(|between| between.query <= query) {
                    self.next_turn(id);
                }
            }
            (Stage::Stopping { run, .. }, Disposition::Terminal) => {
                self.put(id, Stage::Stopping { run, then: FollowUp::Clean });
            }
            // It was finished and is so no more: what is there stays there.
            (Stage::Stopping { run, then: FollowUp::Clean }, _) if visible => {
                self.put(id, Stage::Stopping { run, then: FollowUp::Release });
            }
            (Stage::Cleaning { due: Some(_), .. }, Disposition::Active | Disposition::Inactive)
                if visible =>
            {
                self.release(id);
            }
            (Stage::Checking { query: expected, .. }, _) if query < expected => {}
            (Stage::Checking { retry, .. }, Disposition::Active) => self.checked(id, retry),
            (Stage::Checking { retry: None, .. }, Disposition::Inactive) => {
                self.skip(id, "it is not to be worked on any more");
            }
            (
                Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting,
                Disposition::Terminal,
            ) => self.clean(id),
            (
                Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_),
                Disposition::Inactive,
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
        let Some(entry) = self.state.issues.get(id) else { return };
        let begins = self.state.ledger.mode == Mode::Working
            && self.state.workflow_error.is_none()
            && !self.is_held();
        let state = entry.issue.normal_state();
        let holds_slot = |entry: &ClaimedIssue| entry.stage.holds_slot();
        let there =
            self.ids(|entry| holds_slot(entry) && entry.issue.normal_state() == state).len();
        // It has a place of its own among those that are counted.
        let fits = there <= self.state.rules.max_agents_in(&state)
            && self.state.agents() <= self.state.rules.max_agents;
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
        let Some(entry) = self.state.issues.get(id) else { return };
        let issue = entry.issue.clone();
        self.let_go(id);
        self.state.waiting.insert(id.clone(), (self.now, issue));
    }

    /// Gives an issue back that was to be begun.
    fn skip(&mut self, id: &IssueId, why: &str) {
        self.say(Notice::Skipped { issue: self.issue_ref(id), why: why.to_owned() });
        self.release(id);
    }

    fn unreadable(&mut self, query: QueryId, id: &IssueId, fault: &TrackerError) {
        let Some(entry) = self.state.issues.get(id) else { return };
        match entry.stage.clone() {
            Stage::Checking { query: expected, .. } if query < expected => {}
            Stage::Checking { retry: None, .. } => {
                self.skip(id, "it could not be read once more");
            }
            Stage::Checking { retry: Some(_), .. } => {
                self.fail(
                    id,
                    RetryReason::Failure,
                    format!("retry poll failed: {}", fault.message),
                );
            }
            Stage::Running(mut run) => {
                let Some(between) = run.between_turns.filter(|there| there.query == query) else {
                    return;
                };
                let failures = between.failures + 1;
                if failures > MOST_FAILURES {
                    return self.finish_run(id);
                }
                let wait = backoff::before(failures, id, self.state.rules.max_backoff);
                let hold = self.state.ledger.rate_limited.tracker.unwrap_or(self.now);
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
