//! Turns without an effect: how they are counted, and what ends the count.

use carrel_conductor::{
    AgentUpdate, BlockReason, Effect, Event, Issue, OperatorCommand, RetryReason, RunEnd, RunId,
    Stage, TurnEffects,
};
use carrel_domain::Timestamp;

use crate::decide_harness::{Loop, SOME_EFFECT, moved};
use crate::simulated_world::{issue, rules};

const NO_EFFECT: TurnEffects = TurnEffects { files: false, commits: false, tracker: false };

fn with_turns(max_turns: u64) -> Loop {
    Loop::with(carrel_conductor::Rules { max_turns, stall_timeout: None, ..rules() })
}

/// Ends a turn, after which the tracker shows this issue.
fn turn(it: &mut Loop, run: RunId, effects: TurnEffects, shown: &Issue) {
    it.updates(run, AgentUpdate::TurnEnded(effects));
    it.reads(std::slice::from_ref(shown));
}

fn continues(it: &Loop, run: RunId) -> bool {
    it.effects.iter().any(|effect| matches!(effect, Effect::NextTurn { run: of, .. } if *of == run))
}

fn is_blocked(it: &Loop) -> bool {
    matches!(it.stage(&issue(0)), Some(Stage::Blocked(block)) if block.reason == BlockReason::NoProgress)
}

/// Returns the issue as it is after the tracker counted another change.
fn touched(issue: &Issue, at: i64) -> Issue {
    Issue { updated_at: Some(Timestamp::from_millis(at)), ..issue.clone() }
}

