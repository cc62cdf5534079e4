//! The time of the next decision that no event causes.
//!
//! [`State::next_due`] is computed from the state after each decision, so there are no timers to cancel or
//! to restore after a restart. It must never name a time that a decision leaves unchanged: the loop would
//! spin. The simulation asserts that.

use carrel_domain::Timestamp;
use std::time::Duration;

use crate::claimed_issue::{ClaimedIssue, Run, Stage};
use crate::state::{Mode, PollState, State};

impl State {
    /// Returns the time at which [`crate::Event::Due`] is needed, the earliest of: the poll, retries, failed removals
    /// and reads, stalls, exhausted time budgets, and ends of rate limits. `None` if only an event can
    /// change anything.
    pub fn next_due(&self) -> Option<Timestamp> {
        let poll = match self.poll {
            PollState::Waiting { due } => Some(due),
            PollState::NotStarted => Some(Timestamp::from_millis(0)),
            PollState::StartupCleanup { .. } | PollState::InFlight { .. } | PollState::Finished => {
                None
            }
        };
        let held = self.ledger.rate_limited.tracker.max(self.ledger.rate_limited.agents);
        let issues = self.issues.values().filter_map(|claimed| self.due_of(claimed, held));
        issues.chain(poll).chain(held).chain(self.day_ends_at()).min()
    }

    fn due_of(&self, claimed: &ClaimedIssue, held: Option<Timestamp>) -> Option<Timestamp> {
        match &claimed.stage {
            Stage::Retrying(retry) => {
                let taken_up = self.retries_now(claimed) && !retry.no_slot;
                taken_up.then_some(retry.due.max(held.unwrap_or(retry.due)))
            }
            Stage::Running(run) => self.watched_until(claimed, run),
            // Before they have been read, it is not known whether they are still finished.
            Stage::Cleaning { due, .. } => due.filter(|_| !self.is_starting_up()),
            Stage::Checking { .. }
            | Stage::Stopping { .. }
            | Stage::Blocked(_)
            | Stage::Resting => None,
        }
    }

    /// Returns true if a retry is dispatched when it is due.
    pub(crate) fn retries_now(&self, claimed: &ClaimedIssue) -> bool {
        self.may_dispatch() && (self.single_pass.is_none() || self.is_due_in_single_pass(claimed))
    }

    /// Returns true if the mode, the workflow file and the startup allow dispatches.
    pub(crate) fn may_dispatch(&self) -> bool {
        let is_working = self.ledger.mode == Mode::Working;
        is_working && self.workflow_error.is_none() && !self.is_starting_up()
    }

    pub(crate) fn is_starting_up(&self) -> bool {
        matches!(self.poll, PollState::NotStarted | PollState::StartupCleanup { .. })
    }

    /// Returns the time at which a run stalls or exceeds a time budget.
    fn watched_until(&self, claimed: &ClaimedIssue, run: &Run) -> Option<Timestamp> {
        let moment = Duration::from_millis(1);
        let budgets = &self.rules.budgets;
        // Between two turns the agent waits for the conductor, and silence means nothing.
        let waits = run.between_turns.is_some();
        let stall = self.rules.stall_timeout.map(|most| run.last_event_at.after(most + moment));
        let turn = minutes(budgets.turn.minutes).map(|most| run.turn_started_at.after(most));
        let whole = minutes(budgets.run.minutes).map(|most| run.started_at.after(most));
        let issue = minutes(budgets.issue.minutes)
            .map(|most| run.started_at.after(most.saturating_sub(claimed.spent_of_budget().time)));
        let between = run.between_turns.and_then(|between| between.due);
        let stall = stall.filter(|_| !waits);
        let of_turn = turn.into_iter().chain(whole).filter(|_| run.is_in_turn());
        of_turn.chain(stall).chain(issue).chain(between).min()
    }

    /// Returns the time at which the running agents exhaust today's time budget: `count` runs consume
    /// `count` milliseconds in each.
    fn day_ends_at(&self) -> Option<Timestamp> {
        let most = minutes(self.rules.budgets.day.minutes)?;
        let today = self.ledger.today;
        let left = most.saturating_sub(today.spent.time);
        let mut stages = self.issues.values().map(|claimed| &claimed.stage);
        if !stages.any(|stage| matches!(stage, Stage::Running(_))) {
            return None;
        }
        let runs = self.issues.values().filter_map(|claimed| claimed.stage.run());
        let begun = runs.map(|run| run.started_at.max(today.begin()).as_millis());
        let (count, sum) = begun
            .fold((0_i128, 0_i128), |(count, sum), begun| (count + 1, sum + i128::from(begun)));
        let left = i128::try_from(left.as_millis()).unwrap_or(i128::MAX / 2);
        // Rounded up: a time before the limit would decide nothing and be returned again.
        let at = (left + sum + count - 1).checked_div(count)?;
        Some(Timestamp::from_millis(i64::try_from(at).unwrap_or(i64::MAX)))
    }
}

fn minutes(count: Option<u64>) -> Option<Duration> {
    count.map(|count| Duration::from_secs(count.saturating_mul(60)))
}
