//! A thread swaps a directory for a link that leads out, as fast as it can, while
//! others use paths through it. `CARREL_RACE_SECONDS` makes the run longer.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carrel_fsroot::{Collision, Durability, Root, Step, UsageLimit, WriteOptions};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::{World, p};

fn seconds() -> Duration {
    let text = std::env::var("CARREL_RACE_SECONDS").unwrap_or_default();
    Duration::from_secs(text.parse().unwrap_or(2))
}

/// Exchanges the directory and the link in one step, so that one of the two is always there.
fn swap(world: &World) {
    let (a, b) = (world.inside("door"), world.inside("aside"));
    renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
}

fn use_everything(root: &Root, round: u64) -> bool {
    let buffered = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    let leaked = root.read(p("door/secret"), 100).is_ok_and(|bytes| bytes == b"outside")
        || root.read_range(p("door/secret"), 0, 9).is_ok_and(|range| range.bytes == b"outside")
        || root.browse().read(p("door/secret"), 100).is_ok_and(|bytes| bytes == b"outside")
        || root.list(p("door")).is_ok_and(|list| list.iter().any(|entry| entry.name == "bait"));
    let own = format!("door/own-{round}");
    let own = Path::new(&own);
    // Each may fail while the link stands there; none may act outside.
    let _ = root.write(p("door/secret"), b"inside", buffered);
    let _ = root.write(own, b"inside", buffered);
    let _ = root.create_directories(p("door/made/deep"), 0o755);
    let _ = root.rename(own, p("door/renamed"), Collision::Replace);
    let _ = root.remove_file(p("door/bait"));
    let _ = root.remove_tree(p("door/made"));
    let _ = root.usage(p("door"), UsageLimit::NONE);
    let _ = root.walk(p("door"), |_| Ok(Step::Continue), |_| Ok(()));
    leaked
}

#[test]
fn nothing_outside_is_read_or_written_while_links_are_swapped() {
    let world = World::new();
    world.file("door/secret", "inside");
    std::fs::write(world.outside("bait"), "bait").unwrap();
    symlink("../outside", world.inside("aside")).unwrap();
    let stop = AtomicBool::new(false);
    let (swaps, uses) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + seconds();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                swap(&world);
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                while Instant::now() < end {
                    let round = uses.fetch_add(1, Ordering::Relaxed);
                    assert!(!use_everything(&world.root, round), "something outside was read");
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
    });
    eprintln!("{} swaps against {} rounds of 12 operations", swaps.into_inner(), uses.into_inner());
    let mut outside: Vec<_> =
        std::fs::read_dir(world.outside("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    outside.sort();
    assert_eq!(outside, ["bait", "secret"]);
    assert_eq!(std::fs::read_to_string(world.outside("secret")).unwrap(), "outside");
}