#[test]
fn the_third_turn_without_an_effect_is_the_last() {
    let mut it = with_turns(20);
    let run = it.begins(&issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    assert!(continues(&it, run));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    assert!(continues(&it, run));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    assert!(!continues(&it, run) && it.effects.contains(&Effect::Finish(run)), "in peace");
    it.ends(run, RunEnd::Completed);
    assert!(is_blocked(&it), "{:?}", it.stage(&issue(0)));
    for _ in 0..5 {
        it.polls(&[issue(0)]);
        assert!(is_blocked(&it) && it.taken().is_empty());
    }
}

#[test]
fn an_effect_of_any_kind_starts_the_count_anew() {
    for effects in [
        TurnEffects { files: true, ..NO_EFFECT },
        TurnEffects { commits: true, ..NO_EFFECT },
        TurnEffects { tracker: true, ..NO_EFFECT },
    ] {
        let mut it = with_turns(20);
        let run = it.begins(&issue(0));
        for effects in [NO_EFFECT, NO_EFFECT, effects, NO_EFFECT, NO_EFFECT] {
            turn(&mut it, run, effects, &issue(0));
            assert!(continues(&it, run), "{effects:?}");
        }
        turn(&mut it, run, NO_EFFECT, &issue(0));
        assert!(!continues(&it, run), "{effects:?}");
    }
}

#[test]
fn turns_of_several_runs_count_together() {
    let mut it = with_turns(1);
    let mut run = it.begins(&issue(0));
    for _ in 0..2 {
        it.updates(run, AgentUpdate::TurnEnded(NO_EFFECT));
        assert!(it.effects.contains(&Effect::Finish(run)), "the only turn of its run");
        it.ends(run, RunEnd::Completed);
        it.after(1000);
        it.reads(&[issue(0)]);
        run = it.start().expect("another run").run;
    }
    turn(&mut it, run, NO_EFFECT, &issue(0));
    it.ends(run, RunEnd::Completed);
    assert!(is_blocked(&it), "{:?}", it.stage(&issue(0)));
}

#[test]
fn a_failed_turn_counts_neither_way() {
    let mut it = with_turns(20);
    let mut run = it.begins(&issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    it.ends(run, RunEnd::Failed("it broke".to_owned()));
    assert_eq!(it.claimed(&issue(0)).turns_without_progress, 2);
    it.after(11_000);
    it.reads(&[issue(0)]);
    run = it.start().expect("a retry").run;
    turn(&mut it, run, NO_EFFECT, &issue(0));
    assert!(!continues(&it, run));
}

#[test]
fn a_restart_keeps_the_count_and_the_block() {
    let mut it = with_turns(20);
    let run = it.begins(&issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    it.restart();
    it.apply(Event::Due);
    it.reads(&[issue(0)]);
    it.reads(&[issue(0)]);
    let run = it.start().expect("it is continued").run;
    turn(&mut it, run, NO_EFFECT, &issue(0));
    assert!(!continues(&it, run));
    it.ends(run, RunEnd::Completed);
    it.restart();
    it.apply(Event::Due);
    it.reads(&[issue(0)]);
    assert!(is_blocked(&it), "{:?}", it.stage(&issue(0)));
}

#[test]
fn a_change_of_the_issue_during_a_turn_is_an_effect_of_that_turn() {
    // Seen by the read after the turn.
    let mut it = with_turns(20);
    let run = it.begins(&issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    turn(&mut it, run, NO_EFFECT, &touched(&issue(0), 1));
    assert!(continues(&it, run), "the tracker counted a change");
    let labelled = Issue { labels: vec!["half".to_owned()], ..touched(&issue(0), 1) };
    turn(&mut it, run, NO_EFFECT, &labelled);
    assert_eq!(it.claimed(&issue(0)).turns_without_progress, 0);
    let progress = moved(&labelled, "In Progress");
    turn(&mut it, run, NO_EFFECT, &progress);
    assert_eq!(it.claimed(&issue(0)).turns_without_progress, 0);
    // Seen by a poll in the middle of the turn.
    let mut it = with_turns(20);
    let run = it.begins(&issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    it.polls(&[touched(&issue(0), 1)]);
    turn(&mut it, run, NO_EFFECT, &touched(&issue(0), 1));
    assert!(continues(&it, run));
    assert_eq!(it.claimed(&issue(0)).turns_without_progress, 0);
    turn(&mut it, run, NO_EFFECT, &touched(&issue(0), 1));
    assert_eq!(it.claimed(&issue(0)).turns_without_progress, 1, "one change, one turn");
}

#[test]
fn a_change_between_two_runs_is_no_effect_of_a_turn() {
    let mut it = with_turns(1);
    let run = it.begins(&issue(0));
    it.updates(run, AgentUpdate::TurnEnded(NO_EFFECT));
    it.ends(run, RunEnd::Completed);
    it.after(1000);
    it.reads(&[touched(&issue(0), 1)]);
    assert!(it.start().is_some());
    assert_eq!(it.claimed(&issue(0)).turns_without_progress, 1, "a hook may have made it");
}

#[test]
fn an_order_or_another_state_starts_the_count_anew() {
    let blocked = || {
        let mut it = with_turns(20);
        let run = it.begins(&issue(0));
        for _ in 0..3 {
            turn(&mut it, run, NO_EFFECT, &issue(0));
        }
        it.ends(run, RunEnd::Completed);
        assert!(is_blocked(&it));
        it
    };
    let mut it = blocked();
    it.command(OperatorCommand::Unblock(issue(0).id));
    it.reads(&[issue(0)]);
    let run = it.start().expect("an operator wants it").run;
    turn(&mut it, run, NO_EFFECT, &issue(0));
    assert!(continues(&it, run));
    let mut it = blocked();
    it.polls(&[]);
    it.reads(&[moved(&issue(0), "Backlog")]);
    assert_eq!(it.stage(&issue(0)), Some(&Stage::Resting));
    it.polls(&[issue(0)]);
    it.reads(&[issue(0)]);
    let run = it.start().expect("it is active again").run;
    turn(&mut it, run, NO_EFFECT, &issue(0));
    assert!(continues(&it, run));
}

#[test]
fn a_tracker_that_cannot_be_read_does_not_allow_a_fourth_turn() {
    let mut it = with_turns(20);
    let run = it.begins(&issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    turn(&mut it, run, NO_EFFECT, &issue(0));
    it.updates(run, AgentUpdate::TurnEnded(NO_EFFECT));
    for _ in 0..6 {
        it.fails_to_read();
        it.after(70_000);
    }
    it.ends(run, RunEnd::Completed);
    let Some(Stage::Retrying(retry)) = it.stage(&issue(0)) else { panic!("{:?}", it.effects) };
    assert_eq!(retry.reason, RetryReason::Continuation);
    it.after(1000);
    it.reads(&[issue(0)]);
    assert!(it.start().is_none() && is_blocked(&it), "{:?}", it.stage(&issue(0)));
}

#[test]
fn the_limit_can_be_changed_and_turned_off() {
    let mut it = with_turns(100);
    it.state.rules.max_turns_without_progress = None;
    let run = it.begins(&issue(0));
    for _ in 0..50 {
        turn(&mut it, run, NO_EFFECT, &issue(0));
        assert!(continues(&it, run));
    }
    it.state.rules.max_turns_without_progress = Some(5);
    turn(&mut it, run, SOME_EFFECT, &issue(0));
    for _ in 0..4 {
        turn(&mut it, run, NO_EFFECT, &issue(0));
        assert!(continues(&it, run));
    }
    turn(&mut it, run, NO_EFFECT, &issue(0));
    assert!(!continues(&it, run));
}
