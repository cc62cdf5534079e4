//! The turns of an agent.

use crate::entry::{BetweenTurns, Entry, Reason, Run, Stage, Then, Trace};
use crate::event::Effect;
use crate::notice::Notice;
use crate::spend::Spend;
use crate::state::{Mode, Question};
use carrel_tracker::IssueId;

use super::Step;

impl Step {
    pub(super) fn turn_ended(&mut self, id: &IssueId, trace: Option<Trace>) {
        let (turns, now) = (self.state.rules.turns, self.now);
        let drains = self.state.ledger.mode == Mode::Draining;
        let Some(entry) = self.entry(id) else { return };
        let Stage::Running(run) = &mut entry.stage else { return };
        if !run.is_in_turn() {
            return;
        }
        entry.limited = 0;
        let stuck = trace.is_some() && trace == entry.last_turn;
        entry.last_turn = trace.or(entry.last_turn.take());
        let over = run.turn >= turns || drains;
        if !over || stuck {
            let asked = Question::default();
            run.between_turns = Some(BetweenTurns { failures: 0, due: Some(now), asked });
        }
        self.changed.insert(id.clone());
        if stuck {
            self.stop(id, Then::Block(Reason::NoProgress), "a turn changed nothing");
        } else if over {
            self.finish_run(id);
        }
    }

    /// Lets a run end in peace, after which another may follow.
    pub(super) fn finish_run(&mut self, id: &IssueId) {
        if let Some(Entry { stage: Stage::Running(run), .. }) = self.entry(id) {
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
        let is_due = |entry: &Entry| match &entry.stage {
            Stage::Running(Run { between_turns: Some(waiting), .. }) => {
                waiting.due.is_some_and(|due| due <= now)
            }
            _ => false,
        };
        for id in self.ids(is_due) {
            let asked = self.want(id.clone());
            if let Some(Entry { stage: Stage::Running(run), .. }) = self.entry(&id)
                && let Some(waiting) = &mut run.between_turns
            {
                waiting.due = None;
                waiting.asked = asked;
            }
        }
    }

    /// Begins another turn of a run whose issue is still to be worked on, if it may have one.
    pub(super) fn next_turn(&mut self, id: &IssueId) {
        if self.state.ledger.mode == Mode::Draining || self.state.once.is_some() {
            return self.finish_run(id);
        }
        if self.may_not_go_on(id) {
            return;
        }
        let now = self.now;
        let of = self.state.rules.turns;
        let Some(Entry { stage: Stage::Running(run), .. }) = self.entry(id) else { return };
        run.turn += 1;
        run.turn_started_at = now;
        run.heard_at = now;
        run.between_turns = None;
        run.spent.turns += 1;
        run.spent_before_turn = run.spent;
        let (run, turn) = (run.id, run.turn);
        let begun = Spend { turns: 1, ..Spend::default() };
        self.spend_on(id, begun, begun);
        self.effects.push(Effect::NextTurn { run, turn });
        self.say(Notice::TurnBegan { issue: self.subject(id), turn, of });
    }
}
