//! Random histories with faults. Whatever happens, the promises hold, and when nothing goes wrong any
//! more all work is done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use carrel_conductor::{Event, OperatorCommand, Rules, Stage};
use carrel_config::Budget;
use fastrand::Rng;

use crate::simulated_world::{SimulatedWorld, id, issue, rules};

const ISSUES: usize = 6;
const STEPS: usize = 120;

fn histories() -> u64 {
    let wanted = std::env::var("CARREL_HISTORIES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(200)
}

/// Where histories begin: anywhere, unless somebody wants to see one again.
fn first_seed() -> u64 {
    let wanted = std::env::var("CARREL_SEED").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or_else(|| fastrand::u64(..1 << 40))
}

#[test]
fn item_097_random_histories_hold_the_promises_and_come_to_an_end() {
    let (first, count) = (first_seed(), histories());
    eprintln!("{count} histories from seed {first}");
    let next = AtomicU64::new(first);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| live_through(&next, first + count));
        }
    });
}

fn live_through(next: &AtomicU64, end: u64) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        if std::panic::catch_unwind(|| history(SimulatedWorld::new(seed, ISSUES))).is_err() {
            next.store(end, Ordering::Relaxed);
            eprintln!("CARREL_SEED={seed} CARREL_HISTORIES=1 breaks a promise:");
            history(SimulatedWorld::new(seed, ISSUES).observed());
        }
    }
}

fn history(mut world: SimulatedWorld) {
    world.faults = world.rng.u32(3..30);
    world.state.rules = any_rules(&mut world.rng);
    for _ in 0..STEPS {
        let until = world.now + world.rng.i64(1..60_000);
        world.step(until);
        disturb(&mut world);
    }
    finish(&mut world);
}

fn any_rules(rng: &mut Rng) -> Rules {
    let mut rules = rules();
    rules.max_agents = rng.usize(1..5);
    rules.max_turns = rng.u64(1..5);
    rules.stall_timeout = rng.bool().then_some(Duration::from_mins(1));
    if rng.bool() {
        rules.max_agents_by_state.insert("todo".to_owned(), rng.usize(1..3));
    }
    if rng.u8(..3) == 0 {
        let mut budget = |most: u64| Budget {
            turns: rng.bool().then(|| rng.u64(1..most)),
            tokens: rng.bool().then(|| rng.u64(1..most * 30)),
            minutes: rng.bool().then(|| rng.u64(1..most)),
            attempts: rng.bool().then(|| rng.u64(1..most)),
        };
        rules.budgets.issue = budget(12);
        rules.budgets.day = budget(60);
        rules.budgets.turn = Budget { turns: None, attempts: None, ..budget(4) };
        rules.budgets.run = Budget { attempts: None, ..budget(6) };
    }
    rules
}

/// Something that people do, or that happens to the machine.
fn disturb(world: &mut SimulatedWorld) {
    let number = world.rng.usize(..ISSUES);
    let id = id(number);
    match world.rng.u8(..80) {
        0 => world.crash(),
        1 => world.move_to(number, "Done"),
        2 | 3 => world.move_to(number, "In Progress"),
        4 => world.move_to(number, "Review"),
        5 => {
            world.tracker.remove(&id);
        }
        6 => {
            world.tracker.insert(id, issue(number));
        }
        7 => world.command(OperatorCommand::RetryNow(id)),
        8 => world.command(OperatorCommand::Cancel(id)),
        9 => world.command(OperatorCommand::Answer(id, "the first".to_owned())),
        10 => world.command(OperatorCommand::Pause),
        11 => world.command(OperatorCommand::Drain),
        12..15 => world.command(OperatorCommand::Resume),
        15 => world.command(OperatorCommand::Refresh),
        16 => world.command(OperatorCommand::Unblock(id)),
        17 => {
            let rules = any_rules(&mut world.rng);
            world.apply(Event::WorkflowChanged(Box::new(rules)));
        }
        18 => world.apply(Event::WorkflowInvalid("no front matter".to_owned())),
        19..22 => world.dies_after = Some(world.rng.usize(..4)),
        _ => {}
    }
}

/// Nothing goes wrong any more: every issue that is to be worked on is worked on, and of every
/// finished one nothing is left.
fn finish(world: &mut SimulatedWorld) {
    world.faults = 0;
    world.dies_after = None;
    world.apply(Event::WorkflowChanged(Box::new(rules())));
    world.pass(200);
    world.command(OperatorCommand::Resume);
    for number in 0..ISSUES {
        world.tracker.insert(id(number), issue(number));
        // Whoever is asked for something does it.
        world.command(OperatorCommand::RetryNow(id(number)));
    }
    let begun = |world: &SimulatedWorld| -> Vec<u64> {
        let accounts = (0..ISSUES).map(|number| world.accounts.by_issue.get(&id(number)));
        accounts.map(|account| account.map_or(0, |account| account.begun)).collect()
    };
    let before = begun(world);
    world.pass(600);
    for (number, (before, after)) in before.iter().zip(begun(world)).enumerate() {
        let claimed = world.claimed(number);
        let blocked = claimed.is_some_and(|claimed| matches!(claimed.stage, Stage::Blocked(_)));
        assert!(after > *before || blocked, "nobody works on {number}: {claimed:?}");
    }
    for number in 0..ISSUES {
        world.move_to(number, "Done");
    }
    world.pass(400);
    assert!(world.state.issues.is_empty(), "left over: {:?}", world.state.issues);
    assert!(world.workspaces.is_empty(), "not removed: {:?}", world.workspaces);
}
