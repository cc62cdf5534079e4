//! Random trees: the changes of a fork are exactly what differs, and a promotion gives the base the fork's tree.
//! `CARREL_FORK_ROUNDS` sets how many trees.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use carrel_fork::{
    CopyOptions, Layers, Limits, PromoteOptions, Readiness, Source, changes, changes_of_copy, copy,
    promote,
};
use carrel_fsroot::Durability;
use pretty_assertions::assert_eq;

use crate::world::{World, has_overlays, shown};

fn seeds() -> std::ops::Range<u64> {
    let rounds = std::env::var("CARREL_FORK_ROUNDS").ok().and_then(|text| text.parse().ok());
    0..rounds.unwrap_or(12)
}

fn unsynced() -> PromoteOptions {
    PromoteOptions { durability: Durability::Buffered, ..PromoteOptions::default() }
}

#[test]
fn the_changes_of_an_overlay_are_exact_and_promotion_gives_the_base_its_tree() {
    if !has_overlays() {
        return;
    }
    for seed in seeds() {
        let world = World::new();
        world.inside("base", &format!("random {} 60", seed + 1_000_000));
        // The second fork is over what the first one left.
        for round in 0..2_u64 {
            let name = format!("fork-{round}");
            let layers = world.layers(&name);
            let before = world.in_fork(&layers, "");
            assert_eq!(layers.prepare().unwrap(), Readiness::Ready);
            let fork = world.in_fork(&layers, &format!("random {} 80", seed * 2 + round));
            let expected = before.changes_to(&fork);
            let upper = layers.upper().unwrap();
            let found = changes(&world.base(), &upper, Limits::default()).unwrap();
            assert_eq!(shown(&found), expected, "seed {seed}");
            let server = world.server();
            let source = Source::Upper(&upper);
            let promoted = promote(&world.base(), source, server.get(), &unsynced()).unwrap();
            assert_eq!(promoted.changes, found, "seed {seed}");
            assert_eq!(promoted.conflicts, [""; 0].map(PathBuf::from), "seed {seed}");
            let base = world.tree("base");
            if round == 0 {
                assert_eq!(base.entries, fork.entries, "seed {seed}");
            }
            // Attributes of the base that look like an overlay's are hidden in the second fork.
            assert_eq!(
                base.without_overlay().entries,
                fork.without_overlay().entries,
                "seed {seed}"
            );
            assert!(base.keeps_links_of(&fork), "seed {seed}: {:?} {:?}", base.links, fork.links);
            assert_eq!(world.tree("journal").entries.len(), 0);
            Layers::remove(&world.root("forks"), Path::new(&name)).unwrap();
        }
    }
}

#[test]
fn the_changes_of_a_copy_are_exact_and_promotion_gives_the_base_its_tree() {
    for seed in seeds() {
        let world = World::new();
        world.inside("base", &format!("random {} 60", seed + 2_000_000));
        std::fs::create_dir(world.path("forks/copy")).unwrap();
        let target = world.root("forks/copy");
        let options = CopyOptions { entries: 1 << 20, cancelled: &AtomicBool::new(false) };
        copy(&world.base(), &target, options).unwrap();
        let before = world.tree("base");
        let copied = world.tree("forks/copy");
        assert_eq!(copied.without_overlay(), before.without_overlay(), "seed {seed}");
        world.inside("forks/copy", &format!("random {} 80", seed + 3_000_000));
        let fork = world.tree("forks/copy");
        let expected = before.without_overlay().changes_to(&fork.without_overlay());
        let found = changes_of_copy(&world.base(), &target, Limits::default()).unwrap();
        assert_eq!(shown(&found), expected, "seed {seed}");
        let server = world.server();
        let source = Source::Copy(&target);
        let promoted = promote(&world.base(), source, server.get(), &unsynced()).unwrap();
        assert_eq!(shown(&promoted.changes), expected, "seed {seed}");
        let base = world.tree("base");
        assert_eq!(base.without_overlay().entries, fork.without_overlay().entries, "seed {seed}");
        assert!(base.keeps_links_of(&fork), "seed {seed}");
    }
}
