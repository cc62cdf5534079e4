//! What people can order, and when they are refused.

use carrel_conductor::{
    Effect, End, Event, Fault, FaultKind, IssueId, Mode, News, Notice, Order, Poll, Reason,
    Refused, Stage, State,
};
use std::time::Duration;

use crate::stage::{Loop, moved};
use crate::world::{issue, rules};

fn id() -> IssueId {
    issue(0).id
}

fn conflict(it: &Loop, order: &Order) -> &'static str {
    match it.state.refusal(order) {
        Some(Refused::Conflict { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_begun_while_it_is_paused_not_even_what_was_being_checked() {
    let mut it = Loop::new();
    it.lists(&[issue(0)]);
    let (question, ids) = it.question_of_read().unwrap();
    it.tell(Order::Pause);
    assert!(matches!(it.notices()[..], [Notice::ModeChanged { mode: Mode::Paused }]));
    assert!(it.effects.contains(&Effect::SaveLedger), "a restart stays paused");
    it.hear(Event::Read(question, ids, Ok(vec![issue(0)])));
    assert!(it.start().is_none());
    it.polls(&[issue(0)]);
    assert!(it.taken().is_empty());
    it.restart();
    assert_eq!(it.state.ledger.mode, Mode::Paused);
    it.hear(Event::Due);
    it.lists(&[issue(0)]);
    it.tell(Order::Resume);
    assert_eq!(it.taken(), ["id-0"]);
}

#[test]
fn a_drain_lets_turns_end_and_keeps_the_conversation_for_later() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.hears(run, News::Session { session: "t-1".to_owned(), thread: "t".to_owned() });
    it.tell(Order::Drain);
    assert!(!it.stops(run));
    it.hears(run, News::TurnEnded(None));
    assert!(it.effects.contains(&Effect::Finish(run)));
    it.ends(run, End::Well);
    it.after(2000);
    assert!(it.taken().is_empty());
    it.tell(Order::Resume);
    it.reads(&[issue(0)]);
    assert_eq!(it.start().and_then(|start| start.thread.as_deref()), Some("t"));
}

#[test]
fn a_cancelled_issue_stays_so_until_somebody_says_otherwise() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.tell(Order::Cancel(id()));
    assert!(it.stops(run));
    it.tell(Order::Cancel(id()));
    it.ends(run, End::Failed("stopped".to_owned()));
    let Some(Stage::Blocked(block)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert_eq!(block.reason, Reason::Cancelled);
    it.polls(&[issue(0)]);
    assert!(it.taken().is_empty());
    it.tell(Order::RetryNow(id()));
    assert_eq!(it.taken(), ["id-0"]);
}

#[test]
fn an_issue_that_waits_for_a_place_can_be_cancelled_before_it_is_begun() {
    let mut none = rules();
    none.agents = 0;
    let mut it = Loop::with(none);
    it.lists(&[issue(0)]);
    assert_eq!(conflict(&it, &Order::RetryNow(id())), "waits for a place already");
    it.tell(Order::Cancel(id()));
    assert!(matches!(it.stage(&issue(0)), Some(Stage::Blocked(_))));
    it.hear(Event::Changed(Box::new(rules())));
    assert!(it.taken().is_empty());
}

#[test]
fn an_issue_that_waits_for_its_time_can_be_taken_up_at_once() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.ends(run, End::Failed("it broke".to_owned()));
    it.tell(Order::RetryNow(id()));
    it.reads(&[issue(0)]);
    assert_eq!(it.start().and_then(|start| start.attempt), Some(1), "the count goes on");
}

#[test]
fn orders_that_make_no_sense_are_refused_with_the_reason() {
    let mut it = Loop::new();
    let unknown = it.state.refusal(&Order::Cancel(id()));
    assert_eq!(unknown, Some(Refused::Unknown(id())));
    it.tell(Order::Cancel(id()));
    assert!(matches!(it.notices()[..], [Notice::Refused { .. }]));
    let mut it = Loop::new();
    it.begins(&issue(0));
    assert_eq!(conflict(&it, &Order::RetryNow(id())), "is being worked on; cancel it first");
    assert_eq!(conflict(&it, &Order::Unblock(id())), "is not blocked");
    assert_eq!(
        conflict(&it, &Order::Answer(id(), "yes".to_owned())),
        "has no agent that asked anything"
    );
    for order in [Order::Pause, Order::Drain, Order::Resume, Order::Refresh] {
        assert_eq!(it.state.refusal(&order), None);
    }
}

#[test]
fn an_answer_is_kept_until_an_agent_has_heard_it() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    it.ends(run, End::Blocked(Reason::Input("which one?".to_owned())));
    it.tell(Order::Answer(id(), "the first".to_owned()));
    it.reads(&[issue(0)]);
    let run = it.start().expect("it goes on").run;
    it.restart();
    it.hear(Event::Due);
    it.reads(&[issue(0)]);
    it.reads(&[issue(0)]);
    let start = it.start().expect("it is taken up again");
    assert_eq!(start.answer.as_deref(), Some("the first"));
    let again = start.run;
    assert!(again > run);
    it.hears(again, News::Session { session: "t-1".to_owned(), thread: "t".to_owned() });
    assert_eq!(it.entry(&issue(0)).answer, None);
}

