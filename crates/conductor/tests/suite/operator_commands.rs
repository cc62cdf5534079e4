//! What people can order, and when they are refused.

use carrel_conductor::{
    AgentUpdate, BlockReason, CommandRejection, Effect, Event, IssueId, Mode, Notice,
    OperatorCommand, PollState, RunEnd, Stage, State, TrackerError, TrackerErrorKind,
};
use std::time::Duration;

use crate::decide_harness::{Loop, SOME_EFFECT, moved};
use crate::simulated_world::{issue, rules};

fn id() -> IssueId {
    issue(0).id
}

fn conflict(it: &Loop, order: &OperatorCommand) -> &'static str {
    match it.state.reject(order) {
        Some(CommandRejection::Conflict { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_dispatched_while_paused_not_even_checked_issues() {
    let mut it = Loop::new();
    it.lists(&[issue(0)]);
    let (query, ids) = it.read_query().unwrap();
    it.command(OperatorCommand::Pause);
    assert!(matches!(it.notices()[..], [Notice::ModeChanged { mode: Mode::Paused }]));
    assert!(it.effects.contains(&Effect::SaveLedger), "a restart stays paused");
    it.apply(Event::Read(query, ids, Ok(vec![issue(0)])));
    assert!(it.start().is_none());
    it.polls(&[issue(0)]);
    assert!(it.taken().is_empty());
    it.restart();
    assert_eq!(it.state.ledger.mode, Mode::Paused);
    it.apply(Event::Due);
    it.lists(&[issue(0)]);
    it.command(OperatorCommand::Resume);
    assert_eq!(it.taken(), ["id-0"]);
}

#[test]
fn a_drain_lets_turns_end_and_keeps_the_conversation_for_later() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.updates(
        run,
        AgentUpdate::SessionStarted { session: "t-1".to_owned(), thread: "t".to_owned() },
    );
    it.command(OperatorCommand::Drain);
    assert!(!it.stops(run));
    it.updates(run, AgentUpdate::TurnEnded(SOME_EFFECT));
    assert!(it.effects.contains(&Effect::Finish(run)));
    it.ends(run, RunEnd::Completed);
    it.after(2000);
    assert!(it.taken().is_empty());
    it.command(OperatorCommand::Resume);
    it.reads(&[issue(0)]);
    assert_eq!(it.start().and_then(|start| start.thread.as_deref()), Some("t"));
}

#[test]
fn a_cancelled_issue_stays_blocked_until_it_is_unblocked() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.command(OperatorCommand::Cancel(id()));
    assert!(it.stops(run));
    it.command(OperatorCommand::Cancel(id()));
    it.ends(run, RunEnd::Failed("stopped".to_owned()));
    let Some(Stage::Blocked(block)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert_eq!(block.reason, BlockReason::Cancelled);
    it.polls(&[issue(0)]);
    assert!(it.taken().is_empty());
    it.command(OperatorCommand::RetryNow(id()));
    assert_eq!(it.taken(), ["id-0"]);
}

#[test]
fn an_issue_that_waits_for_a_slot_can_be_cancelled() {
    let mut none = rules();
    none.max_agents = 0;
    let mut it = Loop::with(none);
    it.lists(&[issue(0)]);
    assert_eq!(conflict(&it, &OperatorCommand::RetryNow(id())), "already waits for a slot");
    it.command(OperatorCommand::Cancel(id()));
    assert!(matches!(it.stage(&issue(0)), Some(Stage::Blocked(_))));
    it.apply(Event::WorkflowChanged(Box::new(rules())));
    assert!(it.taken().is_empty());
}

#[test]
fn an_issue_that_waits_for_its_time_can_be_taken_up_at_once() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.ends(run, RunEnd::Failed("it broke".to_owned()));
    it.command(OperatorCommand::RetryNow(id()));
    it.reads(&[issue(0)]);
    assert_eq!(it.start().and_then(|start| start.attempt), Some(1), "the count goes on");
}

#[test]
fn commands_that_do_not_apply_are_rejected_with_the_reason() {
    let mut it = Loop::new();
    let unknown = it.state.reject(&OperatorCommand::Cancel(id()));
    assert_eq!(unknown, Some(CommandRejection::UnknownIssue(id())));
    it.command(OperatorCommand::Cancel(id()));
    assert!(matches!(it.notices()[..], [Notice::Refused { .. }]));
    let mut it = Loop::new();
    it.begins(&issue(0));
    assert_eq!(conflict(&it, &OperatorCommand::RetryNow(id())), "has an agent; cancel it first");
    assert_eq!(conflict(&it, &OperatorCommand::Unblock(id())), "is not blocked");
    assert_eq!(
        conflict(&it, &OperatorCommand::Answer(id(), "yes".to_owned())),
        "has no question to answer"
    );
    for order in [
        OperatorCommand::Pause,
        OperatorCommand::Drain,
        OperatorCommand::Resume,
        OperatorCommand::Refresh,
    ] {
        assert_eq!(it.state.reject(&order), None);
    }
}

#[test]
fn an_answer_is_kept_until_a_session_has_received_it() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.ends(run, RunEnd::Blocked(BlockReason::Input("which one?".to_owned())));
    it.command(OperatorCommand::Answer(id(), "the first".to_owned()));
    it.reads(&[issue(0)]);
    let run = it.start().expect("it goes on").run;
    it.restart();
    it.apply(Event::Due);
    it.reads(&[issue(0)]);
    it.reads(&[issue(0)]);
    let start = it.start().expect("it is taken up again");
    assert_eq!(start.answer.as_deref(), Some("the first"));
    let again = start.run;
    assert!(again > run);
    it.updates(
        again,
        AgentUpdate::SessionStarted { session: "t-1".to_owned(), thread: "t".to_owned() },
    );
    assert_eq!(it.claimed(&issue(0)).answer, None);
}

