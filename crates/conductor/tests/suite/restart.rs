//! What a restart finds, and what it does before anything is begun.

use std::path::PathBuf;
use std::time::Duration;

use carrel_conductor::{
    AgentUpdate, Effect, Event, Notice, PollState, RetryReason, RunEnd, Spend, Stage,
};

use crate::decide_harness::{Loop, moved};
use crate::simulated_world::issue;

/// A loop with one finished issue whose workspace is there, and one that is to be worked on.
fn with_something_left() -> Loop {
    let mut it = Loop::new();
    it.lists(&[issue(0), issue(1)]);
    it.reads(&[issue(0), issue(1)]);
    let runs: Vec<_> = it.state.issues.values().filter_map(|claimed| claimed.stage.run()).collect();
    for run in runs.iter().map(|run| run.id).collect::<Vec<_>>() {
        it.apply(Event::WorkspaceReady(run, PathBuf::from("/root/there")));
    }
    it.restart();
    it.apply(Event::Due);
    it
}

#[test]
fn item_108_what_finished_issues_left_is_cleaned_up_before_anything_is_begun() {
    let mut it = with_something_left();
    it.reads(&[moved(&issue(0), "Done"), issue(1)]);
    assert!(it.cleans() && it.taken().is_empty() && it.poll_query().is_none());
    it.after(60_000);
    assert!(it.effects.is_empty(), "it waits");
    it.apply(Event::Cleaned(issue(0).id, Ok(None)));
    assert_eq!(it.taken(), ["id-1"]);
    assert!(it.poll_query().is_some());
}

#[test]
fn item_108_a_failed_startup_cleanup_is_reported_and_stops_no_dispatch() {
    let mut it = with_something_left();
    it.fails_to_read();
    assert!(matches!(it.notices()[..], [Notice::TrackerFailed { .. }]));
    assert!(it.poll_query().is_some());

    let mut it = with_something_left();
    it.reads(&[moved(&issue(0), "Done"), issue(1)]);
    it.apply(Event::Cleaned(issue(0).id, Err("busy".to_owned())));
    assert!(it.notices().iter().any(|notice| matches!(notice, Notice::CleanupFailed { .. })));
    assert_eq!(it.taken(), ["id-1"]);
    it.now += 12_000;
    it.apply(Event::Due);
    assert!(it.cleans(), "and it is tried again");
}

#[test]
fn a_removal_that_was_under_way_asks_first_whether_the_issue_is_still_finished() {
    let left = |after: Option<carrel_conductor::Issue>| {
        let mut it = with_something_left();
        it.reads(&[moved(&issue(0), "Done"), issue(1)]);
        it.restart();
        it.apply(Event::Due);
        assert!(!it.cleans());
        it.reads(after.as_slice());
        it
    };
    assert!(left(Some(moved(&issue(0), "Done"))).cleans());
    assert!(left(None).cleans(), "nobody sees it any more");
    let it = left(Some(issue(0)));
    assert!(!it.cleans());
    assert_eq!(it.stage(&issue(0)), Some(&Stage::Resting));
}

#[test]
fn a_command_as_the_first_event_does_not_start_a_removal_twice() {
    let mut it = with_something_left();
    it.reads(&[moved(&issue(0), "Done"), issue(1)]);
    it.apply(Event::Cleaned(issue(0).id, Err("busy".to_owned())));
    it.restart();
    it.command(carrel_conductor::OperatorCommand::RetryNow(issue(0).id));
    assert!(it.cleans());
    let (query, ids) = it.read_query().expect("the sweep begins with the first event");
    it.apply(Event::Due);
    assert_eq!(it.effects, []);
    let read = vec![moved(&issue(0), "Done"), issue(1)];
    it.apply(Event::Read(query, ids, Ok(read)));
    assert!(!it.cleans());
}

#[test]
fn an_issue_that_is_reopened_while_its_agent_ends_keeps_its_workspace() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.apply(Event::WorkspaceReady(run, PathBuf::from("/root/CAR-0")));
    it.polls(&[]);
    it.reads(&[moved(&issue(0), "Done")]);
    it.polls(&[issue(0)]);
    it.ends(run, RunEnd::Failed("stopped".to_owned()));
    assert!(!it.cleans());
    assert_eq!(it.stage(&issue(0)), Some(&Stage::Resting));
}

#[test]
fn a_failure_that_was_decided_before_the_end_keeps_its_backoff() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.after(60_001);
    assert!(it.stops(run));
    it.restart();
    it.apply(Event::Due);
    let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert_eq!(retry.reason, RetryReason::Stall);
    assert!(retry.due.as_millis() >= it.now + 10_000);
    assert_eq!(it.claimed(&issue(0)).attempt, 1);
}

#[test]
fn item_113_attempts_due_times_blocks_and_spending_survive() {
    let mut it = Loop::new();
    it.lists(&[issue(0), issue(1), issue(2)]);
    it.reads(&[issue(0), issue(1), issue(2)]);
    let runs: Vec<_> = it.state.issues.values().filter_map(|claimed| claimed.stage.run()).collect();
    let runs: Vec<_> = runs.iter().map(|run| run.id).collect();
    it.ends(runs[0], RunEnd::Failed("it broke".to_owned()));
    it.ends(runs[1], RunEnd::Blocked(carrel_conductor::BlockReason::Input("which?".to_owned())));
    it.now += 7000;
    it.updates(runs[2], AgentUpdate::Usage(Spend { total_tokens: 50, ..Spend::default() }));
    let before = it.state.clone();
    it.restart();
    it.apply(Event::Due);
    for number in 0..2 {
        let id = issue(number).id;
        let known = |state: &carrel_conductor::State| {
            let claimed = &state.issues[&id];
            (claimed.stage.clone(), claimed.attempt, claimed.spent)
        };
        assert_eq!(known(&it.state), known(&before));
    }
    let third = it.claimed(&issue(2));
    assert!(
        matches!(&third.stage, Stage::Retrying(retry) if retry.reason == RetryReason::Interrupted)
    );
    assert_eq!(third.spent.total_tokens, 50);
    assert_eq!(third.spent.time, Duration::from_secs(7), "up to its last sign of life");
    assert_eq!(it.state.ledger.spent.total_tokens, 50);
    assert_eq!(it.state.ledger.spent.attempts, 3);
}

#[test]
fn effects_that_remember_come_before_those_that_act() {
    let mut it = Loop::new();
    it.lists(&[issue(0)]);
    it.reads(&[issue(0)]);
    let writing =
        |effect: &Effect| matches!(effect, Effect::Save(_) | Effect::Erase(_) | Effect::SaveLedger);
    let acting = it.effects.iter().position(|effect| !writing(effect)).unwrap();
    assert!(it.effects[..acting].contains(&Effect::Save(issue(0).id)));
    assert!(it.effects[acting..].iter().all(|effect| !writing(effect)));
    assert!(!matches!(it.state.poll, PollState::NotStarted));
}
