//! Reconciliation of claimed issues with the tracker.
//!
//! Every issue that a poll or a read returns passes through [`Transition::reconcile`], which compares its
//! [`Disposition`] with its stage: an issue that became terminal loses its run and its workspace, an
//! inactive or invisible one its run, and an active one that was checked for it is dispatched or gets its
//! next turn. Results may arrive in another order than their queries were sent; an issue keeps the
//! greatest query that returned it and ignores older ones.

use std::collections::{BTreeMap, BTreeSet};

use crate::backoff;
use crate::claimed_issue::{BetweenTurns, ClaimedIssue, FollowUp, Retry, RetryReason, Stage};
use crate::notice::Notice;
use crate::rules::Disposition;
use crate::state::{Mode, PollState, QueryId};
use crate::truncate::{MAX_ERROR, truncated};
use carrel_tracker::{Issue, IssueId, TrackerError};

use super::Transition;

/// Returns true if an issue changed in the tracker. Only values that every query of a tracker returns alike count.
fn is_changed(before: &Issue, after: &Issue) -> bool {
    let labels = |issue: &Issue| issue.labels.iter().cloned().collect::<BTreeSet<_>>();
    before.normal_state() != after.normal_state()
        || labels(before) != labels(after)
        || before.updated_at != after.updated_at
}

/// Failed reads between two turns after which the run finishes. With the usual back-off that is about
/// five minutes without a tracker.
const MAX_READ_FAILURES: u32 = 5;

impl Transition {
    pub(super) fn issues_read(
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
                    self.reconcile(query, id, found.remove(id));
                }
            }
            Err(fault) => {
                self.rate_limit_tracker(&fault);
                for id in ids {
                    self.read_failed(query, id, &fault);
                }
                let error = truncated(fault.message, MAX_ERROR);
                self.notify(Notice::TrackerFailed { doing: "read", error });
            }
        }
        if sweep {
            if went_well {
                self.resume_cleanups();
            }
            self.state.poll = PollState::StartupCleanup { query: None };
            self.end_startup_cleanup();
        }
    }

    /// Applies the disposition of an issue to its stage. `None` is an issue that is no longer visible; it
    /// counts as inactive, and its workspace is kept.
    pub(super) fn reconcile(&mut self, query: QueryId, id: &IssueId, issue: Option<Issue>) {
        let Some(claimed) = self.state.issues.get_mut(id) else { return };
        if query < claimed.read {
            return;
        }
        claimed.read = query;
        let Some(issue) = issue else {
            return self.apply_disposition(query, id, Disposition::Inactive, false);
        };
        let disposition = self.state.rules.classify(&issue);
        if issue != claimed.issue {
            if is_changed(&claimed.issue, &issue) {
                claimed.note_issue_change();
            }
            claimed.issue = issue;
            self.changed.insert(id.clone());
        }
        self.apply_disposition(query, id, disposition, true);
    }

    fn apply_disposition(
        &mut self,
        query: QueryId,
        id: &IssueId,
        disposition: Disposition,
        visible: bool,
    ) {
        use Disposition::{Active, Inactive, Terminal};
        let Some(claimed) = self.state.issues.get(id) else { return };
        match (claimed.stage.clone(), disposition) {
            (Stage::Running(_), Terminal) => self.stop(id, FollowUp::Clean, "it is finished"),
            (Stage::Running(_), Inactive) => {
                self.stop(id, FollowUp::Release, "it is no longer active");
            }
            (Stage::Running(run), Active) => {
                if run.between_turns.is_some_and(|between| between.query <= query) {
                    self.next_turn(id);
                }
            }
            (Stage::Stopping { run, .. }, Terminal) => {
                self.set_stage(id, Stage::Stopping { run, then: FollowUp::Clean });
            }
            // It was reopened while its run ended: the workspace stays.
            (Stage::Stopping { run, then: FollowUp::Clean }, _) if visible => {
                self.set_stage(id, Stage::Stopping { run, then: FollowUp::Release });
            }
            (Stage::Cleaning { due: Some(_), .. }, Active | Inactive) if visible => {
                self.release(id);
            }
            (Stage::Checking { query: expected, .. }, _) if query < expected => {}
            (Stage::Checking { retry, .. }, Active) => self.dispatch_checked(id, retry),
            (Stage::Checking { retry: None, .. }, Inactive) => {
                self.skip(id, "it is no longer active");
            }
            (
                Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting,
                Terminal,
            ) => self.clean(id),
            (Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_), Inactive) => {
                self.release(id);
            }
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

    /// Dispatches an issue that was read for it, unless the mode, a rate limit or the number of slots
    /// changed while the read was in flight. Then the issue goes back to where it came from.
    fn dispatch_checked(&mut self, id: &IssueId, retry: Option<Retry>) {
        let Some(claimed) = self.state.issues.get(id) else { return };
        let begins = self.state.ledger.mode == Mode::Working
            && self.state.workflow_error.is_none()
            && !self.is_rate_limited();
        let state = claimed.issue.normal_state();
        let holds_slot = |claimed: &ClaimedIssue| claimed.stage.holds_slot();
        let there =
            self.ids(|claimed| holds_slot(claimed) && claimed.issue.normal_state() == state).len();
        // The count includes the slot of the issue itself.
        let fits = there <= self.state.rules.max_agents_in(&state)
            && self.state.agents() <= self.state.rules.max_agents;
        if begins && fits {
            return self.dispatch(id);
        }
        match retry {
            Some(retry) => self.set_stage(id, Stage::Retrying(Retry { no_slot: !fits, ..retry })),
            None => self.requeue(id),
        }
    }

    /// Puts an issue back into the queue of eligible ones, without its claim. Its waiting time starts anew.
    fn requeue(&mut self, id: &IssueId) {
        let Some(claimed) = self.state.issues.get(id) else { return };
        let issue = claimed.issue.clone();
        self.release_claim(id);
        self.state.waiting.insert(id.clone(), (self.now, issue));
    }

    /// Releases an issue that was checked for its first dispatch.
    fn skip(&mut self, id: &IssueId, why: &str) {
        self.notify(Notice::Skipped { issue: self.issue_ref(id), why: why.to_owned() });
        self.release(id);
    }

    fn read_failed(&mut self, query: QueryId, id: &IssueId, fault: &TrackerError) {
        let Some(claimed) = self.state.issues.get(id) else { return };
        match claimed.stage.clone() {
            Stage::Checking { query: expected, .. } if query < expected => {}
            Stage::Checking { retry: None, .. } => {
                self.skip(id, "it could not be read before its dispatch");
            }
            Stage::Checking { retry: Some(_), .. } => {
                let error = format!("retry poll failed: {}", fault.message);
                self.fail(id, RetryReason::Failure, error);
            }
            Stage::Running(mut run) => {
                let Some(between) = run.between_turns.filter(|there| there.query == query) else {
                    return;
                };
                let failures = between.failures + 1;
                if failures > MAX_READ_FAILURES {
                    return self.finish_run(id);
                }
                let wait = backoff::before(failures, id, self.state.rules.max_backoff);
                let hold = self.state.ledger.rate_limited.tracker.unwrap_or(self.now);
                let due = Some(self.now.after(wait).max(hold));
                run.between_turns = Some(BetweenTurns { failures, due, ..between });
                self.set_stage(id, Stage::Running(run));
            }
            Stage::Stopping { .. }
            | Stage::Retrying(_)
            | Stage::Blocked(_)
            | Stage::Resting
            | Stage::Cleaning { .. } => {}
        }
    }
}
