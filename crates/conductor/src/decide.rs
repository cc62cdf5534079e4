//! The loop as a pure function: what was, what happened, and what follows.

mod budget;
mod cleanup;
mod follow;
mod hold;
mod order;
mod poll;
mod refresh;
mod run;
mod slots;
mod turn;

use std::collections::BTreeSet;

use carrel_domain::Timestamp;

use crate::entry::{Entry, Stage};
use crate::event::{Effect, Event};
use crate::notice::{Notice, Subject};
use crate::state::{Question, State};
use crate::text::{MAX_ERROR, bounded};
use carrel_tracker::IssueId;

/// Says what follows from something that happened.
///
/// What is to be remembered comes before what is to be done, so that nothing is begun that would be
/// forgotten.
pub fn decide(state: State, event: Event, now: Timestamp) -> (State, Vec<Effect>) {
    let ledger = state.ledger;
    let mut step = Step {
        state,
        now,
        effects: Vec::new(),
        changed: BTreeSet::new(),
        gone: BTreeSet::new(),
        wanted: Vec::new(),
        question: None,
    };
    step.state.ledger.today.turn_to(now);
    step.state.ledger.hold.pass(now);
    step.begin();
    step.hear(event);
    step.watch_agents();
    step.clean_again();
    step.read_between_turns();
    step.fill_places();
    step.look_at_tracker();
    let ledger_changed = step.state.ledger != ledger;
    step.finish(ledger_changed)
}

/// One decision in the making.
struct Step {
    state: State,
    now: Timestamp,
    effects: Vec<Effect>,
    changed: BTreeSet<IssueId>,
    gone: BTreeSet<IssueId>,
    /// Issues to be read, all with one question.
    wanted: Vec<IssueId>,
    question: Option<Question>,
}

impl Step {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Due => {}
            Event::Polled(question, result) => self.polled(question, result),
            Event::Read(question, asked, result) => self.read(question, &asked, result),
            Event::Placed(run, workspace) => {
                self.with_run(run, |entry| entry.workspace = Some(workspace));
            }
            Event::Heard(run, news) => self.heard(run, news),
            Event::Ended(run, end) => self.ended(run, end),
            Event::Cleaned(issue, result) => self.cleaned(&issue, result),
            Event::Changed(rules) => self.rules_changed(*rules),
            Event::Broken(error) => self.rules_broken(error),
            Event::Told(order) => self.told(order),
        }
    }

    fn finish(mut self, ledger_changed: bool) -> (State, Vec<Effect>) {
        if let Some(question) = self.question {
            self.effects.push(Effect::Read(question, std::mem::take(&mut self.wanted)));
        }
        let Self { state, effects, changed, gone, .. } = self;
        let saved = changed.into_iter().filter(|id| state.entries.contains_key(id));
        let erased = gone.into_iter().filter(|id| !state.entries.contains_key(id));
        let ledger = ledger_changed.then_some(Effect::SaveLedger);
        let first = saved.map(Effect::Save).chain(erased.map(Effect::Erase)).chain(ledger);
        let all = first.chain(effects).collect();
        (state, all)
    }

    fn say(&mut self, notice: Notice) {
        self.state.keep(self.now, notice.clone());
        self.effects.push(Effect::Say(notice));
    }

    /// Wants an issue to be read, and returns the question that it is read by.
    fn want(&mut self, id: IssueId) -> Question {
        let state = &mut self.state;
        self.wanted.push(id);
        *self.question.get_or_insert_with(|| state.ask())
    }

    fn subject(&self, id: &IssueId) -> Subject {
        self.state.subject(id)
    }

    fn entry(&mut self, id: &IssueId) -> Option<&mut Entry> {
        self.state.entries.get_mut(id)
    }

    /// Puts an issue somewhere else. Only one that rests can wait to be begun.
    fn put(&mut self, id: &IssueId, stage: Stage) {
        if let Some(entry) = self.state.entries.get_mut(id) {
            if stage != Stage::Resting {
                self.state.waiting.remove(id);
            }
            entry.stage = stage;
            self.changed.insert(id.clone());
        }
    }

    fn release(&mut self, id: &IssueId) {
        let issue = self.subject(id);
        self.let_go(id);
        self.say(Notice::Released { issue });
    }

    /// Lets go of an issue. What was spent on it and where is remembered until it is finished.
    fn let_go(&mut self, id: &IssueId) {
        let Some(entry) = self.state.entries.get_mut(id) else { return };
        entry.attempt = 0;
        entry.limited = 0;
        entry.answer = None;
        entry.thread = None;
        if entry.workspace.is_some() || entry.spent.attempts > 0 {
            self.put(id, Stage::Resting);
        } else {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: &IssueId) {
        self.state.entries.remove(id);
        self.gone.insert(id.clone());
    }

    fn ids(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<IssueId> {
        let entries = self.state.entries.iter().filter(|(_, entry)| wanted(entry));
        entries.map(|(id, _)| id.clone()).collect()
    }

    fn rules_changed(&mut self, rules: crate::rules::Rules) {
        let interval = rules.interval;
        self.state.rules = rules;
        self.state.broken = None;
        self.poll_within(interval);
        self.say(Notice::WorkflowChanged);
    }

    fn rules_broken(&mut self, error: String) {
        let error = bounded(error, MAX_ERROR);
        if self.state.broken.as_ref() != Some(&error) {
            self.state.broken = Some(error.clone());
            self.say(Notice::WorkflowBroken { error });
        }
    }
}
