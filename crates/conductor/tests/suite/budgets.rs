//! What may be spent: in a turn, a run, on an issue and in a day.

use std::time::Duration;

use carrel_conductor::{
    AgentUpdate, BlockReason, Effect, Notice, OperatorCommand, RetryReason, RunEnd, RunId,
    RunOutcome, Spend, Stage,
};
use carrel_config::{Budget, Budgets};
use carrel_domain::Timestamp;

use crate::decide_harness::{Loop, SOME_EFFECT};
use crate::simulated_world::{issue, rules};

const MINUTE: i64 = 60_000;

fn with(budgets: Budgets) -> Loop {
    let mut rules = rules();
    rules.budgets = budgets;
    rules.stall_timeout = None;
    Loop::with(rules)
}

fn tokens(count: u64) -> AgentUpdate {
    AgentUpdate::Usage(Spend { total_tokens: count, ..Spend::default() })
}

/// Ends a turn, after which the issue is still to be worked on.
fn turn(it: &mut Loop, run: RunId) {
    it.updates(run, AgentUpdate::TurnEnded(SOME_EFFECT));
    if it.read_query().is_some() {
        it.reads(&[issue(0)]);
    }
}

fn budget_of(it: &Loop) -> String {
    match it.stage(&issue(0)) {
        Some(Stage::Blocked(block)) => match &block.reason {
            BlockReason::Budget(text) => text.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_turn_that_uses_too_much_is_ended_and_its_issue_blocked() {
    let turn_budget = Budget { tokens: Some(100), minutes: Some(5), ..Budget::default() };
    let mut it = with(Budgets { turn: turn_budget, ..Budgets::default() });
    let run = it.begins(&issue(0));
    it.updates(run, tokens(90));
    turn(&mut it, run);
    it.updates(run, tokens(180));
    assert!(!it.stops(run), "each turn counts by itself");
    it.updates(run, tokens(190));
    assert!(it.stops(run));
    it.ends(run, RunEnd::Failed("stopped".to_owned()));
    assert_eq!(budget_of(&it), "for the turn, 100 of 100 tokens are used up");
    assert_eq!(it.state.outcomes[&RunOutcome::BudgetExceeded], 1);

    let mut it = with(Budgets { turn: turn_budget, ..Budgets::default() });
    let run = it.begins(&issue(0));
    assert_eq!(
        it.state.next_due().map(|due| due <= Timestamp::from_millis(it.now + 5 * MINUTE)),
        Some(true)
    );
    it.after(5 * MINUTE);
    assert!(it.stops(run));
}

#[test]
fn the_wait_for_the_tracker_between_two_turns_is_neither_a_stall_nor_a_turn() {
    let turn_budget = Budget { minutes: Some(1), ..Budget::default() };
    let mut it = with(Budgets { turn: turn_budget, ..Budgets::default() });
    it.state.rules.stall_timeout = Some(Duration::from_secs(30));
    let run = it.begins(&issue(0));
    it.updates(run, AgentUpdate::TurnEnded(SOME_EFFECT));
    it.fails_to_read();
    it.after(2 * MINUTE);
    assert!(!it.stops(run));
    it.reads(&[issue(0)]);
    assert!(it.effects.contains(&Effect::NextTurn { run, turn: 2 }));
}

#[test]
fn a_run_that_uses_too_much_is_ended_and_tried_again_after_a_wait() {
    let run_budget = Budget { tokens: Some(100), ..Budget::default() };
    let mut it = with(Budgets { run: run_budget, ..Budgets::default() });
    let run = it.begins(&issue(0));
    it.updates(run, tokens(100));
    assert!(it.stops(run));
    it.ends(run, RunEnd::Failed("stopped".to_owned()));
    let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert_eq!(retry.reason, RetryReason::RunBudget);
    assert!(retry.due.as_millis() - it.now >= 10_000);
}

#[test]
fn a_run_takes_no_more_turns_than_its_budget_and_ends_in_peace() {
    let run_budget = Budget { turns: Some(2), ..Budget::default() };
    let mut it = with(Budgets { run: run_budget, ..Budgets::default() });
    it.state.rules.max_turns = 20;
    let run = it.begins(&issue(0));
    turn(&mut it, run);
    assert!(it.effects.contains(&Effect::NextTurn { run, turn: 2 }));
    turn(&mut it, run);
    assert!(it.effects.contains(&Effect::Finish(run)) && !it.stops(run));
}

#[test]
fn an_issue_is_blocked_when_its_attempts_are_used_up_and_retried_when_it_is_unblocked() {
    let of_issue = Budget { attempts: Some(2), ..Budget::default() };
    let mut it = with(Budgets { issue: of_issue, ..Budgets::default() });
    let mut run = it.begins(&issue(0));
    it.ends(run, RunEnd::Failed("it broke".to_owned()));
    it.after(11_000);
    it.reads(&[issue(0)]);
    run = it.start().expect("the second attempt").run;
    turn(&mut it, run);
    assert!(it.effects.contains(&Effect::NextTurn { run, turn: 2 }), "it may take its turns");
    it.ends(run, RunEnd::Failed("it broke".to_owned()));
    it.after(23_000);
    it.reads(&[issue(0)]);
    assert!(it.start().is_none());
    assert_eq!(budget_of(&it), "for the issue, 2 of 2 attempts are used up");
    it.command(OperatorCommand::Unblock(issue(0).id));
    it.reads(&[issue(0)]);
    assert!(it.start().is_some(), "as much again");
    assert_eq!(it.claimed(&issue(0)).spent.attempts, 3, "and nothing is forgotten");
}

#[test]
fn an_issue_is_blocked_when_its_turns_or_minutes_are_used_up() {
    let of_issue = Budget { turns: Some(2), ..Budget::default() };
    let mut it = with(Budgets { issue: of_issue, ..Budgets::default() });
    let run = it.begins(&issue(0));
    turn(&mut it, run);
    turn(&mut it, run);
    assert!(it.effects.contains(&Effect::Finish(run)), "in peace, since its turn is over");
    it.ends(run, RunEnd::Completed);
    assert_eq!(budget_of(&it), "for the issue, 2 of 2 turns are used up");

    let of_issue = Budget { minutes: Some(3), ..Budget::default() };
    let mut it = with(Budgets { issue: of_issue, ..Budgets::default() });
    let run = it.begins(&issue(0));
    it.now += 2 * MINUTE;
    it.ends(run, RunEnd::Completed);
    it.after(1000);
    it.reads(&[issue(0)]);
    let run = it.start().expect("a minute is left").run;
    it.after(MINUTE - 1);
    assert!(!it.stops(run));
    it.after(1);
    assert!(it.stops(run));
}

#[test]
fn a_day_that_is_used_up_waits_for_the_next() {
    let day = Budget { minutes: Some(4), ..Budget::default() };
    let mut it = with(Budgets { day, ..Budgets::default() });
    it.lists(&[issue(0), issue(1)]);
    it.reads(&[issue(0), issue(1)]);
    assert_eq!(it.state.agents(), 2);
    let due = it.state.next_due().unwrap();
    assert_eq!(due.as_millis() - it.now, 30_000, "the next look at the tracker comes first");
    it.after(2 * MINUTE - 1);
    assert!(!it.effects.iter().any(|effect| matches!(effect, Effect::Stop(_))));
    it.after(1);
    let stopped = it.effects.iter().filter(|effect| matches!(effect, Effect::Stop(_)));
    assert_eq!(stopped.count(), 2, "two agents for two minutes are four");
    let runs: Vec<_> = it.state.issues.values().filter_map(|claimed| claimed.stage.run()).collect();
    for run in runs.iter().map(|run| run.id).collect::<Vec<_>>() {
        it.ends(run, RunEnd::Failed("stopped".to_owned()));
    }
    let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert_eq!(retry.reason, RetryReason::DayBudget);
    assert_eq!(retry.due.as_millis() % (24 * 60 * MINUTE), 0, "at midnight");
    assert_eq!(it.claimed(&issue(0)).attempt, 0, "that is no failure");
    it.now = retry.due.as_millis();
    it.apply(carrel_conductor::Event::Due);
    it.reads(&[issue(0), issue(1)]);
    assert_eq!(it.state.agents(), 2);
}

#[test]
fn a_clock_that_goes_back_does_not_bring_the_budget_of_a_day_back() {
    let day = Budget { attempts: Some(1), ..Budget::default() };
    let mut it = with(Budgets { day, ..Budgets::default() });
    let run = it.begins(&issue(0));
    it.ends(run, RunEnd::Completed);
    it.now -= 24 * 60 * MINUTE;
    it.apply(carrel_conductor::Event::Due);
    assert_eq!(it.state.ledger.today.spent.attempts, 1);
}

#[test]
fn a_rate_limit_of_the_provider_stops_all_dispatches_with_a_growing_back_off() {
    let mut it = with(Budgets::default());
    let run = it.begins(&issue(0));
    it.ends(run, RunEnd::RateLimited(Some(Duration::from_secs(20))));
    let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert_eq!((retry.reason, retry.due.as_millis()), (RetryReason::RateLimited, it.now + 20_000));
    assert_eq!(it.claimed(&issue(0)).attempt, 0, "that is no failure");
    it.now += 10_000;
    it.command(OperatorCommand::Refresh);
    it.lists(&[issue(0), issue(1)]);
    assert!(it.taken().is_empty(), "nobody is begun meanwhile");
    it.after(10_000);
    assert_eq!(it.taken(), ["id-1", "id-0"], "in the order in which they could have been begun");
    it.reads(&[issue(0)]);
    let run = it.start().expect("it goes on").run;
    it.ends(run, RunEnd::RateLimited(None));
    let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert!(retry.due.as_millis() - it.now >= 20_000, "the second time in a row");
    it.command(OperatorCommand::Resume);
    assert_eq!(it.state.ledger.rate_limited.agents, None, "somebody knows better");
    assert!(it.notices().iter().all(|notice| !matches!(notice, Notice::Refused { .. })));
}
