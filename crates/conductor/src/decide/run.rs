//! Agents: their start, their turns and their end.

use crate::backoff;
use crate::event::{Effect, End, News, Notice, Start};
use crate::spend::{Day, Spend};
use crate::state::{
    BetweenTurns, Block, Entry, Mode, Reason, Retry, Run, RunId, Stage, Then, Trace, Why,
};
use carrel_tracker::IssueId;

use super::Step;

impl Step {
    /// Starts an agent, if what it may spend is not spent.
    pub(super) fn start(&mut self, id: &IssueId) {
        let Some(entry) = self.state.entries.get(id) else { return };
        let budgets = &self.state.rules.budgets;
        if let Some(reached) = entry.spent.reached(&budgets.issue) {
            return self.block(id, Reason::Budget(format!("for the issue, {reached}")), None);
        }
        if self.state.today.spent.reached(&budgets.day).is_some() {
            return self.wait_for_tomorrow(id);
        }
        let run = self.next_run();
        self.spend(id, Spend { attempts: 1, turns: 1, ..Spend::default() });
        let now = self.now;
        let Some(entry) = self.state.entries.get_mut(id) else { return };
        let start = Start {
            run,
            issue: entry.issue.clone(),
            attempt: (entry.attempt > 0).then_some(entry.attempt),
            thread: entry.thread.take(),
            answer: entry.answer.take(),
            workspace: entry.workspace.clone(),
        };
        let attempt = entry.attempt;
        self.put(id, Stage::Running(Run::new(run, now)));
        self.effects.push(Effect::Start(Box::new(start)));
        self.say(Notice::Dispatched { issue: id.clone(), attempt });
    }

    /// Numbers are times, so that they go on after a restart.
    fn next_run(&mut self) -> RunId {
        let now = u64::try_from(self.now.as_millis()).unwrap_or_default();
        self.state.next_run = now.max(self.state.next_run + 1);
        RunId(self.state.next_run)
    }

    fn spend(&mut self, id: &IssueId, more: Spend) {
        self.state.spent = self.state.spent + more;
        self.state.today.add(more, self.now);
        if let Some(entry) = self.state.entries.get_mut(id) {
            entry.spent = entry.spent + more;
            self.changed.insert(id.clone());
        }
    }

    /// Changes what is known about a run that has not ended, and remembers it.
    pub(super) fn with_run(&mut self, run: RunId, change: impl FnOnce(&mut Entry, &mut Run)) {
        self.note(run, change);
        self.changed.extend(self.state.issue_of(run));
    }

    /// Changes what is known about a run, as long as it lasts.
    fn note(&mut self, run: RunId, change: impl FnOnce(&mut Entry, &mut Run)) {
        let Some(id) = self.state.issue_of(run) else { return };
        let Some(entry) = self.state.entries.get_mut(&id) else { return };
        let mut stage = std::mem::replace(&mut entry.stage, Stage::Resting);
        if let Stage::Running(run) | Stage::Stopping { run, .. } = &mut stage {
            change(entry, run);
        }
        entry.stage = stage;
    }

    pub(super) fn heard(&mut self, run: RunId, news: News) {
        let Some(id) = self.state.issue_of(run) else { return };
        let now = self.now;
        self.note(run, |_, run| run.heard_at = now);
        match news {
            News::Session { session, thread } => self.with_run(run, |entry, run| {
                run.session = Some(session);
                entry.thread = Some(thread);
            }),
            News::Usage(total) => self.used(run, &id, total),
            News::RateLimits(limits) => self.state.rate_limits = Some(limits),
            News::TurnEnded(trace) => self.turn_ended(&id, trace),
            News::Something { event, message } => self.note(run, |_, run| {
                run.last_event = Some(event);
                run.last_message = message.or(run.last_message.take());
            }),
        }
    }

