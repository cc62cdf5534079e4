//! The layers of a fork on disk.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use carrel_fork::{Layers, LayersError, Readiness};
use carrel_fsroot::UsageLimit;
use pretty_assertions::assert_eq;

use crate::world::{World, has_overlays};

const FORK: &str = "fork";

#[test]
fn the_upper_layer_has_owner_group_and_mode_of_the_base() {
    let world = World::new();
    std::fs::set_permissions(world.path("base"), PermissionsExt::from_mode(0o2751)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(world.path("base"), Some(1234), Some(2345)).unwrap();
        std::fs::set_permissions(world.path("base"), PermissionsExt::from_mode(0o2751)).unwrap();
    }
    let layers = world.layers(FORK);
    let of = |path: &Path| {
        let metadata = path.metadata().unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
    };
    let (upper, work) = layers.paths();
    let base = of(&world.path("base"));
    assert_eq!(of(&upper), base);
    assert_eq!(of(&work), (base.0, base.1, 0o700));
    assert_eq!(of(&world.path("forks/fork")).2, 0o700);
    assert!(matches!(
        Layers::create(&world.root("forks"), Path::new(FORK), &world.base()),
        Err(LayersError::Files(_))
    ));
    assert!(Layers::open(&world.root("forks"), Path::new(FORK)).is_ok());
}

#[test]
fn layers_that_were_not_made_completely_are_told_and_can_be_removed() {
    let world = World::new();
    for missing in ["boot", "upper", "work"] {
        world.layers(FORK);
        let path = world.path("forks/fork").join(missing);
        std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path)).unwrap();
        let opened = Layers::open(&world.root("forks"), Path::new(FORK));
        assert!(matches!(opened, Err(LayersError::Incomplete)), "{missing}");
        Layers::remove(&world.root("forks"), Path::new(FORK)).unwrap();
    }
    Layers::remove(&world.root("forks"), Path::new(FORK)).unwrap();
}

#[test]
fn layers_are_mounted_again_in_the_same_boot_and_discarded_in_another() {
    if !has_overlays() {
        return;
    }
    let world = World::new();
    let layers = world.layers(FORK);
    assert_eq!(layers.prepare().unwrap(), Readiness::Ready);
    world.in_fork(&layers, "sh echo one > one");
    // The kernel refuses a volatile upper layer that was mounted before.
    let mount = || world.mounting(&layers).arg("true").output().unwrap().status.success();
    assert!(!mount());
    assert_eq!(layers.prepare().unwrap(), Readiness::Ready);
    let seen = world.in_fork(&layers, "sh echo two > two");
    assert_eq!(seen.entries.keys().collect::<Vec<_>>(), ["one", "two"]);
    std::fs::write(world.path("forks/fork/boot"), "another boot\n").unwrap();
    let layers = Layers::open(&world.root("forks"), Path::new(FORK)).unwrap();
    assert_eq!(layers.prepare().unwrap(), Readiness::OtherBoot);
    assert!(!mount());
}

#[test]
fn layers_with_whiteouts_and_closed_directories_are_counted_and_removed() {
    if !has_overlays() {
        return;
    }
    let world = World::new();
    world.inside("base", "sh mkdir a; echo a > a/a; echo b > b");
    let layers = world.layers(FORK);
    world.in_fork(&layers, "sh rm b a/a; mkdir -p c/d; head -c 100000 /dev/zero > c/d/e");
    let usage = layers.usage(UsageLimit::NONE).unwrap();
    // One inode for both whiteouts, the directories `a`, `c` and `c/d`, and the file.
    assert_eq!((usage.inodes, usage.unreadable), (5, 0));
    assert!(usage.bytes >= 100_000, "{usage:?}");
    let (upper, _) = layers.paths();
    for path in ["c/d", "c", "a"] {
        std::fs::set_permissions(upper.join(path), PermissionsExt::from_mode(0o000)).unwrap();
    }
    Layers::remove(&world.root("forks"), Path::new(FORK)).unwrap();
    assert!(!world.path("forks/fork").exists());
    assert_eq!(world.tree("base").entries.len(), 3);
}
