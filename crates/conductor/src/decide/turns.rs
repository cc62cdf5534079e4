//! The turns of an agent.

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
        let Some(entry) = self.entry(id) else { return };
        let Stage::Running(run) = &mut entry.stage else { return };
        if !run.is_in_turn() {
            return;
        }
        entry.rate_limited_runs = 0;
        let stuck = trace.is_some() && trace == entry.last_turn;
        entry.last_turn = trace.or(entry.last_turn.take());
        let over = run.turn >= turns || drains;
        if !over || stuck {
            let query = QueryId::default();
            run.between_turns = Some(BetweenTurns { failures: 0, due: Some(now), query });
        }
        self.changed.insert(id.clone());
        if stuck {
            self.stop(id, FollowUp::Block(BlockReason::NoProgress), "a turn changed nothing");
        } else if over {
            self.finish_run(id);
        }
    }

    /// Lets a run end in peace, after which another may follow.
    pub(super) fn finish_run(&mut self, id: &IssueId) {
        if let Some(ClaimedIssue { stage: Stage::Running(run), .. }) = self.entry(id) {
            run.between_turns = None;
            run.finishing = true;
            let run = run.id;
            self.changed.insert(id.clone());
            self.effects.push(Effect::Finish(run));
        }
    }

    /// Reads the issues of agents whose turn is over.
    pub(super) fn read_between_turns(&mut self) {
        let now = self.now;
        let is_due = |entry: &ClaimedIssue| match &entry.stage {
            Stage::Running(Run { between_turns: Some(waiting), .. }) => {
                waiting.due.is_some_and(|due| due <= now)
            }
            _ => false,
        };
        for id in self.ids(is_due) {
            let query = self.want(id.clone());
            if let Some(ClaimedIssue { stage: Stage::Running(run), .. }) = self.entry(&id)
                && let Some(waiting) = &mut run.between_turns
            {
                waiting.due = None;
                waiting.query = query;
            }
        }
    }

    /// Begins another turn of a run whose issue is still to be worked on, if it may have one.
    pub(super) fn next_turn(&mut self, id: &IssueId) {
        if self.state.ledger.mode == Mode::Draining || self.state.single_pass.is_some() {
            return self.finish_run(id);
        }
        if self.may_not_go_on(id) {
            return;
        }
        let now = self.now;
        let of = self.state.rules.max_turns;
        let Some(ClaimedIssue { stage: Stage::Running(run), .. }) = self.entry(id) else { return };
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
        self.say(Notice::TurnBegan { issue: self.issue_ref(id), turn, of });
    }
}
