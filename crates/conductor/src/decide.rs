//! The loop as a pure function: what was, what happened, and what follows.

mod order;
mod poll;
mod refresh;
mod run;
mod slots;

use std::collections::BTreeSet;

use carrel_domain::Timestamp;

use crate::event::{Effect, Event, Notice};
use crate::state::{Entry, Poll, Stage, State};
use carrel_tracker::IssueId;

/// Says what follows from something that happened.
///
/// What is to be remembered comes before what is to be done, so that nothing is begun that would be
/// forgotten.
pub fn decide(state: State, event: Event, now: Timestamp) -> (State, Vec<Effect>) {
    let mut step = Step {
        state,
        now,
        effects: Vec::new(),
        changed: BTreeSet::new(),
        gone: BTreeSet::new(),
        wanted: Vec::new(),
    };
    step.state.today.turn_to(now);
    step.hear(event);
    step.watch_agents();
    step.clean_again();
    step.read_between_turns();
    step.fill_places();
    step.look_at_tracker();
    step.finish()
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
}

impl Step {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Due => self.begin(),
            Event::Polled(question, result) => self.polled(question, result),
            Event::Read(question, asked, result) => self.read(question, &asked, result),
            Event::Placed(run, workspace) => {
                self.with_run(run, |entry, _| entry.workspace = Some(workspace));
            }
            Event::Heard(run, news) => self.heard(run, news),
            Event::Ended(run, end) => self.ended(run, end),
            Event::Cleaned(issue, result) => self.cleaned(&issue, result),
            Event::Changed(rules) => self.state.rules = *rules,
            Event::Told(order) => self.told(order),
        }
    }

    fn finish(mut self) -> (State, Vec<Effect>) {
        if !self.wanted.is_empty() {
            let (question, wanted) = (self.state.ask(), std::mem::take(&mut self.wanted));
            self.effects.push(Effect::Read(question, wanted));
        }
        let Self { state, effects, changed, gone, .. } = self;
        let saved = changed.into_iter().filter(|id| state.entries.contains_key(id));
        let erased = gone.into_iter().filter(|id| !state.entries.contains_key(id));
        let first: Vec<_> = saved.map(Effect::Save).chain(erased.map(Effect::Erase)).collect();
        (state, first.into_iter().chain(effects).collect())
    }

    fn say(&mut self, notice: Notice) {
        self.effects.push(Effect::Say(notice));
    }

    fn entry(&mut self, id: &IssueId) -> Option<&mut Entry> {
        self.state.entries.get_mut(id)
    }

    /// Puts an issue somewhere else.
    fn put(&mut self, id: &IssueId, stage: Stage) {
        if let Some(entry) = self.state.entries.get_mut(id) {
            entry.stage = stage;
            self.changed.insert(id.clone());
        }
    }

    /// Lets go of an issue. If it has a workspace, that is remembered.
    fn release(&mut self, id: &IssueId) {
        let Some(entry) = self.state.entries.get_mut(id) else { return };
        entry.attempt = 0;
        entry.answer = None;
        if entry.workspace.is_some() {
            self.put(id, Stage::Resting);
        } else {
            self.forget(id);
        }
        self.say(Notice::Released { issue: id.clone() });
    }

    fn forget(&mut self, id: &IssueId) {
        self.state.entries.remove(id);
        self.gone.insert(id.clone());
    }

    /// Removes the workspace of a finished issue. Nobody may be at work in it.
    fn clean(&mut self, id: &IssueId) {
        let Some(entry) = self.state.entries.get(id) else { return };
        debug_assert!(entry.stage.run().is_none(), "an agent works in {id}");
        let (issue, workspace) = (Box::new(entry.issue.clone()), entry.workspace.clone());
        let failures = match entry.stage {
            Stage::Cleaning { failures, .. } => failures,
            _ => 0,
        };
        self.put(id, Stage::Cleaning { failures, due: None });
        self.effects.push(Effect::Clean(issue, workspace));
    }

    fn cleaned(&mut self, id: &IssueId, result: Result<(), String>) {
        let Some(Entry { stage: Stage::Cleaning { failures, .. }, .. }) = self.entry(id) else {
            return;
        };
        let failures = *failures + 1;
        match result {
            Ok(()) => self.forget(id),
            Err(error) => {
                let longest = self.state.rules.longest_wait;
                let due = self.now.after(crate::backoff::before(failures, id, longest));
                self.put(id, Stage::Cleaning { failures, due: Some(due) });
                self.say(Notice::CleanupFailed { issue: id.clone(), error });
            }
        }
        self.end_sweep();
    }

    /// Tries removals again that failed.
    fn clean_again(&mut self) {
        let now = self.now;
        let is_due = |entry: &Entry| matches!(entry.stage, Stage::Cleaning { due: Some(due), .. } if due <= now);
        for id in self.ids(is_due) {
            self.clean(&id);
        }
    }

    fn ids(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<IssueId> {
        let entries = self.state.entries.iter().filter(|(_, entry)| wanted(entry));
        entries.map(|(id, _)| id.clone()).collect()
    }

    /// Tells whether what finished issues left behind is still being looked at.
    fn is_sweeping(&self) -> bool {
        matches!(self.state.poll, Poll::Fresh | Poll::Sweeping { .. })
    }
}
