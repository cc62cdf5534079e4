//! Promotion into the base, and its refusals.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use carrel_fork::{
    Change, ChangesError, Drift, DriftPolicy, Layers, Limits, PromoteError, PromoteOptions,
    Promoted, Recovery, Source, abandon, changes, is_unfinished, promote, recover,
};
use carrel_fsroot::{Durability, Root};
use pretty_assertions::assert_eq;
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};

use crate::world::{BEFORE, CHANGES, World, has_overlays, shown};

fn promote_with(
    world: &World,
    layers: &Layers,
    options: &PromoteOptions,
) -> Result<Promoted, PromoteError> {
    let (upper, server) = (layers.upper().unwrap(), world.server());
    promote(&world.base(), Source::Upper(&upper), server.get(), options)
}

fn promoted(world: &World, layers: &Layers) -> Vec<String> {
    let promoted = promote_with(world, layers, &PromoteOptions::default()).unwrap();
    assert_eq!(promoted.conflicts, [""; 0].map(PathBuf::from));
    shown(&promoted.changes)
}

fn found(world: &World, layers: &Layers, limits: Limits) -> Result<Vec<Change>, ChangesError> {
    changes(&world.base(), &layers.upper().unwrap(), limits)
}

/// The upper layer, to be written without an overlay.
fn upper(layers: &Layers) -> PathBuf {
    layers.paths().0
}

fn attribute(path: &Path, name: &str, value: &str) {
    setxattr(path, name, value.as_bytes(), XattrFlags::empty()).unwrap();
}

fn whiteout(path: &Path) {
    mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
}

#[test]
fn every_kind_of_change_is_listed_and_promoted() {
    if !has_overlays() {
        return;
    }
    let world = World::new();
    world.inside("base", BEFORE);
    let layers = world.layers("fork");
    let fork = world.in_fork(&layers, CHANGES);
    let before = world.tree("base");
    let expected = before.changes_to(&fork);
    let inode = |path: &str| world.path("base").join(path).symlink_metadata().unwrap().ino();
    let unchanged = inode("kept/5");
    assert_eq!(promoted(&world, &layers), expected);
    let base = world.tree("base");
    assert_eq!(base.entries, fork.entries);
    assert!(base.keeps_links_of(&fork));
    for change in
        ["attributes kept/5", "mode kept/deep", "type becomes-file", "type becomes-directory"]
    {
        assert!(expected.iter().any(|found| found == change), "{change}: {expected:?}");
    }
    assert_ne!(inode("kept/5"), unchanged);
    // Names are unescaped by exactly one level.
    assert!(base.entries["kept/deep"].attributes.contains("user.overlay.opaque=y"));
    assert_eq!(base.entries["new"].attributes, "user.overlay.overlay.name=value");
    // What went is in the trash.
    let trash = world.tree("trash");
    assert!(trash.entries.keys().any(|path| path.ends_with("/below/1")), "{trash:?}");
}

#[test]
fn directories_get_the_times_and_modes_that_they_have_in_the_fork() {
    if !has_overlays() {
        return;
    }
    let world = World::new();
    world.inside("base", "sh mkdir -p a/b shut; echo f > a/b/f; echo s > shut/s; chmod 555 shut");
    let layers = world.layers("fork");
    world.in_fork(
        &layers,
        "sh echo g > a/b/g; touch -d 2001-02-03 a/b; chmod 750 a; chmod 755 shut; rm shut/s; chmod 555 shut
         sh touch -d 2002-03-04 a",
    );
    let times = |top: &Path| {
        ["a", "a/b", "shut"].map(|path| top.join(path).metadata().unwrap().modified().unwrap())
    };
    let expected = times(&upper(&layers));
    promoted(&world, &layers);
    assert_eq!(times(&world.path("base")), expected);
    let of = |path: &str| world.path("base").join(path).metadata().unwrap();
    assert_eq!(of("a").mode() & 0o7777, 0o750);
    assert_eq!(of("shut").mode() & 0o7777, 0o555);
}