#[test]
fn a_rate_limited_tracker_gets_no_requests() {
    let mut it = Loop::new();
    let query = it.poll_query().unwrap();
    let retry_after = Some(Duration::from_secs(100));
    let fault = TrackerError {
        retry_after,
        ..TrackerError::new(TrackerErrorKind::RateLimited, "too many requests")
    };
    it.apply(Event::Polled(query, Err(fault)));
    it.command(OperatorCommand::Refresh);
    assert_eq!(it.poll_query(), None, "whoever asks");
    it.after(99_999);
    assert_eq!(it.poll_query(), None);
    it.after(1);
    assert!(it.poll_query().is_some());
}

#[test]
fn a_single_pass_dispatches_each_issue_once_as_slots_become_free() {
    let mut rules = rules();
    rules.max_agents = 1;
    let mut it =
        Loop::of(State::begin(rules, [].into(), carrel_conductor::Ledger::default()).once());
    it.apply(Event::Due);
    it.lists(&[issue(0), issue(1)]);
    it.reads(&[issue(0)]);
    let run = it.start().expect("the first").run;
    it.updates(run, AgentUpdate::TurnEnded(SOME_EFFECT));
    it.reads(&[issue(0)]);
    assert!(it.effects.contains(&Effect::Finish(run)), "no other turn");
    it.ends(run, RunEnd::Completed);
    assert!(!it.state.is_over());
    it.reads(&[issue(1)]);
    let run = it.start().expect("the second").run;
    it.updates(run, AgentUpdate::TurnEnded(SOME_EFFECT));
    it.reads(&[moved(&issue(1), "Done")]);
    it.ends(run, RunEnd::Completed);
    assert!(it.cleans() && !it.state.is_over());
    it.apply(Event::Cleaned(issue(1).id, Ok(None)));
    assert!(it.state.is_over());
    assert_eq!(it.state.poll, PollState::Finished);
    it.after(600_000);
    assert!(it.effects.is_empty(), "no retry, no other look");
    assert_eq!(it.state.next_due(), None);

    let entries = it.state.issues.clone();
    let mut it = Loop::of(State::begin(it.state.rules, entries, it.state.ledger).once());
    it.now += 700_000;
    it.apply(Event::Due);
    it.reads(&[issue(0)]);
    it.lists(&[issue(0)]);
    assert_eq!(it.taken(), ["id-0"], "what was left is taken up by the next look");
}

#[test]
fn a_single_pass_ends_after_a_failed_poll() {
    let mut it =
        Loop::of(State::begin(rules(), [].into(), carrel_conductor::Ledger::default()).once());
    it.apply(Event::Due);
    let query = it.poll_query().unwrap();
    it.apply(Event::Polled(query, Err(TrackerError::new(TrackerErrorKind::Request, "no answer"))));
    assert!(it.state.is_over());
    assert!(it.notices().iter().any(|notice| matches!(notice, Notice::TrackerFailed { .. })));
}
