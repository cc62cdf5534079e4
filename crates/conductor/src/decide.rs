//! The conductor's policy as a pure function: `(State, Event, now) -> (State, Vec<Effect>)`.
//!
//! Nothing here does I/O, reads a clock or draws a random number, so a whole history can be replayed and a
//! simulation of thousands of crashes runs in seconds. Each call makes one [`Transition`]:
//!
//! 1. roll the daily budget over and expire rate limits (`turn_to`, `expire`);
//! 2. on the very first call, take over the issues of the journal (`takeover`);
//! 3. apply the event (`poll`, `reconcile`, `agent_run`, `turns`, `cleanup`, `operator_command`);
//! 4. enforce what depends on time alone: stalls and budgets (`budget`), removals to repeat (`cleanup`),
//!    reads between turns (`turns`), free slots (`slots`), the next poll (`poll`).
//!
//! Because step 4 runs after every event, an event never has to know what becomes possible through it.
//! [`State::next_due`] names the time at which step 4 alone would do something.
//!
//! Invariants, checked after each step of the simulation in `tests/suite/world`:
//!
//! - An issue has at most one run, and its workspace is never removed while a run exists.
//! - No more slots are taken than the rules allow, and nothing is dispatched while the conductor is paused,
//!   draining, rate-limited or without a valid workflow file.
//! - An issue is read from the tracker immediately before its dispatch and between two turns.
//! - Results of overtaken queries change nothing: each carries its [`QueryId`].
//! - Every change of a claimed issue or of the ledger has its `Save`, `Erase` or `SaveLedger` before the
//!   effects that depend on it. A crash between two effects therefore loses work, never knowledge.

mod agent_run;
mod budget;
mod cleanup;
mod operator_command;
mod poll;
mod reconcile;
mod retry;
mod slots;
mod takeover;
mod turns;

use std::collections::BTreeSet;

use carrel_domain::Timestamp;

use crate::claimed_issue::{ClaimedIssue, Run, Stage};
use crate::effect::Effect;
use crate::event::Event;
use crate::notice::{IssueRef, Notice};
use crate::state::{QueryId, State};
use crate::truncate::{MAX_ERROR, truncated};
use carrel_tracker::IssueId;

/// Applies an event to the state, and returns the new state with the effects that follow.
///
/// Journal effects come first. An event that does not apply to the state any more (of a run that has
/// ended, of an overtaken query) leaves it unchanged.
pub fn decide(state: State, event: Event, now: Timestamp) -> (State, Vec<Effect>) {
    let ledger = state.ledger;
    let mut transition = Transition {
        state,
        now,
        effects: Vec::new(),
        changed: BTreeSet::new(),
        erased_ids: BTreeSet::new(),
        reads: Vec::new(),
        query: None,
    };
    transition.state.ledger.today.turn_to(now);
    transition.state.ledger.rate_limited.expire(now);
    transition.start_up();
    transition.apply(event);
    transition.enforce_limits();
    transition.retry_cleanups();
    transition.read_between_turns();
    transition.fill_slots();
    transition.poll_if_due();
    let ledger_changed = transition.state.ledger != ledger;
    transition.finish(ledger_changed)
}

/// A decision in progress: the state, and the effects collected so far.
struct Transition {
    state: State,
    now: Timestamp,
    effects: Vec<Effect>,
    changed: BTreeSet<IssueId>,
    erased_ids: BTreeSet<IssueId>,
    reads: Vec<IssueId>,
    query: Option<QueryId>,
}

impl Transition {
    fn apply(&mut self, event: Event) {
        match event {
            Event::Due => {}
            Event::Polled(query, result) => self.polled(query, result),
            Event::Read(query, ids, result) => self.issues_read(query, &ids, result),
            Event::WorkspaceReady(run, workspace) => {
                self.update_run_issue(run, |claimed| claimed.workspace = Some(workspace));
            }
            Event::AgentUpdated(run, update) => self.agent_updated(run, update),
            Event::RunEnded(run, end) => self.run_ended(run, end),
            Event::Cleaned(issue, result) => self.cleaned(&issue, result),
            Event::WorkflowChanged(rules) => self.workflow_changed(*rules),
            Event::WorkflowInvalid(error) => self.workflow_invalid(error),
            Event::Command(command) => self.command(command),
        }
    }

