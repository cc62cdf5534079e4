use std::time::Duration;

use pretty_assertions::assert_eq;
use rustix::process::Signal;

use super::ConductorFixture;
use crate::is_running;

const LONG: &str = "hooks:\n  after_run: echo after >> OUTSIDE/hooks\nagent:\n  kind: command\n  sandbox: {writable: [OUTSIDE]}\n  command: echo $CARREL_ISSUE_IDENTIFIER >> OUTSIDE/starts; sleep 100 & sleep 100";

#[test]
fn item_024_and_087_at_a_signal_agents_end_hooks_run_and_the_next_start_goes_on() {
    for signal in [Signal::TERM, Signal::INT] {
        let fixture = ConductorFixture::with(LONG);
        fixture.issue("one");
        let mut running = fixture.start();
        running.until("the agent works", || fixture.notes("starts") == "CAR-1\n");
        running.signal(signal);
        assert_eq!(running.wait(), 0, "{}", running.log());
        assert_eq!(fixture.notes("hooks"), "after\n");
        // Nothing is tried again later than at once, and nothing counts as a failure.
        let next = fixture.start();
        next.until("the agent works again", || fixture.notes("starts") == "CAR-1\nCAR-1\n");
        assert!(!next.log().contains("Will retry"), "{}", next.log());
        assert_eq!(next.end(), 0);
    }
}

#[test]
fn once_is_no_success_when_it_is_told_to_end_before_it_is_done() {
    let fixture = ConductorFixture::with(LONG);
    fixture.issue("one");
    let mut running = fixture.start_with(&["--once"]);
    running.until("the agent works", || fixture.notes("starts") == "CAR-1\n");
    running.signal(Signal::TERM);
    assert_eq!(running.wait(), 1, "{}", running.log());
    assert!(running.log().contains("[E_RUN_FAILED]"), "{}", running.log());
    assert_eq!(fixture.notes("hooks"), "after\n");
}

#[test]
fn an_issue_that_is_closed_ends_its_agent_and_loses_its_workspace() {
    let fixture = ConductorFixture::with(LONG);
    fixture.issue("one");
    let running = fixture.start();
    running.until("the agent works", || fixture.notes("starts") == "CAR-1\n");
    fixture.shift("CAR-1", "Done");
    running.until("the workspace is gone", || !fixture.workspace("CAR-1").exists());
    assert_eq!(fixture.notes("hooks"), "after\n");
    assert_eq!(running.end(), 0);
}

#[test]
fn item_088_a_second_signal_ends_it_at_once() {
    let fixture = ConductorFixture::with(
        "hooks:\n  timeout_ms: 30000\n  after_run: echo $$ > OUTSIDE/pid; sleep 100\nagent:\n  kind: command\n  sandbox: {writable: [OUTSIDE]}\n  command: echo x >> OUTSIDE/starts; sleep 100",
    );
    fixture.issue("one");
    let mut running = fixture.start();
    running.until("the agent works", || fixture.notes("starts") == "x\n");
    running.signal(Signal::INT);
    running.until("the hook runs", || !fixture.notes("pid").is_empty());
    let began = std::time::Instant::now();
    running.signal(Signal::INT);
    assert_eq!(running.wait(), 130);
    assert!(began.elapsed() < Duration::from_secs(5));
    let pid = fixture.fixture.path("outside/pid");
    running.until("the hook is gone too", || !is_running(&pid));
}