    /// Takes note of what a run has used up in all, which only grows.
    fn used(&mut self, run: RunId, id: &IssueId, total: Spend) {
        let mut more = Spend::default();
        self.note(run, |_, run| {
            let tokens = Spend { turns: 0, attempts: 0, time: run.spent.time, ..total };
            more = tokens.since(run.spent);
            run.spent = run.spent + more;
        });
        self.spend(id, more);
    }

    fn turn_ended(&mut self, id: &IssueId, trace: Option<Trace>) {
        let Some(Entry { stage: Stage::Running(run), .. }) = self.entry(id) else { return };
        let stuck = trace.is_some() && trace == run.last_turn;
        run.last_turn = trace;
        let over = run.turn >= self.state.rules.turns || self.state.mode == Mode::Draining;
        if stuck {
            self.stop(id, Then::Block(Reason::NoProgress), "a turn changed nothing");
        } else if over {
            self.finish_run(id);
        } else {
            let waiting = BetweenTurns { failures: 0, due: Some(self.now) };
            if let Some(Entry { stage: Stage::Running(run), .. }) = self.entry(id) {
                run.between_turns = Some(waiting);
            }
        }
    }

    fn finish_run(&mut self, id: &IssueId) {
        if let Some(Entry { stage: Stage::Running(run), .. }) = self.entry(id) {
            run.between_turns = None;
            let run = run.id;
            self.effects.push(Effect::Finish(run));
        }
    }

    /// Reads the issues of agents whose turn is over.
    pub(super) fn read_between_turns(&mut self) {
        let now = self.now;
        let mut wanted = Vec::new();
        for (id, entry) in &mut self.state.entries {
            if let Stage::Running(Run { between_turns: Some(waiting), .. }) = &mut entry.stage
                && waiting.due.is_some_and(|due| due <= now)
            {
                waiting.due = None;
                wanted.push(id.clone());
            }
        }
        self.wanted.extend(wanted);
    }

    /// Begins another turn of a run whose issue is still to be worked on.
    pub(super) fn next_turn(&mut self, id: &IssueId) {
        if self.state.mode == Mode::Draining {
            return self.finish_run(id);
        }
        let now = self.now;
        let mut begun = None;
        if let Some(Entry { stage: Stage::Running(run), .. }) = self.entry(id) {
            run.turn += 1;
            run.turn_started_at = now;
            run.heard_at = now;
            run.between_turns = None;
            run.spent_before_turn = run.spent;
            run.spent.turns += 1;
            begun = Some(Effect::NextTurn { run: run.id, turn: run.turn });
        }
        self.spend(id, Spend { turns: 1, ..Spend::default() });
        self.effects.extend(begun);
    }

    /// Ends agents that show no sign of life, and those that have used up what they may.
    pub(super) fn watch_agents(&mut self) {
        for id in self.ids(|entry| matches!(entry.stage, Stage::Running(_))) {
            let Some(Entry { stage: Stage::Running(run), spent, .. }) = self.state.entries.get(&id)
            else {
                continue;
            };
            if let Some((then, why)) = self.excess(run, *spent) {
                self.stop(&id, then, &why);
            }
        }
    }

    fn excess(&self, run: &Run, issue: Spend) -> Option<(Then, String)> {
        let rules = &self.state.rules;
        let silent = run.heard_at.age(self.now);
        if rules.stall.is_some_and(|most| silent > most) {
            let error = format!("stalled for {} ms without agent activity", silent.as_millis());
            return Some((Then::Fail(Why::Stall, error.clone()), error));
        }
        let time = Spend { time: run.started_at.age(self.now), ..Spend::default() };
        let turn_time = Spend { time: run.turn_started_at.age(self.now), ..Spend::default() };
        let of_turn = Spend { turns: 0, ..run.spent.since(run.spent_before_turn) } + turn_time;
        let tokens_and_time = |spent: Spend| Spend { turns: 0, attempts: 0, ..spent };
        let budgets = &rules.budgets;
        let blocked = |span: &str, reached: String| {
            let reason = format!("for the {span}, {reached}");
            (Then::Block(Reason::Budget(reason.clone())), reason)
        };
        if let Some(reached) = of_turn.reached(&budgets.turn) {
            return Some(blocked("turn", reached));
        }
        if let Some(reached) = tokens_and_time(issue + time).reached(&budgets.issue) {
            return Some(blocked("issue", reached));
        }
        if let Some(reached) = tokens_and_time(run.spent + time).reached(&budgets.run) {
            return Some((Then::Continue, format!("for the run, {reached}")));
        }
        let today = tokens_and_time(self.state.today.spent);
        let reached = today.reached(&budgets.day)?;
        Some((Then::Tomorrow, format!("for the day, {reached}")))
    }

