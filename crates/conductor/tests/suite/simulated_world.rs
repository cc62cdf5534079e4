//! A tracker, agents and a disk that exist only in memory, with a clock of their own.

mod accounting;
mod agents;
mod invariants;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use carrel_conductor::{
    ClaimedIssue, Effect, Event, Issue, IssueId, Ledger, Notice, OperatorCommand, PollState, Rules,
    RunId, State, TrackerError, TrackerErrorKind, decide,
};
use carrel_config::Budgets;
use carrel_domain::Timestamp;
use fastrand::Rng;

use accounting::Accounts;
use agents::Agent;

pub(crate) const BEGIN: i64 = 1_800_000_000_000;

pub(crate) fn rules() -> Rules {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Rules {
        active: words(&["todo", "in progress"]),
        terminal: words(&["done", "cancelled"]),
        ..empty_rules()
    }
}

/// Rules for no issue at all, which cost nothing to make.
fn empty_rules() -> Rules {
    Rules {
        active: BTreeSet::new(),
        terminal: BTreeSet::new(),
        required_labels: BTreeSet::new(),
        max_agents: 3,
        max_agents_by_state: BTreeMap::new(),
        max_turns: 3,
        max_turns_without_progress: Some(3),
        max_backoff: Duration::from_mins(1),
        stall_timeout: Some(Duration::from_mins(1)),
        poll_interval: Duration::from_secs(30),
        budgets: Budgets::default(),
    }
}

pub(crate) fn id(number: usize) -> IssueId {
    IssueId(format!("id-{number}"))
}

pub(crate) fn issue(number: usize) -> Issue {
    Issue {
        id: id(number),
        native_ref: None,
        identifier: format!("CAR-{number}"),
        title: format!("Issue {number}"),
        description: None,
        priority: None,
        state: "Todo".to_owned(),
        branch_name: None,
        url: None,
        assignee_id: None,
        labels: Vec::new(),
        blocked_by: Vec::new(),
        dispatchable: true,
        created_at: Some(Timestamp::from_millis(BEGIN + i64::try_from(number).unwrap())),
        updated_at: None,
    }
}

/// What will happen, and when.
#[derive(Debug)]
struct Coming {
    at: i64,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Answer a question.
    Answer(Effect),
    /// An agent begins.
    Begin(RunId, IssueId),
    /// An agent does something.
    Act(RunId),
    /// An agent is gone.
    RunEnd(RunId, carrel_conductor::RunEnd),
    /// A workspace is removed.
    Remove(IssueId),
    /// Something is heard that was heard before.
    Echo(Event),
}

pub(crate) struct SimulatedWorld {
    pub(crate) rng: Rng,
    pub(crate) now: i64,
    pub(crate) state: State,
    pub(crate) tracker: BTreeMap<IssueId, Issue>,
    pub(crate) saved: BTreeMap<IssueId, ClaimedIssue>,
    pub(crate) ledger: Ledger,
    pub(crate) workspaces: BTreeSet<IssueId>,
    pub(crate) notices: Vec<Notice>,
    /// One in so many things goes wrong; none if zero.
    pub(crate) faults: u32,
    pub(crate) agents: BTreeMap<RunId, Agent>,
    coming: Vec<Coming>,
    pub(crate) removing: BTreeSet<IssueId>,
    pub(crate) started: usize,
    pub(crate) accounts: Accounts,
    /// Effects after which the program dies in the middle of what it does.
    pub(crate) dies_after: Option<usize>,
    /// What happened, if somebody wants to see it.
    log: Option<Vec<String>>,
}

/// A history that breaks a promise is shown.
impl Drop for SimulatedWorld {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log.take().unwrap_or_default().join("\n"));
        }
    }
}

