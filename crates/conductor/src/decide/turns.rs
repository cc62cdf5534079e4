//! The turns of a run.
//!
//! After each turn the run waits while its issue is read from the tracker. If the issue is still active
//! and the budgets allow it, another turn follows in the same conversation, up to `max_turns`; otherwise
//! the run finishes. A turn whose fingerprint equals that of the turn before made no progress, and blocks
//! the issue: more turns would spend tokens for nothing.

use crate::claimed_issue::{
    BetweenTurns, BlockReason, ClaimedIssue, FollowUp, Run, Stage, TurnFingerprint,
};
use crate::effect::Effect;
use crate::notice::Notice;
use crate::spend::Spend;
use crate::state::{Mode, QueryId};
use carrel_tracker::IssueId;

use super::Transition;

impl Transition {
    pub(super) fn turn_ended(&mut self, id: &IssueId, trace: Option<TurnFingerprint>) {
        let (turns, now) = (self.state.rules.max_turns, self.now);
        let drains = self.state.ledger.mode == Mode::Draining;
        let Some(claimed) = self.issue_mut(id) else { return };
        let Stage::Running(run) = &mut claimed.stage else { return };
        if !run.is_in_turn() {
            return;
        }
        claimed.rate_limited_runs = 0;
        let stuck = trace.is_some() && trace == claimed.last_turn;
        claimed.last_turn = trace.or(claimed.last_turn.take());
        let over = run.turn >= turns || drains;
        if !over || stuck {
            let query = QueryId::default();
            run.between_turns = Some(BetweenTurns { failures: 0, due: Some(now), query });
        }
        self.changed.insert(id.clone());
        if stuck {
            let reason = BlockReason::NoProgress;
            let why = reason.to_string();
            self.stop(id, FollowUp::Block(reason), &why);
        } else if over {
            self.finish_run(id);
        }
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

    /// Starts another turn of a run whose issue is still active, or finishes the run.
    pub(super) fn next_turn(&mut self, id: &IssueId) {
        if self.state.ledger.mode == Mode::Draining || self.state.single_pass.is_some() {
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
