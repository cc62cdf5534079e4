//! The turns of a run.
//!
//! After each turn the run waits while its issue is read from the tracker. If the issue is still active
//! and the budgets allow it, another turn follows in the same conversation, up to `max_turns`; otherwise
//! the run finishes.
//!
//! A turn makes progress if it has an effect on files, commits or the tracker. Words do not count: an agent that
//! says in ever new ones that nothing is left would never stop. After `max_turns_without_progress` turns without
//! an effect the issue is blocked. That is decided after the read between turns, which may show a change that
//! the agent made by other means than its tools.

use crate::claimed_issue::{BetweenTurns, BlockReason, ClaimedIssue, FollowUp, Run, Stage};
use crate::effect::Effect;
use crate::event::TurnEffects;
use crate::notice::Notice;
use crate::spend::Spend;
use crate::state::{Mode, QueryId};
use carrel_tracker::IssueId;

use super::Transition;

impl Transition {
    pub(super) fn turn_ended(&mut self, id: &IssueId, effects: TurnEffects) {
        let now = self.now;
        let Some(claimed) = self.issue_mut(id) else { return };
        let Stage::Running(run) = &mut claimed.stage else { return };
        if !run.is_in_turn() {
            return;
        }
        let progress = effects.any() || std::mem::take(&mut run.issue_changed);
        let query = QueryId::default();
        run.between_turns = Some(BetweenTurns { failures: 0, due: Some(now), query });
        claimed.rate_limited_runs = 0;
        claimed.turns_without_progress =
            if progress { 0 } else { claimed.turns_without_progress.saturating_add(1) };
        self.changed.insert(id.clone());
        if self.is_last_turn(id) && !self.lacks_progress(id) {
            self.finish_run(id);
        }
    }

    fn is_last_turn(&self, id: &IssueId) -> bool {
        let drains = self.state.ledger.mode == Mode::Draining;
        drains || self.running(id).is_some_and(|run| run.turn >= self.state.rules.max_turns)
    }

    /// Finishes a run after its last turn. Its end is a success.
    pub(super) fn finish_run(&mut self, id: &IssueId) {
        let Some(run) = self.running_mut(id) else { return };
        run.between_turns = None;
        run.finishing = true;
        let run = run.id;
        self.changed.insert(id.clone());
        self.effects.push(Effect::Finish(run));
    }

    pub(super) fn read_between_turns(&mut self) {
        let now = self.now;
        let is_due = |claimed: &ClaimedIssue| match &claimed.stage {
            Stage::Running(Run { between_turns: Some(waiting), .. }) => {
                waiting.due.is_some_and(|due| due <= now)
            }
            _ => false,
        };
        for id in self.ids(is_due) {
            let query = self.request_read(id.clone());
            let run = self.running_mut(&id);
            if let Some(waiting) = run.and_then(|run| run.between_turns.as_mut()) {
                waiting.due = None;
                waiting.query = query;
            }
        }
    }

    /// Starts another turn of a run whose issue is still active, finishes the run, or blocks the issue.
    pub(super) fn next_turn(&mut self, id: &IssueId) {
        if self.lacks_progress(id) {
            let reason = BlockReason::NoProgress;
            let why = reason.to_string();
            return self.stop(id, FollowUp::Block(reason), &why);
        }
        if self.is_last_turn(id) || self.state.single_pass.is_some() {
            return self.finish_run(id);
        }
        if self.next_turn_exceeds_budget(id) {
            return;
        }
        let now = self.now;
        let of = self.state.rules.max_turns;
        let Some(run) = self.running_mut(id) else { return };
        run.turn += 1;
        run.turn_started_at = now;
        run.last_event_at = now;
        run.between_turns = None;
        run.spent.turns += 1;
        run.spent_before_turn = run.spent;
        let (run, turn) = (run.id, run.turn);
        let begun = Spend { turns: 1, ..Spend::default() };
        self.spend_on(id, begun, begun);
        self.effects.push(Effect::NextTurn { run, turn });
        self.notify(Notice::TurnBegan { issue: self.issue_ref(id), turn, of });
    }
}
