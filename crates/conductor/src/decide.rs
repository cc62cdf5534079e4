//! The loop as a pure function: what was, what happened, and what follows.

mod agent_run;
mod budget;
mod cleanup;
mod operator_command;
mod poll;
mod rate_limit;
mod reconcile;
mod retry;
mod slots;
mod turns;

use std::collections::BTreeSet;

use carrel_domain::Timestamp;

use crate::claimed_issue::{ClaimedIssue, Stage};
use crate::effect::Effect;
use crate::event::Event;
use crate::notice::{IssueRef, Notice};
use crate::state::{QueryId, State};
use crate::truncate::{MAX_ERROR, truncated};
use carrel_tracker::IssueId;

/// Says what follows from something that happened.
///
/// What is to be remembered comes before what is to be done, so that nothing is begun that would be
/// forgotten.
pub fn decide(state: State, event: Event, now: Timestamp) -> (State, Vec<Effect>) {
    let ledger = state.ledger;
    let mut step = Transition {
        state,
        now,
        effects: Vec::new(),
        changed: BTreeSet::new(),
        gone: BTreeSet::new(),
        wanted: Vec::new(),
        query: None,
    };
    step.state.ledger.today.turn_to(now);
    step.state.ledger.rate_limited.expire(now);
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
struct Transition {
    state: State,
    now: Timestamp,
    effects: Vec<Effect>,
    changed: BTreeSet<IssueId>,
    gone: BTreeSet<IssueId>,
    /// Issues to be read, all with one question.
    wanted: Vec<IssueId>,
    query: Option<QueryId>,
}

impl Transition {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Due => {}
            Event::Polled(query, result) => self.polled(query, result),
            Event::Read(query, ids, result) => self.read(query, &ids, result),
            Event::WorkspaceReady(run, workspace) => {
                self.with_run(run, |entry| entry.workspace = Some(workspace));
            }
            Event::AgentUpdated(run, news) => self.heard(run, news),
            Event::RunEnded(run, end) => self.ended(run, end),
            Event::Cleaned(issue, result) => self.cleaned(&issue, result),
            Event::WorkflowChanged(rules) => self.rules_changed(*rules),
            Event::WorkflowInvalid(error) => self.rules_broken(error),
            Event::Command(order) => self.told(order),
        }
    }

    fn finish(mut self, ledger_changed: bool) -> (State, Vec<Effect>) {
        if let Some(query) = self.query {
            self.effects.push(Effect::Read(query, std::mem::take(&mut self.wanted)));
        }
        let Self { state, effects, changed, gone, .. } = self;
        let saved = changed.into_iter().filter(|id| state.issues.contains_key(id));
        let erased = gone.into_iter().filter(|id| !state.issues.contains_key(id));
        let ledger = ledger_changed.then_some(Effect::SaveLedger);
        let first = saved.map(Effect::Save).chain(erased.map(Effect::Erase)).chain(ledger);
        let all = first.chain(effects).collect();
        (state, all)
    }

    fn say(&mut self, notice: Notice) {
        self.state.record_notice(self.now, notice.clone());
        self.effects.push(Effect::Notify(notice));
    }

    /// Wants an issue to be read, and returns the question that it is read by.
    fn want(&mut self, id: IssueId) -> QueryId {
        let state = &mut self.state;
        self.wanted.push(id);
        *self.query.get_or_insert_with(|| state.new_query())
    }

    fn issue_ref(&self, id: &IssueId) -> IssueRef {
        self.state.issue_ref(id)
    }

    fn entry(&mut self, id: &IssueId) -> Option<&mut ClaimedIssue> {
        self.state.issues.get_mut(id)
    }

    /// Puts an issue somewhere else. Only one that rests can wait to be begun.
    fn put(&mut self, id: &IssueId, stage: Stage) {
        if let Some(entry) = self.state.issues.get_mut(id) {
            if stage != Stage::Resting {
                self.state.waiting.remove(id);
            }
            entry.stage = stage;
            self.changed.insert(id.clone());
        }
    }

    fn release(&mut self, id: &IssueId) {
        let issue = self.issue_ref(id);
        self.let_go(id);
        self.say(Notice::Released { issue });
    }

    /// Lets go of an issue. What was spent on it and where is remembered until it is finished.
    fn let_go(&mut self, id: &IssueId) {
        let Some(entry) = self.state.issues.get_mut(id) else { return };
        entry.attempt = 0;
        entry.rate_limited_runs = 0;
        entry.answer = None;
        entry.thread = None;
        if entry.workspace.is_some() || entry.spent.attempts > 0 {
            self.put(id, Stage::Resting);
        } else {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: &IssueId) {
        self.state.issues.remove(id);
        self.gone.insert(id.clone());
    }

    fn ids(&self, wanted: impl Fn(&ClaimedIssue) -> bool) -> Vec<IssueId> {
        let entries = self.state.issues.iter().filter(|(_, entry)| wanted(entry));
        entries.map(|(id, _)| id.clone()).collect()
    }

    fn rules_changed(&mut self, rules: crate::rules::Rules) {
        let interval = rules.poll_interval;
        self.state.rules = rules;
        self.state.workflow_error = None;
        self.poll_within(interval);
        self.say(Notice::WorkflowChanged);
    }

    fn rules_broken(&mut self, error: String) {
        let error = truncated(error, MAX_ERROR);
        if self.state.workflow_error.as_ref() != Some(&error) {
            self.state.workflow_error = Some(error.clone());
            self.say(Notice::WorkflowBroken { error });
        }
    }
}
