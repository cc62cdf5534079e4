//! A tracker, agents and a disk that exist only in memory, with a clock of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use carrel_conductor::{
    Day, Effect, End, Entry, Event, Fault, FaultKind, Issue, IssueId, News, Notice, Order, Reason,
    Rules, RunId, Stage, State, Trace, decide,
};
use carrel_config::Budgets;
use carrel_domain::Timestamp;
use fastrand::Rng;

pub(crate) const BEGIN: i64 = 1_800_000_000_000;

pub(crate) fn rules() -> Rules {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Rules {
        active: words(&["todo", "in progress"]),
        terminal: words(&["done", "cancelled"]),
        required_labels: BTreeSet::new(),
        agents: 3,
        agents_by_state: BTreeMap::new(),
        turns: 3,
        longest_wait: Duration::from_mins(1),
        stall: Some(Duration::from_mins(1)),
        interval: Duration::from_secs(30),
        budgets: Budgets::default(),
    }
}

pub(crate) fn issue(number: usize) -> Issue {
    Issue {
        id: IssueId(format!("id-{number}")),
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
    End(RunId, End),
    /// A workspace is removed.
    Remove(IssueId),
}

/// An agent, as far as anybody outside can see it.
#[derive(Debug)]
struct Agent {
    issue: IssueId,
    ending: bool,
    tokens: u64,
}

pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) now: i64,
    pub(crate) state: State,
    pub(crate) tracker: BTreeMap<IssueId, Issue>,
    pub(crate) saved: BTreeMap<IssueId, Entry>,
    pub(crate) workspaces: BTreeSet<IssueId>,
    pub(crate) notices: Vec<Notice>,
    /// One in so many things goes wrong; none if zero.
    pub(crate) faults: u32,
    agents: BTreeMap<RunId, Agent>,
    coming: Vec<Coming>,
    removing: BTreeSet<IssueId>,
    pub(crate) started: usize,
    /// What happened, if somebody wants to see it.
    log: Option<Vec<String>>,
}

/// A history that breaks a promise is shown.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log.take().unwrap_or_default().join("\n"));
        }
    }
}

impl World {
    pub(crate) fn new(seed: u64, issues: usize) -> Self {
        let rng = Rng::with_seed(seed);
        let tracker = (0..issues).map(issue).map(|issue| (issue.id.clone(), issue)).collect();
        Self {
            rng,
            now: BEGIN,
            state: State::begin(rules(), BTreeMap::new(), Day::default()),
            tracker,
            saved: BTreeMap::new(),
            workspaces: BTreeSet::new(),
            notices: Vec::new(),
            faults: 0,
            agents: BTreeMap::new(),
            coming: Vec::new(),
            removing: BTreeSet::new(),
            started: 0,
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

    fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    /// Lets the loop hear something, and does what follows.
    pub(crate) fn hear(&mut self, event: Event) {
        self.write_down(|at| format!("{at} {event:?}"));
        let retrying = |(_, entry): &(&IssueId, &Entry)| matches!(entry.stage, Stage::Retrying(_));
        let waiting = self.state.entries.iter().filter(retrying);
        let before: Vec<_> = waiting.map(|(id, entry)| (id.clone(), entry.clone())).collect();
        let order = match &event {
            Event::Told(Order::RetryNow(id) | Order::Answer(id, _)) => Some(id.clone()),
            _ => None,
        };
        let nothing = State::begin(rules(), BTreeMap::new(), Day::default());
        let state = std::mem::replace(&mut self.state, nothing);
        let (state, effects) = decide(state, event, self.time());
        self.state = state;
        for effect in effects {
            self.write_down(|_| format!("    {effect:?}"));
            self.perform(effect);
        }
        self.check(&before, order.as_ref());
    }

    fn soon(&mut self, what: What) {
        let wait = self.rng.i64(1..3000);
        self.coming.push(Coming { at: self.now + wait, what });
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Poll(_) | Effect::Read(..) => self.soon(What::Answer(effect)),
            Effect::Start(start) => {
                self.started += 1;
                self.soon(What::Begin(start.run, start.issue.id));
            }
            Effect::NextTurn { run, .. } => self.soon(What::Act(run)),
            Effect::Finish(run) => self.end(run, End::Well),
            Effect::Stop(run) => self.end(run, End::Failed("stopped".to_owned())),
            Effect::Clean(issue, _) => {
                assert!(self.removing.insert(issue.id.clone()), "removed twice at once");
                self.soon(What::Remove(issue.id));
            }
            Effect::Save(id) => {
                self.saved.insert(id.clone(), self.state.entries[&id].clone());
            }
            Effect::Erase(id) => {
                self.saved.remove(&id);
            }
            Effect::Say(notice) => self.notices.push(notice),
        }
    }

    /// Ends an agent, or one that is about to begin.
    fn end(&mut self, run: RunId, end: End) {
        if let Some(agent) = self.agents.get_mut(&run) {
            if std::mem::replace(&mut agent.ending, true) {
                return;
            }
        } else {
            let begins = |coming: &Coming| matches!(coming.what, What::Begin(id, _) if id == run);
            self.coming.retain(|coming| !begins(coming));
        }
        self.soon(What::End(run, end));
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
            None => self.hear(Event::Due),
        }
        true
    }