#[test]
fn what_was_copied_up_without_a_change_is_no_change_and_stays() {
    if !has_overlays() {
        return;
    }
    let world = World::new();
    world.inside("base", "sh mkdir d; echo same > d/file; echo other > d/other");
    let layers = world.layers("fork");
    world.in_fork(
        &layers,
        "sh chmod 600 d/file; chmod 644 d/file; touch d/other; echo x > d/x; rm d/x; chmod 700 d; chmod 755 d",
    );
    assert!(upper(&layers).join("d/other").exists(), "it was copied up");
    let inode = || world.path("base/d/file").metadata().unwrap().ino();
    let before = inode();
    let limits = Limits::default();
    assert_eq!(found(&world, &layers, limits).unwrap(), []);
    // Beyond the limit, files of the same length are not compared.
    let unread = Limits { compared_bytes: 4, ..limits };
    assert_eq!(
        shown(&found(&world, &layers, unread).unwrap()),
        ["modified d/file", "modified d/other"]
    );
    assert_eq!(promoted(&world, &layers), [""; 0]);
    assert_eq!(inode(), before);
}

#[test]
fn drift_of_the_base_is_refused() {
    let world = World::new();
    world.inside("base", "sh mkdir -p a/sub b; echo x > a/x; echo y > b/y; echo s > a/sub/s");
    let layers = world.layers("fork");
    std::fs::create_dir(upper(&layers).join("a")).unwrap();
    std::fs::set_permissions(upper(&layers).join("a"), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(upper(&layers).join("a/x"), "new").unwrap();
    whiteout(&upper(&layers).join("b"));
    let with = |policy, paths: &[&str]| {
        let paths = paths.iter().map(PathBuf::from).collect();
        let drift = Drift { paths, policy };
        promote_with(&world, &layers, &PromoteOptions { drift, ..PromoteOptions::default() })
    };
    let refused = |policy, paths: &[&str]| match with(policy, paths) {
        Err(PromoteError::Drift { paths }) => paths,
        other => panic!("{other:?}"),
    };
    let before = world.tree("base");
    let all = ["elsewhere", "a/x", "a/sub/s", "b/y"];
    assert_eq!(refused(DriftPolicy::RefuseAll, &all), all.map(PathBuf::from));
    assert_eq!(refused(DriftPolicy::RefuseAll, &["elsewhere"]), [PathBuf::from("elsewhere")]);
    // Below a directory whose mode changed is no conflict, below one that is gone is.
    let conflicts = ["a/x", "b/y"].map(PathBuf::from);
    assert_eq!(refused(DriftPolicy::RefuseConflicts, &all), conflicts);
    assert_eq!(refused(DriftPolicy::RefuseConflicts, &["a"]), [PathBuf::from("a")]);
    assert_eq!(world.tree("base"), before);
    let promoted = with(DriftPolicy::RefuseConflicts, &["elsewhere", "a/sub/s", "ab"]).unwrap();
    assert_eq!(shown(&promoted.changes), ["deleted b", "deleted b/y", "mode a", "modified a/x"]);
}

#[test]
fn whiteouts_of_both_kinds_and_opaque_directories_hide_what_the_base_has() {
    let world = World::new();
    world.inside(
        "base",
        "sh mkdir -p o/p x; echo 1 > o/1; echo 2 > o/p/2; echo 3 > x/3; echo 4 > x/4; echo 5 > 5",
    );
    let layers = world.layers("fork");
    let at = |path: &str| upper(&layers).join(path);
    std::fs::create_dir_all(at("o")).unwrap();
    attribute(&at("o"), "user.overlay.opaque", "y");
    std::fs::write(at("o/1"), "1\n").unwrap();
    // A whiteout in a directory that moves as a whole does not become a device of the base.
    whiteout(&at("o/p"));
    std::fs::create_dir(at("x")).unwrap();
    attribute(&at("x"), "user.overlay.opaque", "x");
    std::fs::write(at("x/3"), "").unwrap();
    attribute(&at("x/3"), "user.overlay.whiteout", "");
    std::fs::write(at("x/empty"), "").unwrap();
    whiteout(&at("5"));
    whiteout(&at("nothing"));
    let expected = ["added x/empty", "deleted 5", "deleted o/p", "deleted o/p/2", "deleted x/3"];
    assert_eq!(promoted(&world, &layers), expected);
    let base = world.tree("base");
    assert_eq!(base.entries.keys().collect::<Vec<_>>(), ["o", "o/1", "x", "x/4", "x/empty"]);
    assert!(base.entries.values().all(|found| found.attributes.is_empty()), "{base:?}");
}

#[test]
fn an_upper_layer_of_other_features_is_refused() {
    for name in ["user.overlay.metacopy", "user.overlay.redirect"] {
        let world = World::new();
        let layers = world.layers("fork");
        std::fs::write(upper(&layers).join("file"), "").unwrap();
        attribute(&upper(&layers).join("file"), name, "x");
        let refused = promote_with(&world, &layers, &PromoteOptions::default());
        assert!(matches!(
            refused,
            Err(PromoteError::Changes(ChangesError::Unsupported { attribute, .. })) if attribute == name
        ));
        assert_eq!(world.tree("base").entries.len(), 0);
    }
}

#[test]
fn links_lead_neither_out_of_the_base_nor_out_of_the_fork() {
    let world = World::new();
    std::fs::create_dir(world.path("outside")).unwrap();
    std::fs::write(world.path("outside/secret"), "secret").unwrap();
    let layers = world.layers("fork");
    let (base, upper) = (world.path("base"), upper(&layers));
    symlink(world.path("outside"), base.join("out")).unwrap();
    std::fs::create_dir_all(upper.join("out")).unwrap();
    std::fs::write(upper.join("out/secret"), "changed").unwrap();
    std::fs::create_dir(base.join("in")).unwrap();
    std::fs::write(base.join("in/file"), "file").unwrap();
    symlink(world.path("outside"), upper.join("in")).unwrap();
    let expected = ["added out/secret", "deleted in/file", "type in", "type out"];
    assert_eq!(promoted(&world, &layers), expected);
    assert_eq!(std::fs::read_to_string(world.path("outside/secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_to_string(base.join("out/secret")).unwrap(), "changed");
    assert_eq!(std::fs::read_link(base.join("in")).unwrap(), world.path("outside"));
}

#[test]
fn an_interrupted_promotion_is_in_the_way_until_it_is_recovered_or_abandoned() {
    let world = World::new();
    let layers = world.layers("fork");
    std::fs::write(upper(&layers).join("file"), "new").unwrap();
    let server = world.server();
    std::fs::write(world.path("journal/promote.journal"), "damaged").unwrap();
    let refused = promote_with(&world, &layers, &PromoteOptions::default());
    assert!(matches!(refused, Err(PromoteError::Unfinished)));
    let recovered = recover(&world.base(), &layers.upper().unwrap(), server.get()).unwrap();
    assert_eq!(recovered, Recovery::Damaged);
    assert!(is_unfinished(&server.journal).unwrap());
    abandon(&server.journal).unwrap();
    assert_eq!(promoted(&world, &layers), ["added file"]);
}

#[test]
fn a_promotion_across_file_systems_is_refused() {
    let world = World::new();
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        return carrel_skip::unavailable("no second file system at /dev/shm");
    };
    let elsewhere = Root::open(elsewhere.path()).unwrap();
    if elsewhere.mount() == world.base().mount() {
        return carrel_skip::unavailable("no second file system at /dev/shm");
    }
    assert_is_refused_between(&world, &elsewhere);
}

#[test]
fn a_promotion_across_two_mounts_of_one_file_system_is_refused() {
    const TEST: &str = "promoting::a_promotion_across_two_mounts_of_one_file_system_is_refused";
    if !has_overlays() {
        return;
    }
    let world = World::new();
    // Run by itself in a namespace, in which the second mount is.
    if let Some(elsewhere) = std::env::var_os("CARREL_FORK_SECOND_MOUNT") {
        return assert_is_refused_between(&world, &Root::open(Path::new(&elsewhere)).unwrap());
    }
    let mut command = world.mounting(&world.layers("fork"));
    command.args(["sh", "-c", "mount --bind \"$1\" \"$1\" && exec \"$2\" --exact \"$3\"", "sh"]);
    command.arg(world.path("trash")).arg(std::env::current_exe().unwrap()).arg(TEST);
    command.env("CARREL_FORK_SECOND_MOUNT", world.path("trash"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn assert_is_refused_between(world: &World, elsewhere: &Root) {
    let refused = Layers::create(elsewhere, Path::new("fork"), &world.base());
    assert!(matches!(refused, Err(carrel_fork::LayersError::OtherFileSystem)));
    let (layers, server) = (world.layers("fork"), world.server());
    let server = carrel_fork::Server { trash: elsewhere, ..server.get() };
    let upper = layers.upper().unwrap();
    let options = PromoteOptions::default();
    let refused = promote(&world.base(), Source::Upper(&upper), server, &options);
    assert!(matches!(refused, Err(PromoteError::OtherFileSystem)));
}

/// Makes a chain of directories that is longer than any path.
fn make_deep(top: &Path, depth: usize) {
    let mut directory = Root::open(top).unwrap();
    for _ in 0..depth {
        directory.create_directory(Path::new("d"), 0o755).unwrap();
        directory = directory.enter(Path::new("d")).unwrap();
    }
}

#[test]
fn a_deep_tree_is_promoted_and_one_that_is_too_deep_is_refused() {
    let world = World::new();
    let layers = world.layers("fork");
    let deep = |depth: usize| {
        std::fs::create_dir(upper(&layers).join(depth.to_string())).unwrap();
        make_deep(&upper(&layers).join(depth.to_string()), depth);
    };
    deep(1500);
    // The same directories on both sides, and a file at the end.
    std::fs::create_dir(world.path("base/1500")).unwrap();
    make_deep(&world.path("base/1500"), 1400);
    let unsynced = PromoteOptions { durability: Durability::Buffered, ..PromoteOptions::default() };
    assert_eq!(promote_with(&world, &layers, &unsynced).unwrap().changes.len(), 100);
    deep(2100);
    let refused = found(&world, &layers, Limits::default());
    assert!(matches!(refused, Err(ChangesError::TooDeep { .. })));
}

#[test]
fn a_directory_of_a_hundred_thousand_entries_is_promoted_within_the_limits() {
    let world = World::new();
    let layers = world.layers("fork");
    let many = upper(&layers).join("many");
    std::fs::create_dir(&many).unwrap();
    std::fs::write(many.join("0"), "").unwrap();
    for number in 1..100_000 {
        std::fs::hard_link(
            many.join(format!("{}", number / 50_000 * 50_000)),
            many.join(number.to_string()),
        )
        .or_else(|_| std::fs::write(many.join(number.to_string()), ""))
        .unwrap();
    }
    let limits = Limits { entries: 90_000, ..Limits::default() };
    let refused = found(&world, &layers, limits);
    assert!(matches!(refused, Err(ChangesError::TooManyEntries { limit: 90_000 })));
    let options = PromoteOptions { durability: Durability::Buffered, ..PromoteOptions::default() };
    assert_eq!(promote_with(&world, &layers, &options).unwrap().changes.len(), 100_001);
    // Deleted as a whole, listed one by one.
    let layers = world.layers("second");
    whiteout(&upper(&layers).join("many"));
    assert_eq!(promote_with(&world, &layers, &options).unwrap().changes.len(), 100_001);
    assert_eq!(world.tree("base").entries.len(), 0);
}