impl SimulatedWorld {
    pub(crate) fn new(seed: u64, issues: usize) -> Self {
        let tracker = (0..issues).map(issue).map(|issue| (issue.id.clone(), issue)).collect();
        Self {
            rng: Rng::with_seed(seed),
            now: BEGIN,
            state: State::begin(rules(), BTreeMap::new(), Ledger::default()),
            tracker,
            saved: BTreeMap::new(),
            ledger: Ledger::default(),
            workspaces: BTreeSet::new(),
            notices: Vec::new(),
            faults: 0,
            agents: BTreeMap::new(),
            coming: Vec::new(),
            removing: BTreeSet::new(),
            started: 0,
            accounts: Accounts::default(),
            dies_after: None,
            log: None,
        }
    }

    /// Makes it remember what happens, to show it when a promise is broken.
    pub(crate) fn observed(mut self) -> Self {
        self.log = Some(Vec::new());
        self
    }

    fn write_down(&mut self, what: impl FnOnce(i64) -> String) {
        let at = self.now - BEGIN;
        if let Some(log) = &mut self.log {
            log.push(what(at));
        }
    }

    fn goes_wrong(&mut self) -> bool {
        self.faults > 0 && self.rng.u32(..self.faults) == 0
    }

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    pub(crate) fn command(&mut self, command: OperatorCommand) {
        self.apply(Event::Command(command));
    }

    /// Lets the loop hear something, and does what follows.
    pub(crate) fn apply(&mut self, event: Event) {
        self.write_down(|at| format!("{at} {event:?}"));
        self.accounts.apply(&event, &self.state);
        let nothing = State::begin(empty_rules(), BTreeMap::new(), self.ledger);
        let state = std::mem::replace(&mut self.state, nothing);
        let (state, effects) = decide(state, event, self.time());
        self.state = state;
        let most = self.dies_after.take().unwrap_or(usize::MAX);
        let mut dead = false;
        for (index, effect) in effects.into_iter().enumerate() {
            self.write_down(|_| format!("    {effect:?}"));
            dead |= index >= most && !is_writing(&effect);
            if dead { self.miss(effect) } else { self.perform(effect) }
        }
        if dead {
            self.crash();
        } else {
            self.check();
        }
    }

    /// Something was written down as done, and then it was not done.
    fn miss(&mut self, effect: Effect) {
        match effect {
            Effect::Dispatch(start) => self.accounts.start(&start),
            Effect::NextTurn { run, .. } => self.next_turn(run),
            Effect::Notify(notice) => self.accounts.note(&notice, self.now),
            _ => {}
        }
    }

