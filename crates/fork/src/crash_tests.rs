//! Promotions that end at every point, and steps that a power loss takes back.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees and mount overlays")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Durability, Root};
use pretty_assertions::assert_eq;

use crate::journal::{self, Found};
use crate::promote::{FaultPoint, promote_with, recover_with};
use crate::steps::Steps;
use crate::{Layers, PromoteError, PromoteOptions, Recovery, Source, recover};
use world::{BEFORE, CHANGES, Roots, Tree, World, has_overlays};

#[path = "../tests/suite/world.rs"]
#[expect(dead_code, reason = "the integration tests use the rest")]
mod world;

/// A base and a fork of it, with the tree of the fork.
struct Forked {
    world: World,
    fork: Tree,
}

impl Forked {
    fn new(seed: u64, count: usize) -> Self {
        let world = World::new();
        world.inside("base", &format!("{BEFORE}\nrandom {seed} {count}"));
        let layers = world.layers("fork");
        let fork = world.in_fork(&layers, &format!("{CHANGES}\nrandom {} {count}", seed + 1));
        Self { world, fork }
    }
}

fn upper(world: &World) -> Root {
    Layers::open(&world.root("forks"), Path::new("fork")).unwrap().upper().unwrap()
}

fn options(durability: Durability) -> PromoteOptions {
    PromoteOptions { durability, ..PromoteOptions::default() }
}

/// Promotes until a point, and returns the points that were reached.
fn promote_until(world: &World, durability: Durability, stop: usize) -> Vec<FaultPoint> {
    let (upper, server) = (upper(world), world.server());
    let mut reached = Vec::new();
    let mut faults = |point| {
        reached.push(point);
        // Any error will do: it is passed on.
        if reached.len() > stop { Err(PromoteError::Unfinished) } else { Ok(()) }
    };
    let source = Source::Upper(&upper);
    let _ = promote_with(&world.base(), source, server.get(), &options(durability), &mut faults);
    reached
}

fn assert_recovers(world: &World, expected: &Tree, context: &str) {
    let (upper, server) = (upper(world), world.server());
    match recover(&world.base(), &upper, server.get()).unwrap() {
        Recovery::Finished(promoted) => {
            assert_eq!(promoted.conflicts, [""; 0].map(PathBuf::from), "{context}");
        }
        Recovery::Nothing => {}
        Recovery::Damaged => panic!("{context}"),
    }
    let base = world.tree("base");
    assert_eq!(base.entries, expected.entries, "{context}");
    assert!(base.keeps_links_of(expected), "{context}");
    assert_eq!(recover(&world.base(), &upper, server.get()).unwrap(), Recovery::Nothing);
}

#[test]
fn a_promotion_that_ends_at_any_point_is_finished_by_the_recovery() {
    if !has_overlays() {
        return;
    }
    for (seed, durability, every) in [(1, Durability::Buffered, 1), (7, Durability::Synced, 4)] {
        let forked = Forked::new(seed, 10);
        let before = forked.world.tree("base");
        let points = promote_until(&forked.world.duplicate(), durability, usize::MAX);
        let steps = points.len() - 4;
        assert!(steps > 30, "{steps}");
        let expected: Vec<_> = [FaultPoint::ContentsSynced, FaultPoint::JournalWritten]
            .into_iter()
            .chain((0..steps).map(FaultPoint::Step))
            .chain([FaultPoint::Synced, FaultPoint::JournalRemoved])
            .collect();
        assert_eq!(points, expected);
        for stop in (0..points.len()).step_by(every) {
            let world = forked.world.duplicate();
            let reached = promote_until(&world, durability, stop);
            let context = format!("seed {seed}, stopped at {:?}", reached.last());
            let has_journal = !world.tree("journal").entries.is_empty();
            assert_eq!(has_journal, stop > 0 && stop + 1 < points.len(), "{context}");
            let expected = if stop == 0 { &before } else { &forked.fork };
            assert_recovers(&world, expected, &context);
        }
    }
}

#[test]
fn a_recovery_that_ends_at_any_point_is_finished_by_the_next_one() {
    if !has_overlays() {
        return;
    }
    let forked = Forked::new(21, 40);
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..20 {
        let world = forked.world.duplicate();
        promote_until(&world, Durability::Buffered, 1 + random.usize(..30));
        let (upper, server) = (upper(&world), world.server());
        for _ in 0..2 {
            let mut left = random.usize(..40);
            let mut faults = |_| {
                left = left.checked_sub(1).ok_or(PromoteError::Unfinished)?;
                Ok(())
            };
            let _ = recover_with(&world.base(), &upper, server.get(), &mut faults);
        }
        assert_recovers(&world, &forked.fork, &format!("round {round}"));
    }
}

#[test]
fn steps_that_a_power_loss_takes_back_are_taken_again() {
    if !has_overlays() {
        return;
    }
    let forked = Forked::new(33, 40);
    let mut random = fastrand::Rng::with_seed(6);
    for round in 0..30 {
        let world = forked.world.duplicate();
        promote_until(&world, Durability::Synced, 1);
        let (base, upper, Roots { journal, trash }) = (world.base(), upper(&world), world.server());
        let Found::Journal(journal) = journal::read(&journal).unwrap() else { panic!() };
        // The steps that reached the disk, in their order.
        let lost = random.u8(1..9);
        let mut steps = Steps::new(&base, &upper, &trash, &journal);
        for (number, step) in journal.steps.iter().enumerate() {
            if random.u8(..10) >= lost {
                let _ = steps.take(number, step);
            }
        }
        drop(steps);
        assert_recovers(&world, &forked.fork, &format!("round {round}"));
    }
}

#[test]
fn what_came_to_the_base_between_a_crash_and_the_recovery_is_left_alone() {
    if !has_overlays() {
        return;
    }
    let forked = Forked::new(40, 40);
    let world = forked.world;
    promote_until(&world, Durability::Buffered, 1);
    world.inside(
        "base",
        "sh rm -r kept/1 gone new 2> /dev/null || true; echo mine > kept/1; echo mine > gone",
    );
    let (upper, server) = (upper(&world), world.server());
    let Recovery::Finished(promoted) = recover(&world.base(), &upper, server.get()).unwrap() else {
        panic!();
    };
    let conflicts: HashSet<_> = promoted.conflicts.iter().map(PathBuf::as_path).collect();
    assert_eq!(conflicts, HashSet::from([Path::new("gone"), Path::new("kept/1")]));
    let read = |path: &str| std::fs::read_to_string(world.path("base").join(path)).unwrap();
    assert_eq!(
        (read("kept/1"), read("gone"), read("kept/7")),
        ("mine\n".into(), "mine\n".into(), "6\n".into())
    );
}
