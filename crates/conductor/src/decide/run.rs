//! Agents: their start and their end.

use std::time::Duration;

use crate::backoff;
use crate::entry::{Entry, Reason, Run, RunId, Said, Stage, Then, Why};
use crate::event::{Effect, End, News, Start};
use crate::limits;
use crate::notice::{Notice, Outcome};
use crate::spend::Spend;
use crate::text::{MAX_ERROR, MAX_MESSAGE, bounded};
use carrel_tracker::IssueId;

use super::Step;

impl Step {
    /// Starts an agent, if what it may spend is not spent.
    pub(super) fn start(&mut self, id: &IssueId) {
        if self.may_not_start(id) {
            return;
        }
        let run = self.next_run();
        let begun = Spend { attempts: 1, turns: 1, ..Spend::default() };
        self.spend_on(id, begun, begun);
        let now = self.now;
        let Some(entry) = self.state.entries.get(id) else { return };
        // The conversation and the answer stay in mind until the agent has taken them up.
        let start = Start {
            run,
            issue: entry.issue.clone(),
            attempt: (entry.attempt > 0).then_some(entry.attempt),
            thread: entry.thread.clone(),
            answer: entry.answer.clone(),
            workspace: entry.workspace.clone(),
        };
        let attempt = entry.attempt;
        self.put(id, Stage::Running(Run::new(run, now)));
        self.effects.push(Effect::Start(Box::new(start)));
        self.say(Notice::Dispatched { issue: self.subject(id), run, attempt });
    }

    /// Numbers are times, so that they go on after a restart.
    fn next_run(&mut self) -> RunId {
        let now = u64::try_from(self.now.as_millis()).unwrap_or_default();
        self.state.next_run = now.max(self.state.next_run + 1);
        RunId(self.state.next_run)
    }

    /// Changes what is known about an issue while a run of it lasts, and remembers it.
    pub(super) fn with_run(&mut self, run: RunId, change: impl FnOnce(&mut Entry)) {
        let Some(id) = self.state.issue_of(run) else { return };
        if let Some(entry) = self.state.entries.get_mut(&id) {
            change(entry);
            self.changed.insert(id);
        }
    }

    pub(super) fn heard(&mut self, run: RunId, news: News) {
        let Some(id) = self.state.issue_of(run) else { return };
        let now = self.now;
        if let Some(there) = self.entry(&id).and_then(|entry| entry.stage.run_mut()) {
            there.heard_at = now;
        }
        match news {
            News::Session { session, thread } => self.has_session(&id, run, session, thread),
            News::Usage(total) => self.used(&id, total),
            News::RateLimits(limits) => {
                if let Some(until) = limits::reached_until(&limits, now) {
                    self.hold_agents(until);
                }
                self.state.rate_limits = Some(limits);
            }
            News::TurnEnded(trace) => self.turn_ended(&id, trace),
            News::Something { event, message } => {
                let event = bounded(event, MAX_MESSAGE);
                let message = message.map(|message| bounded(message, MAX_MESSAGE));
                if let Some(entry) = self.entry(&id) {
                    entry.remember(Said { at: now, event, message });
                }
            }
        }
    }

    fn has_session(&mut self, id: &IssueId, run: RunId, session: String, thread: String) {
        let mut is_new = false;
        self.with_run(run, |entry| {
            entry.thread = Some(thread);
            entry.answer = None;
            if let Some(run) = entry.stage.run_mut() {
                is_new = run.session.is_none();
                run.session = Some(session);
            }
        });
        if is_new {
            self.say(Notice::SessionStarted { issue: self.subject(id), run });
        }
    }

    /// Takes note of what a run has used up in all, which only grows.
    fn used(&mut self, id: &IssueId, total: Spend) {
        let Some(run) = self.entry(id).and_then(|entry| entry.stage.run_mut()) else { return };
        let more = total.since(run.spent).tokens();
        run.spent = run.spent + more;
        self.spend_on(id, more, more);
    }

