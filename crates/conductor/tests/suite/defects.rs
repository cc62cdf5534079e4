//! The defects of the reference (its 4.10), each with the history that shows it.

use carrel_conductor::{
    AgentUpdate, BlockReason, Effect, Event, OperatorCommand, RetryReason, RunEnd, Stage,
};

use crate::decide_harness::Loop;
use crate::simulated_world::{issue, rules};

#[test]
fn defect_1_a_question_blocks_even_if_updates_follow_it() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    for event in ["turn_input_required", "turn_ended_with_error"] {
        let update = AgentUpdate::Other { event: event.to_owned(), message: None };
        it.updates(run, update);
    }
    it.ends(run, RunEnd::Blocked(BlockReason::Input("which one?".to_owned())));
    let blocked = |it: &Loop| matches!(it.stage(&issue(0)), Some(Stage::Blocked(_)));
    assert!(blocked(&it));
    for _ in 0..20 {
        it.polls(&[issue(0)]);
        assert!(blocked(&it) && it.taken().is_empty(), "nobody tries again by themselves");
    }
    it.command(OperatorCommand::Answer(issue(0).id, "the first".to_owned()));
    it.reads(&[issue(0)]);
    assert_eq!(it.start().and_then(|start| start.answer.as_deref()), Some("the first"));
}

#[test]
fn defect_1_a_question_of_an_agent_that_is_stopped_for_a_stall_blocks_too() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.after(60_001);
    assert!(it.stops(run));
    it.ends(run, RunEnd::Blocked(BlockReason::Approval("rm -r build".to_owned())));
    assert!(matches!(it.stage(&issue(0)), Some(Stage::Blocked(_))));
}

#[test]
fn defect_2_a_stall_keeps_the_claim_and_its_backoff() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.after(60_001);
    let poll = it.poll_query();
    it.ends(run, RunEnd::Failed("stopped".to_owned()));
    if let Some(poll) = poll {
        it.apply(Event::Polled(poll, Ok(vec![issue(0)])));
    }
    let free = |stage: &Stage| matches!(stage, Stage::Resting | Stage::Cleaning { .. });
    let claimed = |it: &Loop| it.stage(&issue(0)).is_some_and(|stage| !free(stage));
    assert!(claimed(&it) && it.taken().is_empty() && it.state.waiting.is_empty());
    it.after(9000);
    assert!(claimed(&it) && it.taken().is_empty(), "not before its time");
    it.after(2000);
    it.reads(&[issue(0)]);
    assert_eq!(it.start().and_then(|start| start.attempt), Some(1), "and not as the first attempt");
}

#[test]
fn defect_3_an_agent_that_cannot_be_started_keeps_the_claim_and_its_backoff() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.ends(run, RunEnd::Failed("no such program".to_owned()));
    it.command(OperatorCommand::Refresh);
    it.lists(&[issue(0)]);
    assert!(
        matches!(it.stage(&issue(0)), Some(Stage::Retrying(retry)) if retry.reason == RetryReason::Failure)
    );
    assert!(it.taken().is_empty() && it.state.waiting.is_empty());
}

#[test]
fn defect_4_an_issue_whose_slot_vanishes_before_its_dispatch_is_not_lost() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.ends(run, RunEnd::Failed("it broke".to_owned()));
    it.after(11_000);
    assert_eq!(it.taken(), ["id-0"]);
    let query = it.read_query();
    let mut fewer = rules();
    fewer.max_agents_by_state.insert("todo".to_owned(), 0);
    it.apply(Event::WorkflowChanged(Box::new(fewer)));
    let (query, ids) = query.unwrap();
    it.apply(Event::Read(query, ids, Ok(vec![issue(0)])));
    assert!(it.start().is_none());
    let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert!(retry.no_slot);
    assert_eq!((retry.reason, retry.error.as_deref()), (RetryReason::Failure, Some("it broke")));
    it.apply(Event::WorkflowChanged(Box::new(rules())));
    assert_eq!(it.taken(), ["id-0"], "it is there when there is a place again");
    it.reads(&[issue(0)]);
    assert_eq!(it.start().and_then(|start| start.attempt), Some(1));
}

#[test]
fn defect_4_the_same_holds_for_an_issue_that_was_never_begun() {
    let mut it = Loop::new();
    it.lists(&[issue(0)]);
    let (query, ids) = it.read_query().unwrap();
    let mut fewer = rules();
    fewer.max_agents = 0;
    it.apply(Event::WorkflowChanged(Box::new(fewer)));
    it.apply(Event::Read(query, ids, Ok(vec![issue(0)])));
    assert!(it.start().is_none() && it.state.agents() == 0);
    it.apply(Event::WorkflowChanged(Box::new(rules())));
    it.reads(&[issue(0)]);
    assert!(it.effects.iter().any(|effect| matches!(effect, Effect::Dispatch(_))));
}
