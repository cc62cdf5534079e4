//! Removing the workspaces of finished issues.

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
    /// Removes the workspace of a finished issue, unless it has been taken up again since. Nobody may
    /// be at work in it.
    pub(super) fn clean(&mut self, id: &IssueId) {
        let Some(entry) = self.state.issues.get(id) else { return };
        debug_assert!(entry.stage.run().is_none(), "an agent works in {id}");
        if self.state.rules.classify(&entry.issue) != Disposition::Terminal {
            return self.release(id);
        }
        let (issue, workspace) = (Box::new(entry.issue.clone()), entry.workspace.clone());
        let failures = match entry.stage {
            Stage::Cleaning { failures, .. } => failures,
            _ => 0,
        };
        self.put(id, Stage::Cleaning { failures, due: None });
        self.effects.push(Effect::Clean(issue, workspace));
    }

    pub(super) fn cleaned(&mut self, id: &IssueId, result: Result<(), String>) {
        let Some(ClaimedIssue { stage: Stage::Cleaning { failures, due: None }, .. }) =
            self.entry(id)
        else {
            return;
        };
        let failures = failures.saturating_add(1);
        let issue = self.issue_ref(id);
        match result {
            Ok(()) => {
                self.forget(id);
                self.say(Notice::Cleaned { issue });
            }
            Err(error) => {
                let due =
                    self.now.after(backoff::before(failures, id, self.state.rules.max_backoff));
                self.put(id, Stage::Cleaning { failures, due: Some(due) });
                self.say(Notice::CleanupFailed { issue, error: truncated(error, MAX_ERROR) });
            }
        }
        self.end_sweep();
    }

    /// Tries removals again that failed.
    pub(super) fn clean_again(&mut self) {
        if self.state.is_sweeping() {
            return;
        }
        let now = self.now;
        let is_due = |entry: &ClaimedIssue| matches!(entry.stage, Stage::Cleaning { due: Some(due), .. } if due <= now);
        for id in self.ids(is_due) {
            self.clean(&id);
        }
    }

    /// Goes on with removals that were under way when Carrel was stopped.
    pub(super) fn clean_what_was_left(&mut self) {
        let left =
            |entry: &ClaimedIssue| matches!(entry.stage, Stage::Cleaning { due: Some(_), .. });
        for id in self.ids(left) {
            self.clean(&id);
        }
    }

    /// Begins with the tracker when nothing is left to be cleaned up.
    pub(super) fn end_sweep(&mut self) {
        let cleaning =
            |entry: &ClaimedIssue| matches!(entry.stage, Stage::Cleaning { due: None, .. });
        if self.state.poll == (PollState::StartupCleanup { query: None })
            && self.ids(cleaning).is_empty()
        {
            self.state.poll = PollState::Waiting { due: self.now };
            self.poll_after_hold();
        }
    }
}
