//! Single promises, each with the history that would break it.

use std::time::Duration;

use carrel_conductor::{
    BlockReason, Event, Notice, OperatorCommand, PollState, RetryReason, Stage,
};

use crate::simulated_world::SimulatedWorld;

fn running(world: &SimulatedWorld, number: usize) -> bool {
    world.claimed(number).is_some_and(|claimed| matches!(claimed.stage, Stage::Running(_)))
}

#[test]
fn an_active_issue_is_worked_on_until_it_is_done_and_then_cleaned_up() {
    let mut world = SimulatedWorld::new(1, 1);
    world.pass(10);
    assert!(running(&world, 0));
    world.move_to(0, "Done");
    world.pass(60);
    assert!(world.state.issues.is_empty());
    assert!(world.workspaces.is_empty());
}

#[test]
fn an_issue_that_moves_elsewhere_is_left_with_its_workspace() {
    let mut world = SimulatedWorld::new(2, 1);
    world.pass(10);
    world.move_to(0, "Review");
    world.pass(60);
    assert_eq!(world.claimed(0).map(|claimed| &claimed.stage), Some(&Stage::Resting));
    assert_eq!(world.workspaces.len(), 1);
    world.move_to(0, "Done");
    world.pass(60);
    assert!(world.workspaces.is_empty(), "it is cleaned up when it is done after all");
}

#[test]
fn no_more_agents_run_than_may_and_the_others_wait() {
    let mut world = SimulatedWorld::new(3, 10);
    world.pass(10);
    assert_eq!(world.state.agents(), 3);
}

#[test]
fn a_stalled_agent_is_retried_after_a_wait_and_not_at_once() {
    let mut world = SimulatedWorld::new(4, 1);
    world.state.rules.stall_timeout = Some(Duration::from_secs(2));
    // An agent of this world is silent for up to three seconds.
    for _ in 0..400 {
        let until = world.now + 1000;
        world.step(until);
        if world
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::WillRetry { why: RetryReason::Stall, .. }))
        {
            break;
        }
    }
    let started = world.started;
    let claimed = world.claimed(0).expect("it stays claimed");
    assert!(
        matches!(&claimed.stage, Stage::Retrying(retry) if retry.reason == RetryReason::Stall),
        "{claimed:?}"
    );
    world.pass(8);
    assert_eq!(world.started, started, "the back-off holds");
    world.pass(10);
    assert!(world.started > started);
}

#[test]
fn a_question_keeps_the_issue_until_it_is_answered() {
    let mut world = SimulatedWorld::new(5, 1);
    world.pass(5);
    let run = world.claimed(0).and_then(|claimed| claimed.stage.run()).expect("it runs").id;
    let end = carrel_conductor::RunEnd::Blocked(BlockReason::Input("which one?".to_owned()));
    world.apply(Event::Command(OperatorCommand::Pause));
    world.kill(run, end);
    world.apply(Event::Command(OperatorCommand::Resume));
    let started = world.started;
    world.pass(600);
    assert_eq!(world.started, started, "nobody tries again by themselves");
    let id = crate::simulated_world::id(0);
    world.apply(Event::Command(OperatorCommand::Answer(id, "the first".to_owned())));
    world.pass(10);
    assert_eq!(world.started, started + 1);
}

#[test]
fn a_restart_takes_up_again_what_ran_and_keeps_what_waits() {
    let mut world = SimulatedWorld::new(6, 2);
    world.pass(10);
    let thread = world.claimed(0).and_then(|claimed| claimed.thread.clone());
    assert!(thread.is_some());
    world.crash();
    assert_eq!(world.state.poll, PollState::NotStarted);
    world.pass(20);
    assert!(running(&world, 0) && running(&world, 1));
    assert_eq!(world.claimed(0).map(|claimed| claimed.spent.attempts), Some(2));
}

#[test]
fn refreshes_during_a_poll_cause_one_more_poll() {
    let mut world = SimulatedWorld::new(7, 0);
    world.step(world.now);
    world.step(world.now);
    assert!(matches!(world.state.poll, PollState::InFlight { .. }), "{:?}", world.state.poll);
    world.apply(Event::Command(OperatorCommand::Refresh));
    world.apply(Event::Command(OperatorCommand::Refresh));
    assert!(matches!(world.state.poll, PollState::InFlight { repeat: true, .. }));
}
