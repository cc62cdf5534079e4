use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use carrel_conductor::OperatorCommand;
use carrel_store::NewIssue;

use super::harness::{Harness, TurnScript};

const ISSUES: usize = 500;
const AGENTS: usize = 50;

/// What the loop may take to hear an order, in a program that is not optimised and among other tests.
const SLOWEST: Duration = Duration::from_millis(50 * 5);

/// How much the process may grow after it has seen everything once.
const MOST_GROWTH: u64 = 24 << 20;

fn poll_mode() -> (Duration, Duration) {
    match std::env::var_os("CARREL_SOAK") {
        Some(_) => (Duration::from_mins(1), Duration::from_mins(10)),
        None => (Duration::from_secs(4), Duration::from_secs(6)),
    }
}

/// Returns how much memory the process has in use.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_agents_and_five_hundred_issues_keep_the_loop_quick_and_small() {
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    let harness = Harness::new(|turn| {
        let number = TURNS.fetch_add(1, Ordering::SeqCst);
        std::fs::write(turn.directory.join("work"), number.to_string()).unwrap();
        TurnScript::Busy(Duration::from_millis(20 + number as u64 % 80))
    });
    harness
        .write_polling(1000, &format!("agent: {{max_concurrent_agents: {AGENTS}, max_turns: 3}}"));
    let tracker = harness.tracker();
    for number in 0..ISSUES {
        let (title, state) = (number.to_string(), "Todo".to_owned());
        tracker.add(NewIssue { title, state, ..NewIssue::default() }).await.unwrap();
    }
    let working = harness.start().await;
    let (warm_up, measured) = poll_mode();
    tokio::time::sleep(warm_up).await;
    let (before, began) = (resident(), Instant::now());
    let mut waits = Vec::new();
    let mut most = 0;
    while began.elapsed() < measured {
        let started = Instant::now();
        working.handle.send(OperatorCommand::Resume).await.unwrap();
        waits.push(started.elapsed());
        most = most.max(working.handle.state().agents());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let grown = resident().saturating_sub(before);
    waits.sort_unstable();
    let at = |share: usize| waits[waits.len() * share / 1000];
    let (p50, p99, worst) = (at(500), at(990), *waits.last().unwrap());
    let turns = TURNS.load(Ordering::SeqCst);
    eprintln!(
        "{turns} turns, {most} agents at once, p50 {p50:?}, p99 {p99:?}, worst {worst:?}, grown {grown}"
    );
    working.end().await;
    assert!(!harness.seen.doubled.load(Ordering::SeqCst));
    assert!(most <= AGENTS && most > AGENTS / 2, "{most}");
    assert!(turns > ISSUES / 2, "{turns}");
    assert!(p99 < SLOWEST, "p99 {p99:?}");
    assert!(grown < MOST_GROWTH, "{grown}");
}
