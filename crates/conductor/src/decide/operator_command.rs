//! Operator commands: pause, drain, resume, refresh, cancel, retry, unblock, answer.

use std::time::Duration;

use crate::claimed_issue::{BlockReason, ClaimedIssue, FollowUp, RetryReason, Stage};
use crate::event::OperatorCommand;
use crate::notice::Notice;
use crate::state::{Mode, PollState};
use carrel_tracker::IssueId;

use super::Transition;

impl Transition {
    pub(super) fn command(&mut self, command: OperatorCommand) {
        if let Some(refused) = self.state.reject(&command) {
            return self.notify(Notice::Refused { why: refused.to_string() });
        }
        match command {
            OperatorCommand::Refresh => self.poll_now(),
            OperatorCommand::Pause => self.change_mode(Mode::Paused),
            OperatorCommand::Drain => self.change_mode(Mode::Draining),
            OperatorCommand::Resume => {
                self.state.ledger.rate_limited.agents = None;
                self.change_mode(Mode::Working);
            }
            OperatorCommand::Cancel(id) => self.cancel(&id),
            OperatorCommand::RetryNow(id) | OperatorCommand::Unblock(id) => self.retry_now(&id),
            OperatorCommand::Answer(id, answer) => {
                if let Some(claimed) = self.issue_mut(&id) {
                    claimed.answer = Some(answer);
                }
                self.retry_now(&id);
            }
        }
    }

    fn change_mode(&mut self, mode: Mode) {
        if std::mem::replace(&mut self.state.ledger.mode, mode) != mode {
            self.notify(Notice::ModeChanged { mode });
        }
    }

    fn poll_now(&mut self) {
        match &mut self.state.poll {
            PollState::Waiting { due } => *due = self.now,
            PollState::InFlight { repeat, .. } => *repeat = true,
            // A poll follows anyway, or none will.
            PollState::NotStarted | PollState::StartupCleanup { .. } | PollState::Finished => {}
        }
        self.postpone_poll();
    }

    fn cancel(&mut self, id: &IssueId) {
        if let Some((_, issue)) = self.state.waiting.remove(id) {
            let entry = self.state.issues.entry(id.clone());
            entry.or_insert_with(|| ClaimedIssue::new(issue));
        }
        let Some(claimed) = self.state.issues.get(id) else { return };
        match claimed.stage.clone() {
            Stage::Running(_) => {
                self.stop(id, FollowUp::Block(BlockReason::Cancelled), "an operator cancelled it");
            }
            Stage::Stopping {
                run,
                then:
                    FollowUp::Fail(..) | FollowUp::Continue | FollowUp::Tomorrow | FollowUp::Block(_),
            } => self.set_stage(
                id,
                Stage::Stopping { run, then: FollowUp::Block(BlockReason::Cancelled) },
            ),
            // It is ending already and is not retried.
            Stage::Stopping { then: FollowUp::Release | FollowUp::Clean, .. }
            | Stage::Cleaning { .. } => {}
            Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting => {
                self.block(id, BlockReason::Cancelled, None);
            }
        }
    }

    /// Schedules a retry for now and lifts a block. Unblocking an exhausted budget grants it once more, and the
    /// count of turns without progress starts anew.
    fn retry_now(&mut self, id: &IssueId) {
        let Some(claimed) = self.issue_mut(id) else { return };
        claimed.turns_without_progress = 0;
        match &claimed.stage {
            Stage::Cleaning { .. } => self.clean(id),
            Stage::Blocked(block) => {
                if matches!(block.reason, BlockReason::Budget(_)) {
                    claimed.spent_at_unblock = claimed.spent;
                }
                self.retry(id, RetryReason::Operator, Duration::ZERO, None);
            }
            Stage::Checking { .. }
            | Stage::Running(_)
            | Stage::Stopping { .. }
            | Stage::Retrying(_)
            | Stage::Resting => self.retry(id, RetryReason::Operator, Duration::ZERO, None),
        }
    }
}
