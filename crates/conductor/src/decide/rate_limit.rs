//! Rate limits of the tracker and of the agents' provider.
//!
//! A limit of the tracker postpones the next poll and, since every dispatch reads its issue first, all
//! dispatches. A limit of the provider stops dispatches only; runs and polls continue. Both are part of the
//! ledger and survive a restart. An operator's `resume` clears the provider's.

use std::time::Duration;

use carrel_domain::Timestamp;

use crate::notice::Notice;
use crate::provider_limits::MAX_RATE_LIMIT;
use crate::state::PollState;
use carrel_tracker::TrackerError;

use super::Transition;

impl Transition {
    /// Applies the `retry_after` of a tracker error, at most [`MAX_RATE_LIMIT`].
    pub(super) fn rate_limit_tracker(&mut self, fault: &TrackerError) {
        let Some(wait) = fault.retry_after else { return };
        let until = self.now.after(wait.min(MAX_RATE_LIMIT));
        let hold = &mut self.state.ledger.rate_limited.tracker;
        if hold.is_none_or(|there| there < until) {
            *hold = Some(until);
            self.notify(Notice::RateLimited { by: "tracker", until });
        }
        self.postpone_poll();
    }

    pub(super) fn rate_limit_agents(&mut self, until: Timestamp) {
        let hold = &mut self.state.ledger.rate_limited.agents;
        if until > self.now && hold.is_none_or(|there| there < until) {
            *hold = Some(until);
            self.notify(Notice::RateLimited { by: "agents", until });
        }
    }

    pub(super) fn is_rate_limited(&self) -> bool {
        self.state.ledger.rate_limited.until(self.now).is_some()
    }

    /// Moves a scheduled poll behind the tracker's rate limit.
    pub(super) fn postpone_poll(&mut self) {
        let hold = self.state.ledger.rate_limited.tracker;
        if let (PollState::Waiting { due }, Some(until)) = (&mut self.state.poll, hold) {
            *due = until.max(*due);
        }
    }

    /// Moves a scheduled poll forward, to at most `most` from now.
    pub(super) fn poll_within(&mut self, most: Duration) {
        let latest = self.now.after(most);
        if let PollState::Waiting { due } = &mut self.state.poll {
            *due = latest.min(*due);
        }
        self.postpone_poll();
    }
}
