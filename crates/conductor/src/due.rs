//! When the loop has to look again by itself.

use carrel_domain::Timestamp;
use std::time::Duration;

use crate::state::{Entry, Mode, Poll, Run, Stage, State};

impl State {
    /// Returns when [`crate::Event::Due`] has to come at the latest; nothing if something else has to
    /// happen first.
    pub fn next_due(&self) -> Option<Timestamp> {
        let poll = match self.poll {
            Poll::Waiting { due } => Some(due),
            Poll::Fresh => Some(Timestamp::from_millis(0)),
            Poll::Sweeping { .. } | Poll::Asked { .. } => None,
        };
        self.entries.values().filter_map(|entry| self.due_of(entry)).chain(poll).min()
    }

    fn due_of(&self, entry: &Entry) -> Option<Timestamp> {
        let takes_up = self.mode == Mode::Working && !matches!(self.poll, Poll::Sweeping { .. });
        match &entry.stage {
            Stage::Retrying(retry) => (takes_up && !retry.no_slot).then_some(retry.due),
            Stage::Running(run) => self.watched_until(entry, run),
            Stage::Cleaning { due, .. } => *due,
            Stage::Checking { .. }
            | Stage::Stopping { .. }
            | Stage::Blocked(_)
            | Stage::Resting => None,
        }
    }

    /// Returns when an agent is too long silent, or too long at work.
    fn watched_until(&self, entry: &Entry, run: &Run) -> Option<Timestamp> {
        let moment = Duration::from_millis(1);
        let minutes = |minutes: Option<u64>| minutes.map(|count| Duration::from_secs(count * 60));
        let budgets = &self.rules.budgets;
        let stall = self.rules.stall.map(|most| run.heard_at.after(most + moment));
        let turn = minutes(budgets.turn.minutes).map(|most| run.turn_started_at.after(most));
        let whole = minutes(budgets.run.minutes).map(|most| run.started_at.after(most));
        let issue = minutes(budgets.issue.minutes)
            .map(|most| run.started_at.after(most.saturating_sub(entry.spent.time)));
        let between = run.between_turns.and_then(|between| between.due);
        [stall, turn, whole, issue, between].into_iter().flatten().min()
    }
}
