//! What somebody wants.

use std::time::Duration;

use crate::event::{Notice, Order};
use crate::state::{Block, Mode, Poll, Reason, Stage, Then, Why};
use carrel_tracker::IssueId;

use super::Step;

impl Step {
    pub(super) fn told(&mut self, order: Order) {
        match order {
            Order::Refresh => self.refresh_soon(),
            Order::Pause => self.state.mode = Mode::Paused,
            Order::Resume => self.state.mode = Mode::Working,
            Order::Drain => self.state.mode = Mode::Draining,
            Order::Cancel(id) => self.cancel(&id),
            Order::RetryNow(id) => self.retry_now(&id),
            Order::Answer(id, answer) => self.answer(&id, answer),
        }
    }

    fn refresh_soon(&mut self) {
        match &mut self.state.poll {
            Poll::Waiting { due } => *due = self.now,
            Poll::Asked { again, .. } => *again = true,
            // A look at the tracker follows anyway.
            Poll::Fresh | Poll::Sweeping { .. } => {}
        }
    }

    fn cancel(&mut self, id: &IssueId) {
        let Some(entry) = self.state.entries.get(id) else { return self.unknown(id) };
        match entry.stage.clone() {
            Stage::Running(_) => self.stop(id, Then::Block(Reason::Cancelled), "somebody wants it"),
            Stage::Stopping { run, then: Then::Fail(..) | Then::Continue | Then::Tomorrow } => {
                self.put(id, Stage::Stopping { run, then: Then::Block(Reason::Cancelled) });
            }
            Stage::Checking { .. } | Stage::Retrying(_) | Stage::Blocked(_) => {
                self.block(id, Reason::Cancelled, None);
            }
            Stage::Stopping { .. } | Stage::Resting | Stage::Cleaning { .. } => {
                self.refuse(format!("nobody works on {id}"));
            }
        }
    }

    fn retry_now(&mut self, id: &IssueId) {
        let Some(entry) = self.state.entries.get(id) else { return self.unknown(id) };
        match entry.stage {
            Stage::Retrying(_) | Stage::Blocked(_) => {
                self.retry(id, Why::Operator, Duration::ZERO, None);
            }
            Stage::Checking { .. } | Stage::Running(_) | Stage::Stopping { .. } => {
                self.refuse(format!("{id} is being worked on"));
            }
            Stage::Resting | Stage::Cleaning { .. } => {
                self.refuse(format!("{id} is not to be worked on"));
            }
        }
    }

    fn answer(&mut self, id: &IssueId, answer: String) {
        let Some(entry) = self.entry(id) else { return self.unknown(id) };
        let asked = Reason::is_question;
        if !matches!(&entry.stage, Stage::Blocked(Block { reason, .. }) if asked(reason)) {
            return self.refuse(format!("the agent of {id} has not asked anything"));
        }
        entry.answer = Some(answer);
        self.retry(id, Why::Operator, Duration::ZERO, None);
    }

    fn unknown(&mut self, id: &IssueId) {
        self.refuse(format!("{id} is not among the issues that are worked on"));
    }

    fn refuse(&mut self, why: String) {
        self.say(Notice::Refused { why });
    }
}