#[test]
fn a_tracker_that_wants_to_be_left_alone_is() {
    let mut it = Loop::new();
    let question = it.question_of_poll().unwrap();
    let retry_after = Some(Duration::from_secs(100));
    let fault = Fault { retry_after, ..Fault::new(FaultKind::RateLimited, "too many requests") };
    it.hear(Event::Polled(question, Err(fault)));
    it.tell(Order::Refresh);
    assert_eq!(it.question_of_poll(), None, "whoever asks");
    it.after(99_999);
    assert_eq!(it.question_of_poll(), None);
    it.after(1);
    assert!(it.question_of_poll().is_some());
}

#[test]
fn one_look_works_on_each_issue_once_as_places_become_free() {
    let mut rules = rules();
    rules.agents = 1;
    let mut it =
        Loop::of(State::begin(rules, [].into(), carrel_conductor::Ledger::default()).once());
    it.hear(Event::Due);
    it.lists(&[issue(0), issue(1)]);
    it.reads(&[issue(0)]);
    let run = it.start().expect("the first").run;
    it.hears(run, News::TurnEnded(None));
    it.reads(&[issue(0)]);
    assert!(it.effects.contains(&Effect::Finish(run)), "no other turn");
    it.ends(run, End::Well);
    assert!(!it.state.is_over());
    it.reads(&[issue(1)]);
    let run = it.start().expect("the second").run;
    it.hears(run, News::TurnEnded(None));
    it.reads(&[moved(&issue(1), "Done")]);
    it.ends(run, End::Well);
    assert!(it.cleans() && !it.state.is_over());
    it.hear(Event::Cleaned(issue(1).id, Ok(())));
    assert!(it.state.is_over());
    assert_eq!(it.state.poll, Poll::Over);
    it.after(600_000);
    assert!(it.effects.is_empty(), "no retry, no other look");
    assert_eq!(it.state.next_due(), None);

    let entries = it.state.entries.clone();
    let mut it = Loop::of(State::begin(it.state.rules, entries, it.state.ledger).once());
    it.now += 700_000;
    it.hear(Event::Due);
    it.reads(&[issue(0)]);
    it.lists(&[issue(0)]);
    assert_eq!(it.taken(), ["id-0"], "what was left is taken up by the next look");
}

#[test]
fn one_look_that_fails_is_over() {
    let mut it =
        Loop::of(State::begin(rules(), [].into(), carrel_conductor::Ledger::default()).once());
    it.hear(Event::Due);
    let question = it.question_of_poll().unwrap();
    it.hear(Event::Polled(question, Err(Fault::new(FaultKind::Request, "no answer"))));
    assert!(it.state.is_over());
    assert!(it.notices().iter().any(|notice| matches!(notice, Notice::TrackerFailed { .. })));
}
