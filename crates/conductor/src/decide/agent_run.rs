//! The start, the updates and the end of a run.
//!
//! [`Transition::dispatch`] is the only place that creates a run, and [`Transition::run_ended`] the only
//! one that ends it. In between, updates of the agent are recorded for the snapshot, counted against the
//! budgets and reset the stall timeout. A run that was told to stop keeps its slot until it has ended, and
//! updates of its agent still count.

use std::time::Duration;

use carrel_domain::Timestamp;

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
    /// Dispatches an issue, if its budgets and its progress allow another run.
    pub(super) fn dispatch(&mut self, id: &IssueId) {
        if self.start_exceeds_budget(id) {
            return;
        }
        if self.lacks_progress(id) {
            return self.block(id, BlockReason::NoProgress, None);
        }
        let run = self.next_run();
        let begun = Spend { attempts: 1, turns: 1, ..Spend::default() };
        self.spend_on(id, begun, begun);
        let now = self.now;
        let Some(claimed) = self.state.issues.get(id) else { return };
        // Thread and answer stay recorded until the session has started; a crash before that repeats them.
        let start = Dispatch {
            run,
            issue: claimed.issue.clone(),
            attempt: (claimed.attempt > 0).then_some(claimed.attempt),
            thread: claimed.thread.clone(),
            answer: claimed.answer.clone(),
            workspace: claimed.workspace.clone(),
        };
        let attempt = claimed.attempt;
        self.set_stage(id, Stage::Running(Run::new(run, now)));
        self.effects.push(Effect::Dispatch(Box::new(start)));
        self.notify(Notice::Dispatched { issue: self.issue_ref(id), run, attempt });
    }

    /// Returns the number of a new run: the time in milliseconds, or the last number plus one. It grows
    /// even if the journal of earlier runs is lost.
    fn next_run(&mut self) -> RunId {
        let now = u64::try_from(self.now.as_millis()).unwrap_or_default();
        self.state.next_run = now.max(self.state.next_run + 1);
        RunId(self.state.next_run)
    }

    /// Changes the issue of a run that has not ended, and saves it.
    pub(super) fn update_run_issue(&mut self, run: RunId, change: impl FnOnce(&mut ClaimedIssue)) {
        let Some(id) = self.state.issue_of(run) else { return };
        if let Some(claimed) = self.state.issues.get_mut(&id) {
            change(claimed);
            self.changed.insert(id);
        }
    }

    pub(super) fn agent_updated(&mut self, run: RunId, update: AgentUpdate) {
        let Some(id) = self.state.issue_of(run) else { return };
        let now = self.now;
        if let Some(there) = self.issue_mut(&id).and_then(|claimed| claimed.stage.run_mut()) {
            there.last_event_at = now;
        }
        match update {
            AgentUpdate::SessionStarted { session, thread } => {
                self.session_started(&id, run, session, thread);
            }
            AgentUpdate::Usage(total) => self.usage_reported(&id, total),
            AgentUpdate::RateLimits(limits) => {
                if let Some(until) = provider_limits::limited_until(&limits, now) {
                    self.rate_limit_agents(until);
                }
                self.state.rate_limits = Some(limits);
            }
            AgentUpdate::TurnEnded(effects) => self.turn_ended(&id, effects),
            AgentUpdate::Other { event, message } => {
                let event = truncated(event, MAX_MESSAGE);
                let message = message.map(|message| truncated(message, MAX_MESSAGE));
                if let Some(claimed) = self.issue_mut(&id) {
                    claimed.record_event(AgentEvent { at: now, event, message });
                }
            }
        }
    }

    fn session_started(&mut self, id: &IssueId, run: RunId, session: String, thread: String) {
        let mut is_new = false;
        self.update_run_issue(run, |claimed| {
            claimed.thread = Some(thread);
            claimed.answer = None;
            if let Some(run) = claimed.stage.run_mut() {
                is_new = run.session.is_none();
                run.session = Some(session);
            }
        });
        if is_new {
            self.notify(Notice::SessionStarted { issue: self.issue_ref(id), run });
        }
    }

    /// Counts the growth of a run's token total. A smaller total than before counts as no growth.
    fn usage_reported(&mut self, id: &IssueId, total: Spend) {
        let Some(claimed) = self.issue_mut(id) else { return };
        let Some(run) = claimed.stage.run_mut() else { return };
        let more = total.since(run.spent).tokens();
        run.spent = run.spent + more;
        self.spend_on(id, more, more);
    }

    /// Stops a run: kills the agent during a turn, and lets it finish between two turns.
    pub(super) fn stop(&mut self, id: &IssueId, then: FollowUp, why: &str) {
        let Some(mut run) = self.running(id).cloned() else { return };
        if run.is_in_turn() {
            self.effects.push(Effect::Stop(run.id));
        } else if !run.finishing {
            self.effects.push(Effect::Finish(run.id));
            run.finishing = true;
        } else if matches!(then, FollowUp::Fail(..)) {
            // It was told to finish and has stalled in doing so.
            self.effects.push(Effect::Stop(run.id));
        }
        self.notify(Notice::Stopped { issue: self.issue_ref(id), why: why.to_owned() });
        self.set_stage(id, Stage::Stopping { run, then });
    }

    pub(super) fn run_ended(&mut self, run: RunId, end: RunEnd) {
        let Some(id) = self.state.issue_of(run) else { return };
        let Some(claimed) = self.state.issues.get(&id) else { return };
        let Some(run) = claimed.stage.run().cloned() else { return };
        let told = match &claimed.stage {
            Stage::Stopping { then, .. } => Some(then.clone()),
            _ => None,
        };
        let time = |since: Timestamp| Spend::of_time(since.age(self.now));
        let today = run.started_at.max(self.state.ledger.today.begin());
        self.spend_on(&id, time(run.started_at), time(today));
        let issue = self.issue_ref(&id);
        let (then, outcome, error) = outcome_of(told, end);
        *self.state.outcomes.entry(outcome).or_default() += 1;
        self.notify(Notice::RunEnded { issue, run: run.id, outcome, error: error.clone() });
        self.set_stage(&id, Stage::Resting);
        match then {
            AfterRun::FollowUp(then) => self.follow_up(&id, then, run.session),
            AfterRun::ProviderLimit(wait) => self.retry_after_provider_limit(&id, wait, error),
        }
    }

    fn retry_after_provider_limit(
        &mut self,
        id: &IssueId,
        wait: Option<Duration>,
        error: Option<String>,
    ) {
        let Some(claimed) = self.issue_mut(id) else { return };
        claimed.rate_limited_runs = claimed.rate_limited_runs.saturating_add(1);
        let limited = claimed.rate_limited_runs;
        let usual = backoff::before(limited, id, self.state.rules.max_backoff);
        let wait = wait.unwrap_or(usual).min(provider_limits::MAX_RATE_LIMIT);
        self.rate_limit_agents(self.now.after(wait));
        self.retry(id, RetryReason::RateLimited, wait, error);
    }
}

enum AfterRun {
    FollowUp(FollowUp),
    /// A retry when the provider's rate limit is lifted, after the wait that it named.
    ProviderLimit(Option<Duration>),
}

fn outcome_of(told: Option<FollowUp>, end: RunEnd) -> (AfterRun, RunOutcome, Option<String>) {
    let then = match (told, end) {
        // A retry would meet the same question again, so it wins over other reasons to stop.
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
            let error = Some("the provider of the agent reported a rate limit".to_owned());
            return (AfterRun::ProviderLimit(wait), RunOutcome::RateLimited, error);
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
    (AfterRun::FollowUp(then), outcome, error)
}
