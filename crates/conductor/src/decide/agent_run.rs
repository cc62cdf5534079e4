//! Agents: their start and their end.

use std::time::Duration;

use crate::backoff;
use crate::claimed_issue::{
    AgentEvent, BlockReason, ClaimedIssue, FollowUp, RetryReason, Run, RunId, Stage,
};
use crate::effect::{Dispatch, Effect};
use crate::event::{AgentUpdate, RunEnd};
use crate::notice::{Notice, RunOutcome};
use crate::provider_limits;
use crate::spend::Spend;
use crate::truncate::{MAX_ERROR, MAX_MESSAGE, truncated};
use carrel_tracker::IssueId;

use super::Transition;

impl Transition {
    /// Starts an agent, if what it may spend is not spent.
    pub(super) fn start(&mut self, id: &IssueId) {
        if self.may_not_start(id) {
            return;
        }
        let run = self.next_run();
        let begun = Spend { attempts: 1, turns: 1, ..Spend::default() };
        self.spend_on(id, begun, begun);
        let now = self.now;
        let Some(entry) = self.state.issues.get(id) else { return };
        // The conversation and the answer stay in mind until the agent has taken them up.
        let start = Dispatch {
            run,
            issue: entry.issue.clone(),
            attempt: (entry.attempt > 0).then_some(entry.attempt),
            thread: entry.thread.clone(),
            answer: entry.answer.clone(),
            workspace: entry.workspace.clone(),
        };
        let attempt = entry.attempt;
        self.put(id, Stage::Running(Run::new(run, now)));
        self.effects.push(Effect::Dispatch(Box::new(start)));
        self.say(Notice::Dispatched { issue: self.issue_ref(id), run, attempt });
    }

    /// Numbers are times, so that they go on after a restart.
    fn next_run(&mut self) -> RunId {
        let now = u64::try_from(self.now.as_millis()).unwrap_or_default();
        self.state.next_run = now.max(self.state.next_run + 1);
        RunId(self.state.next_run)
    }

    /// Changes what is known about an issue while a run of it lasts, and remembers it.
    pub(super) fn with_run(&mut self, run: RunId, change: impl FnOnce(&mut ClaimedIssue)) {
        let Some(id) = self.state.issue_of(run) else { return };
        if let Some(entry) = self.state.issues.get_mut(&id) {
            change(entry);
            self.changed.insert(id);
        }
    }