    fn finish(mut self, ledger_changed: bool) -> (State, Vec<Effect>) {
        if let Some(query) = self.query {
            self.effects.push(Effect::Read(query, std::mem::take(&mut self.reads)));
        }
        let Self { state, effects, changed, erased_ids, .. } = self;
        let saved = changed.into_iter().filter(|id| state.issues.contains_key(id));
        let erased = erased_ids.into_iter().filter(|id| !state.issues.contains_key(id));
        let ledger = ledger_changed.then_some(Effect::SaveLedger);
        let first = saved.map(Effect::Save).chain(erased.map(Effect::Erase)).chain(ledger);
        let all = first.chain(effects).collect();
        (state, all)
    }

    fn notify(&mut self, notice: Notice) {
        self.state.record_notice(self.now, notice.clone());
        self.effects.push(Effect::Notify(notice));
    }

    /// Adds an issue to the read of this transition, and returns its query.
    fn request_read(&mut self, id: IssueId) -> QueryId {
        let state = &mut self.state;
        self.reads.push(id);
        *self.query.get_or_insert_with(|| state.new_query())
    }

    fn issue_ref(&self, id: &IssueId) -> IssueRef {
        self.state.issue_ref(id)
    }

    fn issue_mut(&mut self, id: &IssueId) -> Option<&mut ClaimedIssue> {
        self.state.issues.get_mut(id)
    }

    /// Returns the run of an issue that is in the stage running.
    fn running(&self, id: &IssueId) -> Option<&Run> {
        let Stage::Running(run) = &self.state.issues.get(id)?.stage else { return None };
        Some(run)
    }

    fn running_mut(&mut self, id: &IssueId) -> Option<&mut Run> {
        let Stage::Running(run) = &mut self.issue_mut(id)?.stage else { return None };
        Some(run)
    }

    /// Moves an issue to a stage. Only a resting issue can be in the queue of eligible ones.
    fn set_stage(&mut self, id: &IssueId, stage: Stage) {
        if let Some(claimed) = self.state.issues.get_mut(id) {
            if stage != Stage::Resting {
                self.state.waiting.remove(id);
            }
            claimed.stage = stage;
            self.changed.insert(id.clone());
        }
    }

    fn lacks_progress(&self, id: &IssueId) -> bool {
        let claimed = self.state.issues.get(id);
        claimed.is_some_and(|claimed| claimed.lacks_progress(&self.state.rules))
    }

    fn release(&mut self, id: &IssueId) {
        let issue = self.issue_ref(id);
        self.release_claim(id);
        self.notify(Notice::Released { issue });
    }

    /// Releases the claim of an issue. Spending and workspace are kept until the issue is finished; an
    /// issue without either is erased.
    fn release_claim(&mut self, id: &IssueId) {
        let Some(claimed) = self.state.issues.get_mut(id) else { return };
        claimed.attempt = 0;
        claimed.rate_limited_runs = 0;
        claimed.answer = None;
        claimed.thread = None;
        claimed.turns_without_progress = 0;
        if claimed.workspace.is_some() || claimed.spent.attempts > 0 {
            self.set_stage(id, Stage::Resting);
        } else {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: &IssueId) {
        self.state.issues.remove(id);
        self.erased_ids.insert(id.clone());
    }

    fn ids(&self, matches: impl Fn(&ClaimedIssue) -> bool) -> Vec<IssueId> {
        let issues = self.state.issues.iter().filter(|(_, claimed)| matches(claimed));
        issues.map(|(id, _)| id.clone()).collect()
    }

    fn workflow_changed(&mut self, rules: crate::rules::Rules) {
        let interval = rules.poll_interval;
        self.state.rules = rules;
        self.state.workflow_error = None;
        self.poll_within(interval);
        self.notify(Notice::WorkflowChanged);
    }

    fn workflow_invalid(&mut self, error: String) {
        let error = truncated(error, MAX_ERROR);
        if self.state.workflow_error.as_ref() != Some(&error) {
            self.state.workflow_error = Some(error.clone());
            self.notify(Notice::WorkflowBroken { error });
        }
    }
}
