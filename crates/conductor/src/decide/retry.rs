//! What becomes of an issue when its agent is gone.

use std::time::Duration;

use crate::backoff;
use crate::claimed_issue::{Block, BlockReason, FollowUp, Retry, RetryReason, Stage};
use crate::notice::Notice;
use crate::spend::DailySpend;
use crate::state::Mode;
use crate::truncate::{MAX_ERROR, truncated};
use carrel_tracker::IssueId;

use super::Transition;

impl Transition {
    /// Does what was to be done when an agent is gone.
    pub(super) fn follow(&mut self, id: &IssueId, then: FollowUp, session: Option<String>) {
        match then {
            FollowUp::Release => self.release(id),
            FollowUp::Clean => self.clean(id),
            FollowUp::Fail(why, error) => self.fail(id, why, error),
            FollowUp::Tomorrow => self.wait_for_tomorrow(id),
            FollowUp::Block(reason) => self.block(id, reason, session),
            FollowUp::Continue => {
                let drained = self.state.ledger.mode == Mode::Draining;
                if let Some(entry) = self.entry(id) {
                    entry.attempt = 1;
                    entry.rate_limited_runs = 0;
                    // A conversation that was broken off goes on; one that is at its end does not.
                    entry.thread = entry.thread.take().filter(|_| drained);
                }
                self.retry(id, RetryReason::Continuation, backoff::CONTINUATION, None);
            }
        }
    }

    /// Counts a failure, after which another attempt follows later each time.
    pub(super) fn fail(&mut self, id: &IssueId, why: RetryReason, error: String) {
        let Some(entry) = self.entry(id) else { return };
        entry.attempt = entry.attempt.saturating_add(1);
        entry.thread = None;
        let attempt = entry.attempt;
        let wait = backoff::before(attempt, id, self.state.rules.max_backoff);
        self.retry(id, why, wait, Some(error));
    }

    pub(super) fn wait_for_tomorrow(&mut self, id: &IssueId) {
        let wait = self.now.age(DailySpend::next(self.now));
        self.retry(id, RetryReason::DayBudget, wait, Some("today's budget is used up".to_owned()));
    }

    pub(super) fn retry(
        &mut self,
        id: &IssueId,
        why: RetryReason,
        wait: Duration,
        error: Option<String>,
    ) {
        let error = error.map(|error| truncated(error, MAX_ERROR));
        let due = self.now.after(wait);
        let retry = Retry { due, reason: why, error: error.clone(), no_slot: false };
        self.put(id, Stage::Retrying(retry));
        let attempt = self.state.issues.get(id).map_or(0, |entry| entry.attempt);
        let delay_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let issue = self.issue_ref(id);
        self.say(Notice::WillRetry { issue, attempt, why, delay_ms, error });
    }

    pub(super) fn block(&mut self, id: &IssueId, reason: BlockReason, session: Option<String>) {
        let reason = reason.truncated(MAX_ERROR);
        let block = Block { reason: reason.clone(), since: self.now, session };
        self.put(id, Stage::Blocked(block));
        self.say(Notice::Blocked { issue: self.issue_ref(id), reason });
    }
}