    pub(super) fn heard(&mut self, run: RunId, news: AgentUpdate) {
        let Some(id) = self.state.issue_of(run) else { return };
        let now = self.now;
        if let Some(there) = self.entry(&id).and_then(|entry| entry.stage.run_mut()) {
            there.last_event_at = now;
        }
        match news {
            AgentUpdate::SessionStarted { session, thread } => {
                self.has_session(&id, run, session, thread)
            }
            AgentUpdate::Usage(total) => self.used(&id, total),
            AgentUpdate::RateLimits(limits) => {
                if let Some(until) = provider_limits::limited_until(&limits, now) {
                    self.hold_agents(until);
                }
                self.state.rate_limits = Some(limits);
            }
            AgentUpdate::TurnEnded(trace) => self.turn_ended(&id, trace),
            AgentUpdate::Other { event, message } => {
                let event = truncated(event, MAX_MESSAGE);
                let message = message.map(|message| truncated(message, MAX_MESSAGE));
                if let Some(entry) = self.entry(&id) {
                    entry.record_event(AgentEvent { at: now, event, message });
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
            self.say(Notice::SessionStarted { issue: self.issue_ref(id), run });
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
    pub(super) fn stop(&mut self, id: &IssueId, then: FollowUp, why: &str) {
        let Some(ClaimedIssue { stage: Stage::Running(run), .. }) = self.state.issues.get(id)
        else {
            return;
        };
        let mut run = run.clone();
        if run.is_in_turn() {
            self.effects.push(Effect::Stop(run.id));
        } else if !run.finishing {
            self.effects.push(Effect::Finish(run.id));
            run.finishing = true;
        } else if matches!(then, FollowUp::Fail(..)) {
            // It was told to end in peace, and does not.
            self.effects.push(Effect::Stop(run.id));
        }
        self.say(Notice::Stopped { issue: self.issue_ref(id), why: why.to_owned() });
        self.put(id, Stage::Stopping { run, then });
    }

    pub(super) fn ended(&mut self, run: RunId, end: RunEnd) {
        let Some(id) = self.state.issue_of(run) else { return };
        let Some(entry) = self.state.issues.get(&id) else { return };
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
        let issue = self.issue_ref(&id);
        let (then, outcome, error) = what_follows(told, end);
        *self.state.outcomes.entry(outcome).or_default() += 1;
        self.say(Notice::RunEnded { issue, run: run.id, outcome, error: error.clone() });
        self.put(&id, Stage::Resting);
        match then {
            TurnCommand::Follows(then) => self.follow(&id, then, run.session),
            TurnCommand::WaitsForProvider(wait) => self.wait_for_provider(&id, wait, error),
        }
    }

    fn wait_for_provider(&mut self, id: &IssueId, wait: Option<Duration>, error: Option<String>) {
        let Some(entry) = self.entry(id) else { return };
        entry.rate_limited_runs = entry.rate_limited_runs.saturating_add(1);
        let limited = entry.rate_limited_runs;
        let usual = backoff::before(limited, id, self.state.rules.max_backoff);
        let wait = wait.unwrap_or(usual).min(provider_limits::MAX_RATE_LIMIT);
        self.hold_agents(self.now.after(wait));
        self.retry(id, RetryReason::RateLimited, wait, error);
    }
}

/// What comes after a run.
enum TurnCommand {
    Follows(FollowUp),
    /// It goes on when the provider wants to hear of it again.
    WaitsForProvider(Option<Duration>),
}

fn what_follows(told: Option<FollowUp>, end: RunEnd) -> (TurnCommand, RunOutcome, Option<String>) {
    let then = match (told, end) {
        // Whatever else it was told for, a question is not answered by another attempt.
        (
            None | Some(FollowUp::Fail(..) | FollowUp::Continue | FollowUp::Tomorrow),
            RunEnd::Blocked(reason),
        ) => FollowUp::Block(reason),
        (Some(then), _) => then,
        (None, RunEnd::Completed) => FollowUp::Continue,
        (None, RunEnd::Failed(error)) => {
            FollowUp::Fail(RetryReason::Failure, truncated(error, MAX_ERROR))
        }
        (None, RunEnd::RateLimited(wait)) => {
            let error = Some("the provider of the agent wants fewer requests".to_owned());
            return (TurnCommand::WaitsForProvider(wait), RunOutcome::RateLimited, error);
        }
    };
    let (outcome, error) = match &then {
        FollowUp::Release | FollowUp::Clean => (RunOutcome::Stopped, None),
        FollowUp::Fail(RetryReason::Stall, error) => (RunOutcome::Stall, Some(error.clone())),
        FollowUp::Fail(RetryReason::RunBudget, error) => {
            (RunOutcome::BudgetExceeded, Some(error.clone()))
        }
        FollowUp::Fail(_, error) => (RunOutcome::Failure, Some(error.clone())),
        FollowUp::Continue => (RunOutcome::Success, None),
        FollowUp::Tomorrow => (RunOutcome::BudgetExceeded, None),
        FollowUp::Block(BlockReason::Budget(text)) => {
            (RunOutcome::BudgetExceeded, Some(text.clone()))
        }
        FollowUp::Block(BlockReason::Cancelled) => (RunOutcome::Cancelled, None),
        FollowUp::Block(reason) => (RunOutcome::Blocked, Some(reason.to_string())),
    };
    (TurnCommand::Follows(then), outcome, error)
}
