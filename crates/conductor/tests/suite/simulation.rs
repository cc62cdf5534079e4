//! Random histories with faults. Whatever happens, the promises hold, and when nothing goes wrong any
//! more all work is done.

use carrel_conductor::{Event, Order, Stage};

use crate::world::{World, issue};

const ISSUES: usize = 6;
const STEPS: usize = 150;

fn histories() -> u64 {
    let wanted = std::env::var("CARREL_HISTORIES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(100)
}

#[test]
fn random_histories_hold_the_promises_and_come_to_an_end() {
    let first = fastrand::u64(..1 << 40);
    for seed in first..first + histories() {
        if std::panic::catch_unwind(|| history(World::new(seed, ISSUES))).is_err() {
            eprintln!("seed {seed} breaks a promise:");
            history(World::new(seed, ISSUES).observed());
        }
    }
}

fn history(mut world: World) {
    world.faults = world.rng.u32(3..30);
    for _ in 0..STEPS {
        let until = world.now + world.rng.i64(1..60_000);
        world.step(until);
        disturb(&mut world);
    }
    finish(&mut world);
}

/// Something that people do, or that happens to the machine.
fn disturb(world: &mut World) {
    let number = world.rng.usize(..ISSUES);
    let id = issue(number).id;
    match world.rng.u8(..60) {
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
        7 => world.hear(Event::Told(Order::RetryNow(id))),
        8 => world.hear(Event::Told(Order::Cancel(id))),
        9 => world.hear(Event::Told(Order::Answer(id, "the first".to_owned()))),
        10 => world.hear(Event::Told(Order::Pause)),
        11 => world.hear(Event::Told(Order::Drain)),
        12 | 13 => world.hear(Event::Told(Order::Resume)),
        14 => world.hear(Event::Told(Order::Refresh)),
        _ => {}
    }
}

/// Nothing goes wrong any more: every issue that is to be worked on is worked on, and of every
/// finished one nothing is left.
fn finish(world: &mut World) {
    world.faults = 0;
    world.hear(Event::Told(Order::Resume));
    for number in 0..ISSUES {
        world.tracker.insert(issue(number).id, issue(number));
    }
    world.pass(400);
    for number in 0..ISSUES {
        let blocked =
            world.entry(number).is_some_and(|entry| matches!(entry.stage, Stage::Blocked(_)));
        let entry = world.entry(number);
        let worked = entry.is_some_and(|entry| entry.spent.attempts > 0);
        assert!(worked || blocked, "nobody works on {number}: {entry:?}");
    }
    for number in 0..ISSUES {
        world.move_to(number, "Done");
    }
    world.pass(400);
    assert!(world.state.entries.is_empty(), "left over: {:?}", world.state.entries);
    assert!(world.workspaces.is_empty(), "not removed: {:?}", world.workspaces);
}