    /// Lets so many seconds pass.
    pub(crate) fn pass(&mut self, seconds: i64) {
        let until = self.now + seconds * 1000;
        while self.step(until) {}
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Answer(Effect::Poll(question)) => {
                let active = |issue: &&Issue| rules().active.contains(&issue.normal_state());
                let found = self.tracker.values().filter(active).cloned().collect();
                let answer = if self.goes_wrong() { Err(self.fault()) } else { Ok(found) };
                self.hear(Event::Polled(question, answer));
            }
            What::Answer(Effect::Read(question, ids)) => {
                let found = ids.iter().filter_map(|id| self.tracker.get(id)).cloned().collect();
                let answer = if self.goes_wrong() { Err(self.fault()) } else { Ok(found) };
                self.hear(Event::Read(question, ids, answer));
            }
            What::Answer(other) => panic!("{other:?} has no answer"),
            What::Begin(run, id) => self.begin(run, &id),
            What::Act(run) => self.act(run),
            What::End(run, end) => {
                self.agents.remove(&run);
                self.hear(Event::Ended(run, end));
            }
            What::Remove(id) => {
                let alive = self.agents.values().any(|agent| agent.issue == id);
                assert!(!alive, "a workspace is removed while an agent works in it");
                self.removing.remove(&id);
                let failed = self.goes_wrong();
                if !failed {
                    self.workspaces.remove(&id);
                }
                let result = if failed { Err("busy".to_owned()) } else { Ok(()) };
                self.hear(Event::Cleaned(id, result));
            }
        }
    }

    fn fault(&mut self) -> Fault {
        let retry_after = self.rng.bool().then(|| Duration::from_secs(self.rng.u64(1..120)));
        Fault { retry_after, ..Fault::new(FaultKind::Request, "no answer") }
    }

    fn begin(&mut self, run: RunId, id: &IssueId) {
        let there = self.agents.values().filter(|agent| agent.issue == *id).count();
        assert_eq!(there, 0, "two agents work on {id}");
        assert!(!self.removing.contains(id), "an agent begins in what is being removed");
        self.workspaces.insert(id.clone());
        self.agents.insert(run, Agent { issue: id.clone(), ending: false, tokens: 0 });
        self.hear(Event::Placed(run, PathBuf::from(format!("/root/{id}"))));
        let (session, thread) = (format!("{}-1", run.0), run.0.to_string());
        self.hear(Event::Heard(run, News::Session { session, thread }));
        self.soon(What::Act(run));
    }

    fn act(&mut self, run: RunId) {
        let Some(agent) = self.agents.get_mut(&run).filter(|agent| !agent.ending) else { return };
        agent.tokens += 10;
        let tokens = agent.tokens;
        let used = carrel_conductor::Spend { total_tokens: tokens, ..Default::default() };
        self.hear(Event::Heard(run, News::Usage(used)));
        if self.agents.get(&run).is_none_or(|agent| agent.ending) {
            return;
        }
        if self.goes_wrong() {
            return self.misbehave(run);
        }
        if self.rng.u8(..3) == 0 {
            let trace = Trace { tree: tokens.to_string(), answer: String::new() };
            self.hear(Event::Heard(run, News::TurnEnded(Some(trace))));
        } else {
            self.soon(What::Act(run));
        }
    }

    fn misbehave(&mut self, run: RunId) {
        let end = match self.rng.u8(..5) {
            0 => End::Failed("it crashed".to_owned()),
            1 => End::RateLimited(None),
            2 => End::Blocked(Reason::Input("which one?".to_owned())),
            3 => End::Well,
            // It says nothing any more.
            _ => return,
        };
        self.end(run, end);
    }

    /// Ends the program and everything that it started, and begins again with what was remembered.
    pub(crate) fn crash(&mut self) {
        self.write_down(|at| format!("{at} crash"));
        self.agents.clear();
        self.coming.clear();
        self.removing.clear();
        let today = self.state.today;
        self.state = State::begin(rules(), self.saved.clone(), today);
        self.now += self.rng.i64(1..60_000);
    }

    /// An agent ends by itself.
    pub(crate) fn kill(&mut self, run: RunId, end: End) {
        self.agents.remove(&run);
        self.hear(Event::Ended(run, end));
    }

    pub(crate) fn entry(&self, number: usize) -> Option<&Entry> {
        self.state.entries.get(&issue(number).id)
    }

    pub(crate) fn move_to(&mut self, number: usize, state: &str) {
        if let Some(issue) = self.tracker.get_mut(&issue(number).id) {
            state.clone_into(&mut issue.state);
        }
    }

    /// What holds after every step, whatever happened.
    fn check(&self, before: &[(IssueId, Entry)], order: Option<&IssueId>) {
        assert!(self.state.agents() <= self.state.rules.agents, "more agents than may run");
        for agent in self.agents.values() {
            let same = self.agents.values().filter(|other| other.issue == agent.issue);
            assert_eq!(same.count(), 1, "two agents work on {}", agent.issue);
        }
        for (run, agent) in &self.agents {
            let known = self.state.entries.get(&agent.issue).and_then(|entry| entry.stage.run());
            assert_eq!(known.map(|run| run.id), Some(*run), "nobody knows of an agent");
        }
        for (id, was) in before {
            if let Some(entry) = self.state.entries.get(id) {
                self.check_retry(id, was, entry, order);
            }
        }
        self.check_memory();
    }

    fn check_retry(&self, id: &IssueId, was: &Entry, is: &Entry, order: Option<&IssueId>) {
        let Stage::Retrying(retry) = &was.stage else { return };
        if is.stage.has_place() && order != Some(id) {
            assert!(retry.due <= self.time(), "{id} was taken up before its time");
        }
        if let Stage::Retrying(now) = &is.stage
            && now.no_slot
            && !retry.no_slot
        {
            assert_eq!(was.attempt, is.attempt, "waiting for a place is no failure");
        }
    }

    /// Whatever a restart needs has been remembered.
    fn check_memory(&self) {
        let ids = |entries: &BTreeMap<IssueId, Entry>| entries.keys().cloned().collect::<Vec<_>>();
        assert_eq!(ids(&self.saved), ids(&self.state.entries));
        for (id, entry) in &self.state.entries {
            let saved = &self.saved[id];
            let same = std::mem::discriminant(&saved.stage) == std::mem::discriminant(&entry.stage);
            assert!(same, "{id} is remembered as {:?} and is {:?}", saved.stage, entry.stage);
            assert_eq!(saved.attempt, entry.attempt, "{id}");
            assert_eq!(saved.thread, entry.thread, "{id}");
            assert_eq!(saved.workspace, entry.workspace, "{id}");
        }
    }
}
