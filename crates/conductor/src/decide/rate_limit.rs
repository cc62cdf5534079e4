//! Leaving those alone who want it.

use std::time::Duration;

use carrel_domain::Timestamp;

use crate::notice::Notice;
use crate::provider_limits::MAX_RATE_LIMIT;
use crate::state::PollState;
use carrel_tracker::TrackerError;

use super::Transition;

impl Transition {
    /// Leaves the tracker alone for as long as it wants.
    pub(super) fn hold_tracker(&mut self, fault: &TrackerError) {
        let Some(wait) = fault.retry_after else { return };
        let until = self.now.after(wait.min(MAX_RATE_LIMIT));
        let hold = &mut self.state.ledger.rate_limited.tracker;
        if hold.is_none_or(|there| there < until) {
            *hold = Some(until);
            self.say(Notice::Held { by: "tracker", until });
        }
        self.poll_after_hold();
    }

    /// Begins no agent for as long as their provider wants.
    pub(super) fn hold_agents(&mut self, until: Timestamp) {
        let hold = &mut self.state.ledger.rate_limited.agents;
        if until > self.now && hold.is_none_or(|there| there < until) {
            *hold = Some(until);
            self.say(Notice::Held { by: "agents", until });
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.state.ledger.rate_limited.until(self.now).is_some()
    }

    /// Puts the next look at the tracker behind the time that it wants to be left alone for.
    pub(super) fn poll_after_hold(&mut self) {
        let hold = self.state.ledger.rate_limited.tracker;
        if let (PollState::Waiting { due }, Some(until)) = (&mut self.state.poll, hold) {
            *due = until.max(*due);
        }
    }

    /// Looks at the tracker at this distance at the latest.
    pub(super) fn poll_within(&mut self, most: Duration) {
        let latest = self.now.after(most);
        if let PollState::Waiting { due } = &mut self.state.poll {
            *due = latest.min(*due);
        }
        self.poll_after_hold();
    }
}
