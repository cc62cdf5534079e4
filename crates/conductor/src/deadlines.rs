//! When the loop has to look again by itself.

use carrel_domain::Timestamp;
use std::time::Duration;

use crate::claimed_issue::{ClaimedIssue, Run, Stage};
use crate::state::{Mode, PollState, State};

impl State {
    /// Returns when [`crate::Event::Due`] has to come at the latest; nothing if something else has to
    /// happen first.
    pub fn next_due(&self) -> Option<Timestamp> {
        let poll = match self.poll {
            PollState::Waiting { due } => Some(due),
            PollState::NotStarted => Some(Timestamp::from_millis(0)),
            PollState::StartupCleanup { .. } | PollState::InFlight { .. } | PollState::Finished => {
                None
            }
        };
        let held = self.ledger.rate_limited.tracker.max(self.ledger.rate_limited.agents);
        let entries = self.issues.values().filter_map(|entry| self.due_of(entry, held));
        entries.chain(poll).chain(held).chain(self.day_ends_at()).min()
    }

    fn due_of(&self, entry: &ClaimedIssue, held: Option<Timestamp>) -> Option<Timestamp> {
        match &entry.stage {
            Stage::Retrying(retry) => {
                let taken_up = self.takes_up(entry) && !retry.no_slot;
                taken_up.then_some(retry.due.max(held.unwrap_or(retry.due)))
            }
            Stage::Running(run) => self.watched_until(entry, run),
            // Before the first look, it is not known whether they are still finished.
            Stage::Cleaning { due, .. } => due.filter(|_| !self.is_sweeping()),
            Stage::Checking { .. }
            | Stage::Stopping { .. }
            | Stage::Blocked(_)
            | Stage::Resting => None,
        }
    }

    /// Tells whether an attempt is taken up when its time has come.
    pub(crate) fn takes_up(&self, entry: &ClaimedIssue) -> bool {
        let begins = self.ledger.mode == Mode::Working
            && self.workflow_error.is_none()
            && !matches!(self.poll, PollState::NotStarted | PollState::StartupCleanup { .. });
        begins && (self.single_pass.is_none() || self.is_due_in_single_pass(entry))
    }

    /// Tells whether what finished issues left behind is still being looked at.
    pub(crate) fn is_sweeping(&self) -> bool {
        matches!(self.poll, PollState::NotStarted | PollState::StartupCleanup { .. })
    }

    /// Returns when an agent is too long silent, or too long at work.
    fn watched_until(&self, entry: &ClaimedIssue, run: &Run) -> Option<Timestamp> {
        let moment = Duration::from_millis(1);
        let budgets = &self.rules.budgets;
        // Between two turns it is the tracker that everybody waits for.
        let waits = run.between_turns.is_some();
        let stall = self.rules.stall_timeout.map(|most| run.last_event_at.after(most + moment));
        let turn = minutes(budgets.turn.minutes).map(|most| run.turn_started_at.after(most));
        let whole = minutes(budgets.run.minutes).map(|most| run.started_at.after(most));
        let issue = minutes(budgets.issue.minutes)
            .map(|most| run.started_at.after(most.saturating_sub(entry.spent_of_budget().time)));
        let between = run.between_turns.and_then(|between| between.due);
        let stall = stall.filter(|_| !waits);
        let of_turn = turn.into_iter().chain(whole).filter(|_| run.is_in_turn());
        of_turn.chain(stall).chain(issue).chain(between).min()
    }

    /// Returns when agents have been at work for as long as they may today, if they go on as they do.
    fn day_ends_at(&self) -> Option<Timestamp> {
        let most = minutes(self.rules.budgets.day.minutes)?;
        let today = self.ledger.today;
        let left = most.saturating_sub(today.spent.time);
        let mut stages = self.issues.values().map(|entry| &entry.stage);
        if !stages.any(|stage| matches!(stage, Stage::Running(_))) {
            return None;
        }
        let runs = self.issues.values().filter_map(|entry| entry.stage.run());
        let begun = runs.map(|run| run.started_at.max(today.begin()).as_millis());
        let (count, sum) = begun
            .fold((0_i128, 0_i128), |(count, sum), begun| (count + 1, sum + i128::from(begun)));
        let left = i128::try_from(left.as_millis()).unwrap_or(i128::MAX / 2);
        // Rounded up, or the moment would come too early and be named again.
        let at = (left + sum + count - 1).checked_div(count)?;
        Some(Timestamp::from_millis(i64::try_from(at).unwrap_or(i64::MAX)))
    }
}

fn minutes(count: Option<u64>) -> Option<Duration> {
    count.map(|count| Duration::from_secs(count.saturating_mul(60)))
}