    /// Tells an agent to end.
    pub(super) fn stop(&mut self, id: &IssueId, then: Then, why: &str) {
        let Some(Entry { stage: Stage::Running(run), .. }) = self.state.entries.get(id) else {
            return;
        };
        let run = run.clone();
        self.effects.push(Effect::Stop(run.id));
        self.say(Notice::Stopped { issue: id.clone(), why: why.to_owned() });
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
        let time = run.started_at.age(self.now);
        self.spend(&id, Spend { time, ..Spend::default() });
        let then = match (told, end) {
            (Some(then), _) => then,
            (None, End::Well) => Then::Continue,
            (None, End::Failed(error)) => Then::Fail(Why::Failure, error),
            (None, End::Blocked(reason)) => Then::Block(reason),
            (None, End::RateLimited(after)) => {
                let attempt = self.state.entries.get(&id).map_or(0, |entry| entry.attempt);
                let usual = backoff::before(attempt + 1, &id, self.state.rules.longest_wait);
                let error = Some("the provider wants fewer requests".to_owned());
                return self.retry(&id, Why::RateLimited, after.unwrap_or(usual), error);
            }
        };
        self.put(&id, Stage::Resting);
        self.follow(&id, then, run.session);
    }

    /// Does what was to be done when an agent is gone.
    pub(super) fn follow(&mut self, id: &IssueId, then: Then, session: Option<String>) {
        match then {
            Then::Release => self.release(id),
            Then::Clean => self.clean(id),
            Then::Fail(why, error) => self.fail(id, why, error),
            Then::Tomorrow => self.wait_for_tomorrow(id),
            Then::Block(reason) => self.block(id, reason, session),
            Then::Continue => {
                if let Some(entry) = self.entry(id) {
                    entry.attempt = 1;
                    entry.thread = None;
                }
                self.retry(id, Why::Continuation, backoff::CONTINUATION, None);
            }
        }
    }

    /// Counts a failure, after which another attempt follows later each time.
    pub(super) fn fail(&mut self, id: &IssueId, why: Why, error: String) {
        let Some(entry) = self.entry(id) else { return };
        entry.attempt = entry.attempt.saturating_add(1);
        entry.thread = None;
        let attempt = entry.attempt;
        let wait = backoff::before(attempt, id, self.state.rules.longest_wait);
        self.retry(id, why, wait, Some(error));
    }

    fn wait_for_tomorrow(&mut self, id: &IssueId) {
        let wait = self.now.age(Day::next(self.now));
        self.retry(id, Why::DayBudget, wait, Some("today's budget is used up".to_owned()));
    }

    pub(super) fn retry(
        &mut self,
        id: &IssueId,
        why: Why,
        wait: std::time::Duration,
        error: Option<String>,
    ) {
        let due = self.now.after(wait);
        let retry = Retry { due, why, error: error.clone(), no_slot: false };
        self.put(id, Stage::Retrying(retry));
        let attempt = self.state.entries.get(id).map_or(0, |entry| entry.attempt);
        let delay_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.say(Notice::WillRetry { issue: id.clone(), attempt, why, delay_ms, error });
    }

    pub(super) fn block(&mut self, id: &IssueId, reason: Reason, session: Option<String>) {
        let block = Block { reason: reason.clone(), since: self.now, session };
        self.put(id, Stage::Blocked(block));
        self.say(Notice::Blocked { issue: id.clone(), reason });
    }
}
