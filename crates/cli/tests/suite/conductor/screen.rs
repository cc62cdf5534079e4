//! A terminal that takes nothing holds nothing up.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::Signal;

use super::{ConductorFixture, Running};
use crate::terminal::Terminal;

/// What a dashboard begins with.
const SCREEN: &str = "\x1b[?1049h";

/// What a person types to stop a terminal.
const CTRL_S: &[u8] = b"\x13";

impl Terminal {
    /// Starts a conductor that has nothing but this terminal.
    fn run(&self, fixture: &ConductorFixture) -> Running {
        let mut command = fixture.command(&["run"]);
        let side = || Stdio::from(self.side_of_programs(OFlags::RDWR));
        command.env("TERM", "xterm").stdin(side()).stdout(side()).stderr(side());
        let (child, log) = (command.spawn().unwrap(), fixture.fixture.path("data/log/carrel.log"));
        Running { child, log }
    }

    /// Writes until nothing more fits in, also when the kernel has moved it on.
    fn fill(&self) {
        let side = self.side_of_programs(OFlags::RDWR | OFlags::NONBLOCK);
        let mut refused = 0;
        while refused < 30 {
            if rustix::io::write(&side, b"xxxxxxxx") == Err(Errno::AGAIN) {
                refused += 1;
                std::thread::sleep(Duration::from_millis(5));
            } else {
                refused = 0;
            }
        }
    }
}

fn fixture() -> ConductorFixture {
    ConductorFixture::with(
        "observability: {refresh_ms: 5, render_interval_ms: 1}\nhooks:\n  after_run: '\"$CARREL\" issue move \"$CARREL_ISSUE_IDENTIFIER\" Done'\nagent: {kind: command, max_turns: 1, command: 'true'}",
    )
}

/// Expects that issues are worked off and that a signal ends it all.
fn assert_goes_on(fixture: &ConductorFixture, mut running: Running) {
    fixture.issue("one");
    running.until("the issue is worked off", || fixture.state("CAR-1") == "Done");
    let begun = Instant::now();
    running.signal(Signal::TERM);
    assert_eq!(running.wait(), 0);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn a_terminal_that_somebody_stopped_holds_nothing_up() {
    let (fixture, mut terminal) = (fixture(), Terminal::new());
    let running = terminal.run(&fixture);
    terminal.read_until(SCREEN);
    terminal.person.write_all(CTRL_S).unwrap();
    assert_goes_on(&fixture, running);
}

#[test]
fn a_terminal_that_nobody_reads_holds_nothing_up() {
    let (fixture, mut terminal) = (fixture(), Terminal::new());
    let running = terminal.run(&fixture);
    terminal.read_until(SCREEN);
    terminal.fill();
    assert_goes_on(&fixture, running);
}

#[test]
fn a_second_signal_ends_it_whatever_the_terminal_does() {
    let fixture = ConductorFixture::with(
        "hooks:\n  timeout_ms: 60000\n  after_run: touch OUTSIDE/hook; sleep 50\nagent:\n  kind: command\n  sandbox: {writable: [OUTSIDE]}\n  command: touch OUTSIDE/agent; sleep 100",
    );
    let mut terminal = Terminal::new();
    fixture.issue("one");
    let mut running = terminal.run(&fixture);
    terminal.read_until(SCREEN);
    terminal.person.write_all(CTRL_S).unwrap();
    let outside = fixture.fixture.path("outside");
    running.until("the agent works", || outside.join("agent").exists());
    running.signal(Signal::TERM);
    running.until("the hook runs", || outside.join("hook").exists());
    let begun = Instant::now();
    running.signal(Signal::TERM);
    assert_eq!(running.wait(), 130);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn a_terminal_is_given_back_as_it_was() {
    let (fixture, mut terminal) = (fixture(), Terminal::new());
    let mut running = terminal.run(&fixture);
    terminal.read_until(SCREEN);
    running.signal(Signal::INT);
    terminal.read_until("\x1b[?1049l");
    assert_eq!(running.wait(), 0);
}

#[test]
fn item_114_the_file_says_whether_a_terminal_shows_the_dashboard() {
    let lines = |enabled: bool| {
        format!(
            "observability: {{dashboard_enabled: {enabled}}}\nagent: {{kind: command, command: sleep 100}}"
        )
    };
    let (fixture, mut terminal) = (ConductorFixture::with(&lines(false)), Terminal::new());
    fixture.issue("one");
    let running = terminal.run(&fixture);
    let shown = terminal.read_until("Session started");
    assert!(!shown.contains(SCREEN), "{shown}");
    fixture.write(&lines(true));
    terminal.read_until(SCREEN);
    fixture.write(&lines(false));
    terminal.read_until("\x1b[?1049l");
    assert_eq!(running.end(), 0);
}
