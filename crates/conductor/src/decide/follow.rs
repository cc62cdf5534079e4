//! What becomes of an issue when its agent is gone.

use std::time::Duration;

use crate::backoff;
use crate::entry::{Block, Reason, Retry, Stage, Then, Why};
use crate::notice::Notice;
use crate::spend::Day;
use crate::state::Mode;
use crate::text::{MAX_ERROR, bounded};
use carrel_tracker::IssueId;

use super::Step;

impl Step {
    /// Does what was to be done when an agent is gone.
    pub(super) fn follow(&mut self, id: &IssueId, then: Then, session: Option<String>) {
        match then {
            Then::Release => self.release(id),
            Then::Clean => self.clean(id),
            Then::Fail(why, error) => self.fail(id, why, error),
            Then::Tomorrow => self.wait_for_tomorrow(id),
            Then::Block(reason) => self.block(id, reason, session),
            Then::Continue => {
                let drained = self.state.ledger.mode == Mode::Draining;
                if let Some(entry) = self.entry(id) {
                    entry.attempt = 1;
                    entry.limited = 0;
                    // A conversation that was broken off goes on; one that is at its end does not.
                    entry.thread = entry.thread.take().filter(|_| drained);
                }
                self.retry(id, Why::Continuation, backoff::CONTINUATION, None);
            }
        }
    }

    /// Counts a failure, after which another attempt follows later each time.
    pub(super) fn fail(&mut self, id: &IssueId, why: Why, error: String) {
        let Some(entry) = self.entry(id) else { return };
        entry.attempt = entry.attempt.saturating_add(1);
        entry.thread = None;
        let attempt = entry.attempt;
        let wait = backoff::before(attempt, id, self.state.rules.longest_wait);
        self.retry(id, why, wait, Some(error));
    }

    pub(super) fn wait_for_tomorrow(&mut self, id: &IssueId) {
        let wait = self.now.age(Day::next(self.now));
        self.retry(id, Why::DayBudget, wait, Some("today's budget is used up".to_owned()));
    }

    pub(super) fn retry(&mut self, id: &IssueId, why: Why, wait: Duration, error: Option<String>) {
        let error = error.map(|error| bounded(error, MAX_ERROR));
        let due = self.now.after(wait);
        let retry = Retry { due, why, error: error.clone(), no_slot: false };
        self.put(id, Stage::Retrying(retry));
        let attempt = self.state.entries.get(id).map_or(0, |entry| entry.attempt);
        let delay_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let issue = self.subject(id);
        self.say(Notice::WillRetry { issue, attempt, why, delay_ms, error });
    }

    pub(super) fn block(&mut self, id: &IssueId, reason: Reason, session: Option<String>) {
        let reason = reason.bounded(MAX_ERROR);
        let block = Block { reason: reason.clone(), since: self.now, session };
        self.put(id, Stage::Blocked(block));
        self.say(Notice::Blocked { issue: self.subject(id), reason });
    }
}
