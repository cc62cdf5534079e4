//! What somebody wants.

use std::time::Duration;

use crate::entry::{Entry, Reason, Stage, Then, Why};
use crate::event::Order;
use crate::notice::Notice;
use crate::state::{Mode, Poll};
use carrel_tracker::IssueId;

use super::Step;

impl Step {
    pub(super) fn told(&mut self, order: Order) {
        if let Some(refused) = self.state.refusal(&order) {
            return self.say(Notice::Refused { why: refused.to_string() });
        }
        match order {
            Order::Refresh => self.refresh_soon(),
            Order::Pause => self.change_mode(Mode::Paused),
            Order::Drain => self.change_mode(Mode::Draining),
            Order::Resume => {
                self.state.ledger.hold.agents = None;
                self.change_mode(Mode::Working);
            }
            Order::Cancel(id) => self.cancel(&id),
            Order::RetryNow(id) | Order::Unblock(id) => self.retry_now(&id),
            Order::Answer(id, answer) => {
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
            Poll::Waiting { due } => *due = self.now,
            Poll::Asked { again, .. } => *again = true,
            // A look at the tracker follows anyway, or never.
            Poll::Fresh | Poll::Sweeping { .. } | Poll::Over => {}
        }
        self.poll_after_hold();
    }

    fn cancel(&mut self, id: &IssueId) {
        if let Some((_, issue)) = self.state.waiting.remove(id) {
            let entry = self.state.entries.entry(id.clone());
            entry.or_insert_with(|| Entry::new(issue));
        }
        let Some(entry) = self.state.entries.get(id) else { return };
        match entry.stage.clone() {
            Stage::Running(_) => self.stop(id, Then::Block(Reason::Cancelled), "somebody wants it"),
            Stage::Stopping {
                run,
                then: Then::Fail(..) | Then::Continue | Then::Tomorrow | Then::Block(_),
            } => self.put(id, Stage::Stopping { run, then: Then::Block(Reason::Cancelled) }),
            // It ends already, and is not taken up again.
            Stage::Stopping { then: Then::Release | Then::Clean, .. } | Stage::Cleaning { .. } => {}
            Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_) | Stage::Resting => {
                self.block(id, Reason::Cancelled, None);
            }
        }
    }

    /// Takes an issue up again at once, whatever held it up.
    fn retry_now(&mut self, id: &IssueId) {
        let Some(entry) = self.entry(id) else { return };
        match &entry.stage {
            Stage::Cleaning { .. } => self.clean(id),
            Stage::Blocked(block) => {
                if matches!(block.reason, Reason::Budget(_)) {
                    entry.forgiven = entry.spent;
                }
                entry.last_turn = None;
                self.retry(id, Why::Operator, Duration::ZERO, None);
            }
            Stage::Checking { .. }
            | Stage::Running(_)
            | Stage::Stopping { .. }
            | Stage::Retrying(_)
            | Stage::Resting => self.retry(id, Why::Operator, Duration::ZERO, None),
        }
    }
}
