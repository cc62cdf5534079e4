//! Copies of a base.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use carrel_fork::{
    ChangeKind, Copied, CopyError, CopyOptions, Limits, PromoteOptions, Source, changes_of_copy,
    copy, promote,
};
use carrel_fsroot::FileKind;
use pretty_assertions::assert_eq;

use crate::world::{BEFORE, CHANGES, World, shown};

fn copied(world: &World) -> Copied {
    std::fs::create_dir(world.path("forks/copy")).unwrap();
    let options = CopyOptions { entries: 1000, cancelled: &AtomicBool::new(false) };
    copy(&world.base(), &world.root("forks/copy"), options).unwrap()
}

#[test]
fn a_copy_has_contents_modes_times_links_holes_and_attributes_and_lists_the_rest() {
    let world = World::new();
    world.inside("base", BEFORE);
    world.inside(
        "base",
        "sh mkfifo fifo; mkdir -p sub/dir; ln one sub/three
         sh echo start > holes; truncate -s 40M holes; echo end >> holes; touch -d 2001-02-03 kept/1
         sh touch -d 2002-03-04 sub; chmod 2755 sub; chmod 4755 holes
         attribute sub user.two two
         attribute sub user.overlay.opaque y",
    );
    let outcome = copied(&world);
    assert_eq!(outcome.left_out, [(PathBuf::from("fifo"), FileKind::Fifo)]);
    let mut expected = world.tree("base").without_overlay();
    expected.entries.remove("fifo");
    expected.entries.get_mut("holes").unwrap().mode = "755".to_owned();
    let found = world.tree("forks/copy");
    assert_eq!(found, expected);
    assert_eq!(found.links.len(), 1);
    let of = |tree: &str, path: &str| world.path(tree).join(path).symlink_metadata().unwrap();
    for path in ["kept/1", "sub", "kept", "link", "holes"] {
        let (base, copy) = (of("base", path), of("forks/copy", path));
        assert_eq!(base.mtime_nsec(), copy.mtime_nsec(), "{path}");
        assert_eq!(base.mtime(), copy.mtime(), "{path}");
    }
    assert!(of("forks/copy", "holes").blocks() * 512 < 1 << 20);
    let links = expected.entries.values().filter(|found| found.kind == "link").count();
    assert_eq!(outcome.links, links as u64);
    // What was not copied is not missed.
    let copy = world.root("forks/copy");
    assert_eq!(changes_of_copy(&world.base(), &copy, Limits::default()).unwrap(), []);
}

#[test]
fn a_copy_is_promoted_like_an_overlay() {
    let world = World::new();
    world.inside("base", BEFORE);
    world.inside("base", "sh mkfifo pipe");
    copied(&world);
    world.inside("forks/copy", CHANGES);
    let (before, fork) = (world.tree("base"), world.tree("forks/copy"));
    let mut expected = before.without_overlay().changes_to(&fork.without_overlay());
    expected.retain(|change| change != "deleted pipe");
    let (server, copy) = (world.server(), world.root("forks/copy"));
    let options = PromoteOptions::default();
    let promoted = promote(&world.base(), Source::Copy(&copy), server.get(), &options).unwrap();
    assert_eq!(shown(&promoted.changes), expected);
    assert!(promoted.changes.iter().any(|change| change.kind == ChangeKind::Type));
    let mut base = world.tree("base").without_overlay();
    assert_eq!(base.entries.remove("pipe").unwrap().kind, "special");
    assert_eq!(base.entries, fork.without_overlay().entries);
}

#[test]
fn a_copy_ends_when_it_is_cancelled_or_too_large() {
    let world = World::new();
    world.inside("base", BEFORE);
    let target = world.root("forks");
    let options = CopyOptions { entries: 1000, cancelled: &AtomicBool::new(true) };
    assert!(matches!(copy(&world.base(), &target, options), Err(CopyError::Cancelled)));
    let options = CopyOptions { entries: 5, cancelled: &AtomicBool::new(false) };
    let refused = copy(&world.base(), &target, options);
    assert!(matches!(refused, Err(CopyError::TooManyEntries { limit: 5 })));
}

#[test]
fn a_server_that_runs_as_root_keeps_the_owners() {
    carrel_skip::needs!(Root);
    let world = World::new();
    world.inside("base", BEFORE);
    world.inside("base", "sh chown -hR 1234:2345 . && chown -h 77:78 kept/1 link kept/deep");
    world.inside("base", "sh chmod 4755 kept/1");
    std::fs::create_dir(world.path("forks/copy")).unwrap();
    std::os::unix::fs::chown(world.path("forks/copy"), Some(1234), Some(2345)).unwrap();
    let options = CopyOptions { entries: 1000, cancelled: &AtomicBool::new(false) };
    copy(&world.base(), &world.root("forks/copy"), options).unwrap();
    for path in world.tree("base").entries.keys() {
        let owner = |tree: &str| {
            let metadata = world.path(tree).join(path).symlink_metadata().unwrap();
            (metadata.uid(), metadata.gid())
        };
        assert_eq!(owner("forks/copy"), owner("base"), "{path}");
    }
    let mode = world.path("forks/copy/kept/1").metadata().unwrap().mode();
    assert_eq!(mode & 0o7777, 0o755);
}
