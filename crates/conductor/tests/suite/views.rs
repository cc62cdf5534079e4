//! What people and programs see of the loop.

use std::path::PathBuf;
use std::time::Duration;

use carrel_conductor::dashboard::{Painter, render};
use carrel_conductor::snapshot::{IssueView, SessionLog, Snapshot, Status};
use carrel_conductor::{AgentUpdate, BlockReason, Event, Issue, OperatorCommand, RunEnd, Spend};
use carrel_domain::Timestamp;
use serde_json::json;

use crate::decide_harness::Loop;
use crate::simulated_world::{BEGIN, issue, rules};

fn named(number: usize, identifier: &str) -> Issue {
    let url = Some(format!("https://tracker.example/{identifier}"));
    Issue { identifier: identifier.to_owned(), url, ..issue(number) }
}

/// One agent at work, one issue that failed, one with a question, one that waits for a place.
fn busy() -> Loop {
    let mut rules = rules();
    rules.max_agents = 3;
    let mut it = Loop::with(rules);
    it.now = BEGIN;
    let hostile = Issue {
        url: Some("javascript:alert(1)".to_owned()),
        state: "In\x1b[31m Progress".to_owned(),
        ..named(2, "CAR-\u{202e}3")
    };
    let issues = [named(0, "CAR-1"), named(1, "CAR-2"), hostile, named(3, "CAR-4")];
    it.state.rules.active.insert("in\x1b[31m progress".to_owned());
    it.lists(&issues);
    it.reads(&issues);
    let runs: Vec<_> = it.state.issues.values().filter_map(|claimed| claimed.stage.run()).collect();
    let runs: Vec<_> = runs.iter().map(|run| run.id).collect();
    it.apply(Event::WorkspaceReady(runs[0], PathBuf::from("/root/CAR-1")));
    let session = "thread-1-turn-1".to_owned();
    it.updates(runs[0], AgentUpdate::SessionStarted { session, thread: "thread-1".to_owned() });
    let used = Spend {
        input_tokens: 12_000,
        output_tokens: 345,
        total_tokens: 12_345,
        ..Spend::default()
    };
    it.updates(runs[0], AgentUpdate::Usage(used));
    let message = Some("ran cargo test, 12 passed, 0 failed".to_owned());
    it.updates(runs[0], AgentUpdate::Other { event: "item_completed".to_owned(), message });
    let limits = json!({ "primary": { "usedPercent": 42, "resetsInSeconds": 4000 } });
    it.updates(runs[0], AgentUpdate::RateLimits(limits));
    it.now += 3000;
    it.ends(runs[1], RunEnd::Failed("hook failed: one, two, \x1b[2Jthree".to_owned()));
    it.reads(&issues);
    it.now += 2000;
    it.ends(runs[2], RunEnd::Blocked(BlockReason::Input("tabs,\nor spaces?".to_owned())));
    it.now += 1000;
    it
}

fn at(it: &Loop) -> Timestamp {
    Timestamp::from_millis(it.now)
}

#[test]
fn item_054_a_snapshot_shows_running_retrying_blocked_totals_and_rate_limits() {
    let it = busy();
    insta::assert_json_snapshot!(Snapshot::of(&it.state, at(&it)));
}

#[test]
fn item_054_sums_of_a_snapshot_include_agents_that_are_still_at_work() {
    let it = busy();
    let snapshot = Snapshot::of(&it.state, at(&it));
    let live = it.state.spent(at(&it)).time;
    assert!((snapshot.codex_totals.seconds_running - live.as_secs_f64()).abs() < 1e-9);
    assert!(live > it.state.ledger.spent.time);
    assert_eq!(live, Duration::from_secs(6 + 3 + 5 + 3));
}

#[test]
fn an_issue_is_shown_with_its_runs_events_and_last_error() {
    let it = busy();
    let id = it.state.find("CAR-2").expect("by what people call it");
    let log = SessionLog {
        run: 7,
        attempt: 0,
        started_at: Timestamp::from_millis(BEGIN),
        ended_at: Some(Timestamp::from_millis(BEGIN + 3000)),
        outcome: Some("failure".to_owned()),
        error: Some("hook failed".to_owned()),
        session_id: None,
        path: Some("/data/runs/CAR-2/7.jsonl".to_owned()),
        url: Some("/api/v1/CAR-2/transcripts/7".to_owned()),
    };
    let view = IssueView::of(&it.state, &id, at(&it), vec![log]);
    insta::assert_json_snapshot!(view);
    let by_id = it.state.find("id-0").expect("by what the tracker knows it by");
    let running = IssueView::of(&it.state, &by_id, at(&it), Vec::new()).unwrap();
    assert_eq!(running.status, Status::Running);
    assert_eq!(running.recent_events.len(), 1);
    assert_eq!(it.state.find("CAR-99"), None);
}

#[test]
fn errors_are_bounded_wherever_they_come_from() {
    let mut it = Loop::new();
    let run = it.begins(&issue(0));
    let huge = "x".repeat(1 << 20);
    let message = Some(huge.clone());
    for _ in 0..50 {
        it.updates(run, AgentUpdate::Other { event: huge.clone(), message: message.clone() });
    }
    it.ends(run, RunEnd::Failed(huge.clone()));
    it.apply(Event::WorkflowInvalid(huge));
    let size = serde_json::to_string(&Snapshot::of(&it.state, at(&it))).unwrap().len();
    assert!(size < 64 << 10, "{size}");
    let view = IssueView::of(&it.state, &issue(0).id, at(&it), Vec::new());
    let size = serde_json::to_string(&view).unwrap().len();
    assert!(size < 64 << 10, "{size}");
}

#[test]
fn item_110_a_terminal_shows_agents_queue_retries_blocked_issues_and_events() {
    let it = busy();
    let frame = render(&Snapshot::of(&it.state, at(&it)), 120, 40);
    insta::assert_snapshot!(frame.plain());
}

#[test]
fn a_small_terminal_shows_the_most_important_of_everything() {
    let it = busy();
    let frame = render(&Snapshot::of(&it.state, at(&it)), 50, 18);
    assert!(frame.lines.len() <= 18);
    insta::assert_snapshot!(frame.plain());
    for (width, height) in [(0, 0), (1, 1), (40, 3), (200, 100)] {
        let frame = render(&Snapshot::of(&it.state, at(&it)), width, height);
        assert!(frame.lines.len() <= height);
        assert!(frame.lines.iter().all(|line| line.plain().chars().count() <= width.max(40)));
    }
}

#[test]
fn item_081_an_idle_conductor_is_drawn_too_and_drawing_changes_nothing() {
    let mut it = Loop::new();
    it.command(OperatorCommand::Pause);
    let before = format!("{:?}", it.state);
    let frame = render(&Snapshot::of(&it.state, at(&it)), 80, 24);
    insta::assert_snapshot!(frame.plain());
    assert_eq!(format!("{:?}", it.state), before);
}

#[test]
fn item_134_a_javascript_address_is_no_link_and_no_text_moves_the_cursor() {
    let it = busy();
    let frame = render(&Snapshot::of(&it.state, at(&it)), 120, 40);
    let painted = Painter::new(true).paint(&frame, (120, 40));
    assert!(painted.contains("\x1b]8;;https://tracker.example/CAR-1\x1b\\"));
    assert!(!painted.contains("javascript"));
    assert!(!painted.contains("\x1b[31m Progress"));
    assert_eq!(painted.matches("\x1b[2J").count(), 1, "its own only");
    assert!(!painted.contains('\u{202e}'));
    assert!(frame.plain().contains("hook failed: one, two, three"), "in one line");
}
