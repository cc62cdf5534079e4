//! What somebody wants.

use std::time::Duration;

use crate::claimed_issue::{BlockReason, ClaimedIssue, FollowUp, RetryReason, Stage};
use crate::event::OperatorCommand;
use crate::notice::Notice;
use crate::state::{Mode, PollState};
use carrel_tracker::IssueId;

use super::Transition;

impl Transition {
    pub(super) fn told(&mut self, order: OperatorCommand) {
        if let Some(refused) = self.state.reject(&order) {
            return self.say(Notice::Refused { why: refused.to_string() });
        }
        match order {
            OperatorCommand::Refresh => self.refresh_soon(),
            OperatorCommand::Pause => self.change_mode(Mode::Paused),
            OperatorCommand::Drain => self.change_mode(Mode::Draining),
            OperatorCommand::Resume => {
                self.state.ledger.rate_limited.agents = None;
                self.change_mode(Mode::Working);
            }
            OperatorCommand::Cancel(id) => self.cancel(&id),
            OperatorCommand::RetryNow(id) | OperatorCommand::Unblock(id) => self.retry_now(&id),
            OperatorCommand::Answer(id, answer) => {
                if let Some(entry) = self.entry(&id) {
                    entry.answer = Some(answer);
                }
                self.retry_now(&id);
            }
        }
    }

    fn change_mode(&mut self, mode: Mode) {
        if std::mem::replace(&mut self.state.ledger.mode, mode) != mode {
            self.say(Notice::ModeChanged { mode });
        }
    }

    fn refresh_soon(&mut self) {
        match &mut self.state.poll {
            PollState::Waiting { due } => *due = self.now,
            PollState::InFlight { repeat, .. } => *repeat = true,
            // A look at the tracker follows anyway, or never.
            PollState::NotStarted | PollState::StartupCleanup { .. } | PollState::Finished => {}
        }
        self.poll_after_hold();
    }

    fn cancel(&mut self, id: &IssueId) {
        if let Some((_, issue)) = self.state.waiting.remove(id) {
            let entry = self.state.issues.entry(id.clone());
            entry.or_insert_with(|| ClaimedIssue::new(issue));
        }
        let Some(entry) = self.state.issues.get(id) else { return };
        match entry.stage.clone() {
            Stage::Running(_) => {
                self.stop(id, FollowUp::Block(BlockReason::Cancelled), "somebody wants it")
            }
            Stage::Stopping {
                run,
                then:
                    FollowUp::Fail(..) | FollowUp::Continue | FollowUp::Tomorrow | FollowUp::Block(_),
            } => {
                self.put(id, Stage::Stopping { run, then: FollowUp::Block(BlockReason::Cancelled) })
            }
            // It ends already, and is not taken up again.
            Stage::Stopping { then: FollowUp::Release | FollowUp::Clean, .. }
            | Stage::Cleaning { .. } => {}
            Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting => {
                self.block(id, BlockReason::Cancelled, None);
            }
        }
    }

    /// Takes an issue up again at once, whatever held it up.
    fn retry_now(&mut self, id: &IssueId) {
        let Some(entry) = self.entry(id) else { return };
        match &entry.stage {
            Stage::Cleaning { .. } => self.clean(id),
            Stage::Blocked(block) => {
                if matches!(block.reason, BlockReason::Budget(_)) {
                    entry.spent_at_unblock = entry.spent;
                }
                entry.last_turn = None;
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
