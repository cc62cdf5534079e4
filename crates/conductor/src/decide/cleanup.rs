//! Removal of the workspaces of finished issues.
//!
//! A removal is journaled as [`Stage::Cleaning`] before it begins, and may be repeated: removing a
//! workspace that is gone succeeds. Failures are retried with back-off. After a restart the issue is read
//! first, since it may have been reopened while no conductor ran.

use crate::backoff;
use crate::claimed_issue::{ClaimedIssue, Stage};
use crate::effect::Effect;
use crate::notice::Notice;
use crate::rules::Disposition;
use crate::state::PollState;
use crate::truncate::{MAX_ERROR, truncated};
use carrel_tracker::IssueId;

use super::Transition;

impl Transition {
    /// Removes the workspace of a finished issue, or releases the issue if it was reopened. It must not
    /// have a run.
    pub(super) fn clean(&mut self, id: &IssueId) {
        let Some(claimed) = self.state.issues.get(id) else { return };
        debug_assert!(claimed.stage.run().is_none(), "{id} has a run");
        if self.state.rules.classify(&claimed.issue) != Disposition::Terminal {
            return self.release(id);
        }
        let (issue, workspace) = (Box::new(claimed.issue.clone()), claimed.workspace.clone());
        let failures = match claimed.stage {
            Stage::Cleaning { failures, .. } => failures,
            _ => 0,
        };
        self.set_stage(id, Stage::Cleaning { failures, due: None });
        self.effects.push(Effect::Clean(issue, workspace));
    }

    pub(super) fn cleaned(&mut self, id: &IssueId, result: Result<Option<String>, String>) {
        let Some(ClaimedIssue { stage: Stage::Cleaning { failures, due: None }, .. }) =
            self.issue_mut(id)
        else {
            return;
        };
        let failures = failures.saturating_add(1);
        let issue = self.issue_ref(id);
        match result {
            Ok(kept) => {
                self.forget(id);
                self.notify(Notice::Cleaned { issue, kept });
            }
            Err(error) => {
                let due =
                    self.now.after(backoff::before(failures, id, self.state.rules.max_backoff));
                self.set_stage(id, Stage::Cleaning { failures, due: Some(due) });
                self.notify(Notice::CleanupFailed { issue, error: truncated(error, MAX_ERROR) });
            }
        }
        self.end_startup_cleanup();
    }

    pub(super) fn retry_cleanups(&mut self) {
        if self.state.is_starting_up() {
            return;
        }
        let now = self.now;
        let is_due = |claimed: &ClaimedIssue| matches!(claimed.stage, Stage::Cleaning { due: Some(due), .. } if due <= now);
        for id in self.ids(is_due) {
            self.clean(&id);
        }
    }

    /// Continues removals of an earlier conductor, once their issues have been read.
    pub(super) fn resume_cleanups(&mut self) {
        let left =
            |claimed: &ClaimedIssue| matches!(claimed.stage, Stage::Cleaning { due: Some(_), .. });
        for id in self.ids(left) {
            self.clean(&id);
        }
    }

    /// Schedules the first poll once the removals of the startup have ended, successfully or not.
    pub(super) fn end_startup_cleanup(&mut self) {
        let cleaning =
            |claimed: &ClaimedIssue| matches!(claimed.stage, Stage::Cleaning { due: None, .. });
        if self.state.poll == (PollState::StartupCleanup { query: None })
            && self.ids(cleaning).is_empty()
        {
            self.state.poll = PollState::Waiting { due: self.now };
            self.postpone_poll();
        }
    }
}
