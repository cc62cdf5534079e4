//! Scheduling of further runs: continuation, back-off after failures, blocks.
//!
//! A successful run is followed by another after [`backoff::CONTINUATION`] as long as the issue stays
//! active. A failed one is retried after [`backoff::before`], which doubles with each consecutive failure
//! up to the configured maximum; a success resets the count. Rate limits of the provider have a back-off
//! of their own in `agent_run`, so that they do not count as failures of the issue.

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
    /// Performs the transition that was chosen when the run was stopped or ended.
    pub(super) fn follow_up(&mut self, id: &IssueId, then: FollowUp, session: Option<String>) {
        match then {
            FollowUp::Release => self.release(id),
            FollowUp::Clean => self.clean(id),
            FollowUp::Fail(why, error) => self.fail(id, why, error),
            FollowUp::Tomorrow => self.retry_tomorrow(id),
            FollowUp::Block(reason) => self.block(id, reason, session),
            FollowUp::Continue => {
                let drained = self.state.ledger.mode == Mode::Draining;
                if let Some(claimed) = self.issue_mut(id) {
                    claimed.attempt = 1;
                    claimed.rate_limited_runs = 0;
                    // Draining cuts a conversation short, and the next run resumes it. Otherwise the
                    // conversation has used its turns, and the next run starts a fresh one.
                    claimed.thread = claimed.thread.take().filter(|_| drained);
                }
                self.retry(id, RetryReason::Continuation, backoff::CONTINUATION, None);
            }
        }
    }

    /// Counts a failure and schedules a retry with back-off, in a new conversation.
    pub(super) fn fail(&mut self, id: &IssueId, why: RetryReason, error: String) {
        let Some(claimed) = self.issue_mut(id) else { return };
        claimed.attempt = claimed.attempt.saturating_add(1);
        claimed.thread = None;
        let attempt = claimed.attempt;
        let wait = backoff::before(attempt, id, self.state.rules.max_backoff);
        self.retry(id, why, wait, Some(error));
    }

    pub(super) fn retry_tomorrow(&mut self, id: &IssueId) {
        let wait = self.now.age(DailySpend::next(self.now));
        let error = "today's budget is exhausted".to_owned();
        self.retry(id, RetryReason::DayBudget, wait, Some(error));
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
        self.set_stage(id, Stage::Retrying(retry));
        let attempt = self.state.issues.get(id).map_or(0, |claimed| claimed.attempt);
        let delay_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let issue = self.issue_ref(id);
        self.notify(Notice::WillRetry { issue, attempt, why, delay_ms, error });
    }

    pub(super) fn block(&mut self, id: &IssueId, reason: BlockReason, session: Option<String>) {
        let reason = reason.map_detail(|text| truncated(text, MAX_ERROR));
        let block = Block { reason: reason.clone(), since: self.now, session };
        self.set_stage(id, Stage::Blocked(block));
        self.notify(Notice::Blocked { issue: self.issue_ref(id), reason });
    }
}
