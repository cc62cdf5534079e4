//! Takeover of the journal at the start of a conductor.
//!
//! The journal holds the issues of an earlier conductor as they were at its last decision. Its agents are
//! dead, since each ends with its conductor and the drive loop has waited for their workspaces. So a run
//! becomes a retry that is due now and resumes the conversation, a stopping run gets its follow-up, and an
//! issue that was only being checked goes back. Then all issues are read from the tracker, and workspaces
//! of finished ones are removed, before the first poll and the first dispatch.

use carrel_domain::Timestamp;

use crate::claimed_issue::{FollowUp, Retry, RetryReason, Run, Stage};
use crate::effect::Effect;
use crate::spend::Spend;
use crate::state::PollState;
use carrel_tracker::IssueId;

use super::Transition;

impl Transition {
    /// Takes over all issues of the journal on the first decision, and requests their current state.
    pub(super) fn start_up(&mut self) {
        if self.state.poll != PollState::NotStarted {
            return;
        }
        self.state.poll = PollState::StartupCleanup { query: None };
        for id in self.ids(|_| true) {
            self.take_over(&id);
        }
        let all = self.ids(|_| true);
        if all.is_empty() {
            return self.end_startup_cleanup();
        }
        let query = self.state.new_query();
        self.state.poll = PollState::StartupCleanup { query: Some(query) };
        self.effects.push(Effect::Read(query, all));
    }

    fn take_over(&mut self, id: &IssueId) {
        let Some(claimed) = self.state.issues.get(id) else { return };
        match claimed.stage.clone() {
            // It had not been dispatched, so there is nothing to continue.
            Stage::Checking { retry: None, .. } => self.release(id),
            Stage::Checking { retry: Some(retry), .. } => {
                self.set_stage(id, Stage::Retrying(retry));
            }
            Stage::Running(run) => {
                self.spend_interrupted_time(id, &run);
                let reason = RetryReason::Interrupted;
                let retry = Retry { due: self.now, reason, error: None, no_slot: false };
                self.set_stage(id, Stage::Retrying(retry));
            }
            // The run is over, so its follow-up is due.
            Stage::Stopping { run, then } => {
                self.spend_interrupted_time(id, &run);
                self.set_stage(id, Stage::Resting);
                if then == FollowUp::Clean {
                    self.set_stage(id, Stage::Cleaning { failures: 0, due: Some(self.now) });
                } else {
                    self.follow_up(id, then, run.session);
                }
            }
            // Whether it is still finished is known when it has been read.
            Stage::Cleaning { failures, .. } => {
                self.set_stage(id, Stage::Cleaning { failures, due: Some(self.now) });
            }
            Stage::Retrying(retry) => {
                self.set_stage(id, Stage::Retrying(Retry { no_slot: false, ..retry }));
            }
            Stage::Blocked(_) | Stage::Resting => {}
        }
    }

    /// Counts the time of an interrupted run, up to its last journaled event.
    fn spend_interrupted_time(&mut self, id: &IssueId, run: &Run) {
        let time = |since: Timestamp| Spend::of_time(since.age(run.last_event_at));
        let today = run.started_at.max(self.state.ledger.today.begin());
        self.spend_on(id, time(run.started_at), time(today));
    }
}