    /// Tells an agent to end: in peace if it is not in the middle of a turn.
    pub(super) fn stop(&mut self, id: &IssueId, then: Then, why: &str) {
        let Some(Entry { stage: Stage::Running(run), .. }) = self.state.entries.get(id) else {
            return;
        };
        let mut run = run.clone();
        if run.is_in_turn() {
            self.effects.push(Effect::Stop(run.id));
        } else if !run.finishing {
            self.effects.push(Effect::Finish(run.id));
            run.finishing = true;
        } else if matches!(then, Then::Fail(..)) {
            // It was told to end in peace, and does not.
            self.effects.push(Effect::Stop(run.id));
        }
        self.say(Notice::Stopped { issue: self.subject(id), why: why.to_owned() });
        self.put(id, Stage::Stopping { run, then });
    }

    pub(super) fn ended(&mut self, run: RunId, end: End) {
        let Some(id) = self.state.issue_of(run) else { return };
        let Some(entry) = self.state.entries.get(&id) else { return };
        let Some(run) = entry.stage.run().cloned() else { return };
        let told = match &entry.stage {
            Stage::Stopping { then, .. } => Some(then.clone()),
            _ => None,
        };
        let time = |since: carrel_domain::Timestamp| Spend {
            time: since.age(self.now),
            ..Spend::default()
        };
        let today = run.started_at.max(self.state.ledger.today.begin());
        self.spend_on(&id, time(run.started_at), time(today));
        let issue = self.subject(&id);
        let (then, outcome, error) = what_follows(told, end);
        *self.state.outcomes.entry(outcome).or_default() += 1;
        self.say(Notice::RunEnded { issue, run: run.id, outcome, error: error.clone() });
        self.put(&id, Stage::Resting);
        match then {
            Next::Follows(then) => self.follow(&id, then, run.session),
            Next::WaitsForProvider(wait) => self.wait_for_provider(&id, wait, error),
        }
    }

    fn wait_for_provider(&mut self, id: &IssueId, wait: Option<Duration>, error: Option<String>) {
        let Some(entry) = self.entry(id) else { return };
        entry.limited = entry.limited.saturating_add(1);
        let limited = entry.limited;
        let usual = backoff::before(limited, id, self.state.rules.longest_wait);
        let wait = wait.unwrap_or(usual).min(limits::LONGEST_HOLD);
        self.hold_agents(self.now.after(wait));
        self.retry(id, Why::RateLimited, wait, error);
    }
}

/// What comes after a run.
enum Next {
    Follows(Then),
    /// It goes on when the provider wants to hear of it again.
    WaitsForProvider(Option<Duration>),
}

fn what_follows(told: Option<Then>, end: End) -> (Next, Outcome, Option<String>) {
    let then = match (told, end) {
        // Whatever else it was told for, a question is not answered by another attempt.
        (None | Some(Then::Fail(..) | Then::Continue | Then::Tomorrow), End::Blocked(reason)) => {
            Then::Block(reason)
        }
        (Some(then), _) => then,
        (None, End::Well) => Then::Continue,
        (None, End::Failed(error)) => Then::Fail(Why::Failure, bounded(error, MAX_ERROR)),
        (None, End::RateLimited(wait)) => {
            let error = Some("the provider of the agent wants fewer requests".to_owned());
            return (Next::WaitsForProvider(wait), Outcome::RateLimited, error);
        }
    };
    let (outcome, error) = match &then {
        Then::Release | Then::Clean => (Outcome::Stopped, None),
        Then::Fail(Why::Stall, error) => (Outcome::Stall, Some(error.clone())),
        Then::Fail(Why::RunBudget, error) => (Outcome::BudgetExceeded, Some(error.clone())),
        Then::Fail(_, error) => (Outcome::Failure, Some(error.clone())),
        Then::Continue => (Outcome::Success, None),
        Then::Tomorrow => (Outcome::BudgetExceeded, None),
        Then::Block(Reason::Budget(text)) => (Outcome::BudgetExceeded, Some(text.clone())),
        Then::Block(Reason::Cancelled) => (Outcome::Cancelled, None),
        Then::Block(reason) => (Outcome::Blocked, Some(reason.to_string())),
    };
    (Next::Follows(then), outcome, error)
}
