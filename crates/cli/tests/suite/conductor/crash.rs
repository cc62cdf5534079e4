use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use carrel_store::{Journal as _, Sqlite, SqliteOptions};
use serde_json::Value;

use super::ConductorFixture;
use crate::eventually;

const ISSUES: usize = 20;

/// Agents of four sorts. Each holds a lock as long as anything of it lives, and says so if it does not
/// get it: then there are two for one issue.
const WORKFLOW: &str = r#"hooks:
  after_create: date > born
  after_run: |
    case $CARREL_ISSUE_IDENTIFIER in
      *3|*7) "$CARREL" issue move "$CARREL_ISSUE_IDENTIFIER" Done ;;
    esac
agent:
  kind: command
  network: none
  max_turns: 2
  max_concurrent_agents: 6
  sandbox: {writable: [OUTSIDE]}
  command: |
    exec 9> OUTSIDE/$CARREL_ISSUE_IDENTIFIER.lock
    flock -n 9 || echo "$CARREL_ISSUE_IDENTIFIER" >> OUTSIDE/doubled
    echo "$CARREL_ISSUE_IDENTIFIER $(date +%s%3N)" >> OUTSIDE/starts
    date +%N > work
    case $CARREL_ISSUE_IDENTIFIER in
      *2|*5) exit 1 ;;
      *4|*8) sleep 30 & setsid sleep 30 & sleep 30 ;;
      *) sleep 0.2 ;;
    esac"#;

fn kills() -> usize {
    if std::env::var_os("CARREL_SOAK").is_some() { 50 } else { 5 }
}

struct Entry {
    stage: String,
    due: Option<i64>,
    workspace: Option<PathBuf>,
}

/// Reads what a conductor remembers.
fn remembered(fixture: &ConductorFixture) -> BTreeMap<String, Entry> {
    let path = fixture.fixture.path("data/carrel.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let entries = runtime.block_on(async {
        let store = Sqlite::open(&SqliteOptions { path }).unwrap();
        store.entries("local").await.unwrap()
    });
    let entry = |entry: Value| Entry {
        stage: entry["stage"]["stage"].as_str().unwrap().to_owned(),
        due: entry["stage"]["due"].as_str().map(millis),
        workspace: entry["workspace"].as_str().map(PathBuf::from),
    };
    entries.into_iter().map(|(issue, value)| (issue, entry(value))).collect()
}

fn millis(time: &str) -> i64 {
    let time: carrel_domain::Timestamp = serde_json::from_value(time.into()).unwrap();
    time.as_millis()
}

/// Returns when agents of an issue started.
fn starts(fixture: &ConductorFixture) -> Vec<(String, i64)> {
    let notes = fixture.notes("starts");
    let lines = notes.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(issue, at)| (issue.to_owned(), at.parse().unwrap())).collect()
}

/// Tells whether nothing lives of any agent.
fn is_quiet(fixture: &ConductorFixture) -> bool {
    (1..=ISSUES).all(|number| {
        let path = fixture.fixture.path("outside").join(format!("CAR-{number}.lock"));
        File::open(path).map_or(true, |lock| lock.try_lock().is_ok())
    })
}

#[test]
fn nothing_is_doubled_lost_or_left_when_the_conductor_is_killed() {
    let fixture = ConductorFixture::with(WORKFLOW);
    for number in 1..=ISSUES {
        fixture.issue(&number.to_string());
    }
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..kills() {
        let mut running = fixture.start();
        let begun = Instant::now();
        let moment = Duration::from_millis(random.u64(50..2500));
        while begun.elapsed() < moment && running.child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(running.child.try_wait().unwrap().is_none(), "{}", running.log());
        running.child.kill().unwrap();
        running.wait();
        eventually("no process of an agent is left", || is_quiet(&fixture));
        assert_eq!(fixture.notes("doubled"), "", "round {round}");
        let entries = remembered(&fixture);
        check_workspaces(&entries, round);
        check_backoff(&fixture, &entries, round, random.bool());
    }
    let running = fixture.start();
    running.until("the closers are closed", || {
        ["CAR-3", "CAR-7", "CAR-13", "CAR-17"].iter().all(|issue| fixture.state(issue) == "Done")
    });
    running.until("their workspaces are gone", || {
        ["CAR-3", "CAR-7", "CAR-13", "CAR-17"]
            .iter()
            .all(|issue| !fixture.workspace(issue).exists())
    });
    let log = running.log();
    assert_eq!(running.end(), 0, "{log}");
    assert!(is_quiet(&fixture));
    assert_eq!(fixture.notes("doubled"), "");
}

/// Every workspace that is remembered is there, as whole as it was made, unless it is being removed.
fn check_workspaces(entries: &BTreeMap<String, Entry>, round: usize) {
    for (issue, entry) in entries {
        if let (Some(workspace), false) = (&entry.workspace, entry.stage == "cleaning") {
            assert!(workspace.join("born").exists(), "round {round}: {issue} lost its workspace");
        }
    }
}

/// What waited after a failure is not begun before its time by the next conductor.
fn check_backoff(
    fixture: &ConductorFixture,
    entries: &BTreeMap<String, Entry>,
    round: usize,
    look: bool,
) {
    let waiting = entries.iter().filter(|(_, entry)| entry.stage == "retrying");
    let waiting: BTreeMap<&String, i64> =
        waiting.filter_map(|(issue, entry)| Some((issue, entry.due?))).collect();
    if !look || waiting.is_empty() {
        return;
    }
    let before = starts(fixture).len();
    let mut running = fixture.start();
    std::thread::sleep(Duration::from_millis(700));
    running.child.kill().unwrap();
    running.wait();
    eventually("no process of an agent is left", || is_quiet(fixture));
    for (issue, at) in starts(fixture).into_iter().skip(before) {
        if let Some(due) = waiting.get(&issue) {
            assert!(at >= *due, "round {round}: {issue} began {} ms before its time", due - at);
        }
    }
}