    fn soon(&mut self, what: What) {
        // Now and then an answer takes so long that it is out of date.
        let most = if self.faults > 0 && self.rng.u8(..10) == 0 { 90_000 } else { 3000 };
        let wait = self.rng.i64(1..most);
        self.coming.push(Coming { at: self.now + wait, what });
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Poll(_) | Effect::Read(..) => self.soon(What::Answer(effect)),
            Effect::Dispatch(start) => {
                self.check_start(&start);
                self.started += 1;
                self.accounts.start(&start);
                self.soon(What::Begin(start.run, start.issue.id));
            }
            Effect::NextTurn { run, .. } => {
                self.next_turn(run);
                self.soon(What::Act(run));
            }
            Effect::Finish(run) => self.end(run, carrel_conductor::RunEnd::Completed),
            Effect::Stop(run) => {
                self.end(run, carrel_conductor::RunEnd::Failed("stopped".to_owned()));
            }
            Effect::Clean(issue, _) => {
                self.check_clean(&issue);
                assert!(self.removing.insert(issue.id.clone()), "removed twice at once");
                self.soon(What::Remove(issue.id));
            }
            Effect::Save(id) => {
                self.saved.insert(id.clone(), self.state.issues[&id].clone());
            }
            Effect::Erase(id) => {
                self.saved.remove(&id);
                self.accounts.forget(&id);
            }
            Effect::SaveLedger => self.ledger = self.state.ledger,
            Effect::Notify(notice) => {
                self.accounts.note(&notice, self.now);
                self.notices.push(notice);
            }
        }
    }

    /// Lets time pass until the next thing happens, at most until then.
    pub(crate) fn step(&mut self, until: i64) -> bool {
        let due = self.state.next_due().map(Timestamp::as_millis);
        let next = self.coming.iter().map(|coming| coming.at).min();
        let Some(at) = due.into_iter().chain(next).min().filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(at);
        match self.coming.iter().position(|coming| coming.at <= self.now) {
            Some(index) => {
                let what = self.coming.swap_remove(index).what;
                self.happen(what);
            }
            None => self.apply_due(),
        }
        true
    }

    /// Time moves on: when a moment has come and been heard, another is named.
    fn apply_due(&mut self) {
        self.apply(Event::Due);
        let due = self.state.next_due().filter(|_| self.state.poll != PollState::NotStarted);
        assert!(due.is_none_or(|due| due > self.time()), "it would be due for ever: {due:?}");
    }

    /// Lets so many seconds pass.
    pub(crate) fn pass(&mut self, seconds: i64) {
        let until = self.now + seconds * 1000;
        while self.step(until) {}
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Answer(Effect::Poll(query)) => {
                let active = &self.state.rules.active;
                let found = self.tracker.values();
                let found = found.filter(|issue| active.contains(&issue.normal_state())).cloned();
                let found = found.collect();
                let answer = if self.goes_wrong() { Err(self.fault()) } else { Ok(found) };
                self.hear_twice(Event::Polled(query, answer));
            }
            What::Answer(Effect::Read(query, ids)) => {
                let found = ids.iter().filter_map(|id| self.tracker.get(id)).cloned().collect();
                let answer = if self.goes_wrong() { Err(self.fault()) } else { Ok(found) };
                self.hear_twice(Event::Read(query, ids, answer));
            }
            What::Answer(other) => panic!("{other:?} has no answer"),
            What::Begin(run, id) => self.begin(run, &id),
            What::Act(run) => self.act(run),
            What::RunEnd(run, end) => {
                self.agents.remove(&run);
                self.hear_twice(Event::RunEnded(run, end));
            }
            What::Remove(id) => self.remove(id),
            What::Echo(event) => self.apply(event),
        }
    }

    /// Lets the loop hear something which, when things go wrong, it hears again much later.
    fn hear_twice(&mut self, event: Event) {
        if self.goes_wrong() && self.rng.bool() {
            let at = self.now + self.rng.i64(1..90_000);
            self.coming.push(Coming { at, what: What::Echo(event.clone()) });
        }
        self.apply(event);
    }

    fn remove(&mut self, id: IssueId) {
        let alive = self.agents.values().any(|agent| agent.issue == id);
        assert!(!alive, "a workspace is removed while an agent works in it");
        self.removing.remove(&id);
        let failed = self.goes_wrong();
        if !failed {
            self.workspaces.remove(&id);
        }
        let result = if failed { Err("busy".to_owned()) } else { Ok(None) };
        self.apply(Event::Cleaned(id, result));
    }

    fn fault(&mut self) -> TrackerError {
        let retry_after = self.rng.bool().then(|| Duration::from_secs(self.rng.u64(1..120)));
        TrackerError { retry_after, ..TrackerError::new(TrackerErrorKind::Request, "no answer") }
    }

    /// Ends the program and everything that it started, and begins again with what was remembered.
    pub(crate) fn crash(&mut self) {
        self.write_down(|at| format!("{at} crash"));
        self.agents.clear();
        self.coming.clear();
        self.removing.clear();
        self.state = State::begin(self.state.rules.clone(), self.saved.clone(), self.ledger);
        self.now += self.rng.i64(1..60_000);
    }

    pub(crate) fn claimed(&self, number: usize) -> Option<&ClaimedIssue> {
        self.state.issues.get(&id(number))
    }

    pub(crate) fn move_to(&mut self, number: usize, state: &str) {
        if let Some(issue) = self.tracker.get_mut(&id(number)) {
            state.clone_into(&mut issue.state);
        }
    }
}

/// Tells whether an effect belongs to those that are written at once, all or none.
fn is_writing(effect: &Effect) -> bool {
    matches!(effect, Effect::Save(_) | Effect::Erase(_) | Effect::SaveLedger)
}
