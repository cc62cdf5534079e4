//! Enforcement of budgets and of the stall timeout.
//!
//! A budget limits tokens, turns, minutes or attempts of a turn, a run, an issue or a day. Reaching the
//! limit of an issue or turn blocks the issue until an operator unblocks it; of a day, it postpones
//! the issue to the next day (UTC); of a run, it ends the run and retries the issue. Budgets are checked before a
//! dispatch, between two turns, and during a turn. During a turn only tokens and time count: the
//! number of turns and attempts is spent when one begins, and must not stop the one that spent it.

use carrel_domain::Timestamp;

use crate::claimed_issue::{BlockReason, FollowUp, RetryReason, Run, Stage};
use crate::spend::Spend;
use carrel_tracker::IssueId;

use super::Transition;

impl Transition {
    /// Adds consumption to an issue, the ledger and today; `today` is the part since midnight UTC.
    pub(super) fn spend_on(&mut self, id: &IssueId, more: Spend, today: Spend) {
        let ledger = &mut self.state.ledger;
        ledger.spent = ledger.spent + more;
        ledger.today.add(today, self.now);
        if let Some(claimed) = self.state.issues.get_mut(id) {
            claimed.spent = claimed.spent + more;
            self.changed.insert(id.clone());
        }
    }

    /// Blocks or postpones an issue whose budget does not allow another run. Returns true if it did.
    pub(super) fn start_exceeds_budget(&mut self, id: &IssueId) -> bool {
        let Some(claimed) = self.state.issues.get(id) else { return true };
        let budgets = &self.state.rules.budgets;
        if let Some(reached) = claimed.spent_of_budget().reached(&budgets.issue) {
            self.block(id, BlockReason::Budget(format!("for the issue, {reached}")), None);
            return true;
        }
        let used_up = self.state.spent_today(self.now).reached(&budgets.day).is_some();
        if used_up {
            self.retry_tomorrow(id);
        }
        used_up
    }

    /// Ends a run between two turns whose budget does not allow another turn. Returns true if it did.
    pub(super) fn next_turn_exceeds_budget(&mut self, id: &IssueId) -> bool {
        let Some(run) = self.running(id) else { return true };
        let begun = |spent: Spend| Spend { attempts: 0, ..spent };
        let budgets = &self.state.rules.budgets;
        let claimed = &self.state.issues[id];
        let time = Spend::of_time(run.started_at.age(self.now));
        let of_issue = begun(claimed.spent_of_budget()) + time;
        if let Some(reached) = of_issue.reached(&budgets.issue) {
            let reason = format!("for the issue, {reached}");
            self.stop(id, FollowUp::Block(BlockReason::Budget(reason.clone())), &reason);
            return true;
        }
        if let Some(reached) = begun(self.state.spent_today(self.now)).reached(&budgets.day) {
            self.stop(id, FollowUp::Tomorrow, &format!("for the day, {reached}"));
            return true;
        }
        let over = (begun(run.spent) + time).reached(&budgets.run).is_some();
        if over {
            self.finish_run(id);
        }
        over
    }

    /// Stops runs that have stalled or exceeded a budget. Called after every event, so that a limit takes
    /// effect with the report that reaches it, or at the due time of the state.
    pub(super) fn enforce_limits(&mut self) {
        let today = self.state.spent_today(self.now).tokens_and_time();
        for id in self.ids(|claimed| matches!(claimed.stage, Stage::Running(_))) {
            let claimed = &self.state.issues[&id];
            let Stage::Running(run) = &claimed.stage else { continue };
            if let Some((then, why)) = self.exceeded_limit(run, claimed.spent_of_budget(), today) {
                self.stop(&id, then, &why);
            }
        }
    }

    fn exceeded_limit(&self, run: &Run, issue: Spend, today: Spend) -> Option<(FollowUp, String)> {
        let rules = &self.state.rules;
        let budgets = &rules.budgets;
        let silent = run.last_event_at.age(self.now);
        // Between two turns the agent waits for the conductor, and silence means nothing.
        let in_turn = run.between_turns.is_none();
        if in_turn && rules.stall_timeout.is_some_and(|most| silent > most) {
            let error = format!("stalled for {} ms without agent activity", silent.as_millis());
            return Some((FollowUp::Fail(RetryReason::Stall, error.clone()), error));
        }
        let blocked = |span: &str, reached: String| {
            let reason = format!("for the {span}, {reached}");
            (FollowUp::Block(BlockReason::Budget(reason.clone())), reason)
        };
        let since = |begin: Timestamp| Spend::of_time(begin.age(self.now));
        let of_turn = run.spent.since(run.spent_before_turn).tokens() + since(run.turn_started_at);
        if run.is_in_turn()
            && let Some(reached) = of_turn.reached(&budgets.turn)
        {
            return Some(blocked("turn", reached));
        }
        let time = since(run.started_at);
        if let Some(reached) = (issue.tokens_and_time() + time).reached(&budgets.issue) {
            return Some(blocked("issue", reached));
        }
        if let Some(reached) = today.reached(&budgets.day) {
            return Some((FollowUp::Tomorrow, format!("for the day, {reached}")));
        }
        if !run.is_in_turn() {
            return None;
        }
        let reached = (run.spent.tokens() + time).reached(&budgets.run)?;
        let error = format!("for the run, {reached}");
        Some((FollowUp::Fail(RetryReason::RunBudget, error.clone()), error))
    }
}
