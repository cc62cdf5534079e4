//! A loop without a world: events go in by hand, and effects are looked at.

use std::collections::BTreeMap;

use carrel_conductor::{
    AgentUpdate, ClaimedIssue, Dispatch, Effect, Event, Issue, IssueId, Ledger, Notice,
    OperatorCommand, QueryId, Rules, RunEnd, RunId, Stage, State, TrackerError, TrackerErrorKind,
    TurnEffects, decide,
};
use carrel_domain::Timestamp;

use crate::simulated_world::{BEGIN, rules};

/// A turn that wrote something.
pub(crate) const SOME_EFFECT: TurnEffects =
    TurnEffects { files: true, commits: false, tracker: false };

pub(crate) struct Loop {
    pub(crate) state: State,
    pub(crate) now: i64,
    /// What followed from the last event.
    pub(crate) effects: Vec<Effect>,
}

impl Loop {
    /// Begins with nothing to clean up, so that the tracker is asked at once.
    pub(crate) fn new() -> Self {
        Self::with(rules())
    }

    pub(crate) fn with(rules: Rules) -> Self {
        let mut this = Self::of(State::begin(rules, BTreeMap::new(), Ledger::default()));
        this.apply(Event::Due);
        this
    }

    pub(crate) fn of(state: State) -> Self {
        Self { state, now: BEGIN, effects: Vec::new() }
    }

    pub(crate) fn apply(&mut self, event: Event) {
        let (state, effects) = decide(self.state.clone(), event, Timestamp::from_millis(self.now));
        self.state = state;
        self.effects = effects;
    }

    pub(crate) fn command(&mut self, command: OperatorCommand) {
        self.apply(Event::Command(command));
    }

    /// Lets time pass, and the loop notice it.
    pub(crate) fn after(&mut self, millis: i64) {
        self.now += millis;
        self.apply(Event::Due);
    }

    /// Ends the program, and begins again with what it wrote down.
    pub(crate) fn restart(&mut self) {
        let text = serde_json::to_string(&self.state.issues).unwrap();
        let entries = serde_json::from_str(&text).unwrap();
        let ledger = serde_json::from_str(&serde_json::to_string(&self.state.ledger).unwrap());
        self.state = State::begin(self.state.rules.clone(), entries, ledger.unwrap());
        self.effects.clear();
    }

    pub(crate) fn poll_query(&self) -> Option<QueryId> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Poll(query) => Some(*query),
            _ => None,
        })
    }

    pub(crate) fn read_query(&self) -> Option<(QueryId, Vec<IssueId>)> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Read(query, ids) => Some((*query, ids.clone())),
            _ => None,
        })
    }

    /// Answers the question for issues that was just asked.
    pub(crate) fn lists(&mut self, issues: &[Issue]) {
        let query = self.poll_query().expect("the tracker is asked");
        self.apply(Event::Polled(query, Ok(issues.to_vec())));
    }

    /// Answers the question for single issues that was just asked, with those that are known.
    pub(crate) fn reads(&mut self, issues: &[Issue]) {
        let (query, ids) = self.read_query().expect("issues are read");
        let found = issues.iter().filter(|issue| ids.contains(&issue.id)).cloned().collect();
        self.apply(Event::Read(query, ids, Ok(found)));
    }

    pub(crate) fn fails_to_read(&mut self) {
        let (query, ids) = self.read_query().expect("issues are read");
        self.apply(Event::Read(
            query,
            ids,
            Err(TrackerError::new(TrackerErrorKind::Request, "no answer")),
        ));
    }

    /// Goes on to the next look at the tracker, which lists these.
    pub(crate) fn polls(&mut self, issues: &[Issue]) {
        self.now += i64::try_from(self.state.rules.poll_interval.as_millis()).unwrap();
        self.apply(Event::Due);
        self.lists(issues);
    }

    /// Begins with an issue that is listed, and returns its run.
    pub(crate) fn begins(&mut self, issue: &Issue) -> RunId {
        self.lists(std::slice::from_ref(issue));
        self.reads(std::slice::from_ref(issue));
        self.start().expect("it is begun").run
    }

    pub(crate) fn start(&self) -> Option<&Dispatch> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Dispatch(start) => Some(&**start),
            _ => None,
        })
    }

    pub(crate) fn ends(&mut self, run: RunId, end: RunEnd) {
        self.apply(Event::RunEnded(run, end));
    }

    pub(crate) fn updates(&mut self, run: RunId, update: AgentUpdate) {
        self.apply(Event::AgentUpdated(run, update));
    }

    pub(crate) fn claimed(&self, issue: &Issue) -> &ClaimedIssue {
        &self.state.issues[&issue.id]
    }

    pub(crate) fn stage(&self, issue: &Issue) -> Option<&Stage> {
        self.state.issues.get(&issue.id).map(|claimed| &claimed.stage)
    }

    pub(crate) fn notices(&self) -> Vec<&Notice> {
        let notices = self.effects.iter().filter_map(|effect| match effect {
            Effect::Notify(notice) => Some(notice),
            _ => None,
        });
        notices.collect()
    }

    /// Returns the issues that were given a place, in their order.
    pub(crate) fn taken(&self) -> Vec<String> {
        let ids = self.read_query().map(|(_, ids)| ids).unwrap_or_default();
        ids.into_iter().map(|id| id.0).collect()
    }

    /// Tells whether a workspace is to be removed.
    pub(crate) fn cleans(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::Clean(..)))
    }

    pub(crate) fn stops(&self, run: RunId) -> bool {
        self.effects.contains(&Effect::Stop(run))
    }
}

/// Returns an issue in another state.
pub(crate) fn moved(issue: &Issue, state: &str) -> Issue {
    Issue { state: state.to_owned(), ..issue.clone() }
}
