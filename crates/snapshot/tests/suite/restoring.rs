use std::path::PathBuf;

use carrel_snapshot::{Reason, RestoreError, RestoreOptions, Times};
use pretty_assertions::assert_eq;

use crate::{World, named, restore, shown, since, take};

fn tree(world: &World) {
    for path in ["same", "changed", "gone", "mode", "to_link", "moved/from", "d/e/f"] {
        world.write(path, path);
    }
    world.link("same", "link");
    std::fs::create_dir_all(world.path("empty/within")).unwrap();
    world.mode("empty/within", 0o750);
}

fn change(world: &World) {
    world.write("changed", "CHANGED");
    world.write("new/deep/file", "new");
    world.mode("mode", 0o700);
    world.mode("same", 0o400);
    for path in ["gone", "to_link", "link", "d", "empty"] {
        world.remove(path);
    }
    world.link(world.outside("secret"), "to_link");
    world.write("link/x", "a directory now");
    world.write("d", "a file");
    std::fs::rename(world.path("moved/from"), world.path("moved/to")).unwrap();
}

#[test]
fn a_restore_gives_the_tree_back_says_exactly_what_it_did_and_can_be_undone() {
    let world = World::new();
    tree(&world);
    let store = world.store();
    let before = world.tree();
    take(&store, "before");
    change(&world);
    let changed = world.tree();
    let plan = store.plan_restore(&named("before").into(), RestoreOptions::default()).unwrap();
    assert_eq!(world.tree(), changed);
    let planned = plan.changes.clone();
    let restored = store.apply(plan).unwrap();
    assert_eq!(world.tree(), before);
    assert_eq!(restored.changes, planned);
    let listed: Vec<_> =
        restored.changes.iter().map(|change| shown(&change.kind, &change.path)).collect();
    let expected = [
        "modified changed",
        "type d",
        "added d/e",
        "added d/e/f",
        "added empty",
        "added empty/within",
        "added gone",
        "type link",
        "deleted link/x",
        "mode mode",
        "added moved/from",
        "deleted moved/to",
        "deleted new",
        "deleted new/deep",
        "deleted new/deep/file",
        "mode same",
        "type to_link",
    ];
    assert_eq!(listed, expected);
    assert_eq!(std::fs::read_to_string(world.outside("secret")).unwrap(), "outside");
    assert_eq!(since(&store, "before"), [""; 0]);
    assert_eq!(restored.before.reason, Reason::BeforeRestore);
    let undo = store.plan_restore(&restored.before.id.into(), RestoreOptions::default()).unwrap();
    store.apply(undo).unwrap();
    assert_eq!(world.tree(), changed);
}

/// The reference compares names only, and reports a changed file as no change.
#[test]
fn defect_17_a_restored_content_is_reported_as_modified() {
    let world = World::new();
    world.write("f", "one");
    let store = world.store();
    take(&store, "one");
    world.write("f", "two");
    let restored = restore(&store, "one");
    let [change] = &restored.changes[..] else { panic!("{restored:?}") };
    assert_eq!(shown(&change.kind, &change.path), "modified f");
    assert_eq!(world.read("f"), "one");
    assert!(restore(&store, "one").changes.is_empty());
}

/// The reference fails in worktrees, leaves files with non-ASCII names behind, and runs what a hostile
/// configuration of git names.
#[test]
fn defect_18_worktrees_odd_names_and_hostile_configurations_do_no_harm() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    // The `.git` of a worktree is a file.
    world.write(".git", "gitdir: /nowhere/.git/worktrees/w\n");
    world.write("nested/.git/config", "[core]\n\tfsmonitor = touch /tmp/carrel-defect-18\n");
    let names: Vec<&[u8]> = vec![b"\xc3\xa4\xc3\xb6", b"not\xffutf8", b"new\nline", b"-rf", b"a b"];
    let names: Vec<PathBuf> =
        names.into_iter().map(|name| std::ffi::OsStr::from_bytes(name).into()).collect();
    let store = world.store();
    take(&store, "without");
    for name in &names {
        world.write(name, "odd");
    }
    let with = world.tree();
    take(&store, "with");
    assert_eq!(restore(&store, "without").changes.len(), names.len());
    assert!(names.iter().all(|name| !world.path(name).exists()));
    restore(&store, "with");
    assert_eq!(world.tree(), with);
    assert!(!std::path::Path::new("/tmp/carrel-defect-18").exists());
}

#[test]
fn ignored_and_special_things_stay_and_their_directories_too() {
    let world = World::new();
    world.write(".gitignore", "target\n");
    let store = world.store();
    take(&store, "before");
    world.write("new/target/built", "x");
    world.write("new/file", "y");
    world.write("target/built", "z");
    world.write("repository/.git/HEAD", "ref");
    world.write("repository/file", "w");
    let plan = store.plan_restore(&named("before").into(), RestoreOptions::default()).unwrap();
    assert_eq!(plan.kept, [PathBuf::from("new"), "repository".into()]);
    let restored = store.apply(plan).unwrap();
    assert_eq!(restored.kept, [PathBuf::from("new"), "repository".into()]);
    let paths: Vec<_> = world.tree().into_keys().map(|path| path.display().to_string()).collect();
    let expected = [
        ".gitignore",
        "new",
        "new/target",
        "new/target/built",
        "repository",
        "repository/.git",
        "repository/.git/HEAD",
        "target",
        "target/built",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn what_was_ignored_then_stays_although_it_is_not_ignored_now() {
    let world = World::new();
    world.write(".gitignore", "target\n");
    world.write("target/built", "x");
    let store = world.store();
    take(&store, "before");
    world.write(".gitignore", "");
    world.write("target/more", "y");
    restore(&store, "before");
    assert_eq!((world.read("target/built"), world.read("target/more")), ("x".into(), "y".into()));
}

#[test]
fn what_the_snapshot_has_is_restored_although_it_is_ignored_now_and_that_can_be_undone() {
    let world = World::new();
    world.write("build/kept", "1");
    world.write("build/deep/kept", "2");
    world.write("notes.log", "3");
    world.write("src/a.log", "4");
    let store = world.store();
    let before = world.tree();
    take(&store, "before");
    world.write(".gitignore", "build\n*.log\n");
    world.write("build/kept", "one");
    world.remove("build/deep");
    world.remove("notes.log");
    world.write("src/a.log", "four");
    world.write("build/made_since", "stays");
    world.write("src/made_since.log", "stays");
    let changed = world.tree();
    let differing = ["added .gitignore", "deleted build/deep", "deleted build/deep/kept"];
    let rest = ["modified build/kept", "deleted notes.log", "modified src/a.log"];
    assert_eq!(since(&store, "before"), [differing, rest].concat());
    let restored = restore(&store, "before");
    assert_eq!(restored.left_alone, []);
    let mut expected = before.clone();
    for path in ["build/made_since", "src/made_since.log"] {
        expected.insert(path.into(), changed[std::path::Path::new(path)].clone());
    }
    assert_eq!(world.tree(), expected);
    // The rules are ignored for what the snapshot of the state before has, too.
    store.restore(&restored.before.id.into(), crate::unsynced()).unwrap();
    assert_eq!(world.tree(), changed);
    // Other snapshots go by the rules.
    let ignored = crate::create(&store, "after").left_out;
    let ignored: Vec<_> = ignored.iter().map(|(path, _)| path.display().to_string()).collect();
    assert_eq!(ignored, ["build", "src/a.log", "src/made_since.log"]);
}

#[test]
fn what_was_left_out_and_is_gone_is_said_to_be_beyond_restoring() {
    let world = World::new();
    world.write("large", [7; 1001]);
    world.write("small", "x");
    let store = world.store();
    let limits = carrel_snapshot::ScanLimits { file_bytes: 1000, total_bytes: 1 << 20 };
    let scan = carrel_snapshot::ScanOptions { limits, ..Default::default() };
    let request = carrel_snapshot::CreateRequest {
        options: scan.clone(),
        ..carrel_snapshot::CreateRequest::named(named("before"))
    };
    store.create(&request).unwrap();
    world.remove("large");
    world.remove("small");
    let options = RestoreOptions { scan, ..crate::unsynced() };
    let plan = store.plan_restore(&named("before").into(), options).unwrap();
    let expected = [(PathBuf::from("large"), carrel_snapshot::Omission::TooLarge)];
    assert_eq!(plan.left_alone, expected);
    store.apply(plan).unwrap();
    assert_eq!((world.read("small"), world.path("large").exists()), ("x".into(), false));
}

#[test]
fn only_the_given_paths_are_restored_with_the_directories_that_they_need() {
    let world = World::new();
    tree(&world);
    let store = world.store();
    take(&store, "before");
    change(&world);
    let options =
        RestoreOptions { paths: vec!["./d/e".into(), "gone".into()], ..RestoreOptions::default() };
    let plan = store.plan_restore(&named("before").into(), options).unwrap();
    let listed: Vec<_> = plan.changes.iter().map(|c| shown(&c.kind, &c.path)).collect();
    assert_eq!(listed, ["type d", "added d/e", "added d/e/f", "added gone"]);
    store.apply(plan).unwrap();
    assert_eq!((world.read("d/e/f"), world.read("gone")), ("d/e/f".into(), "gone".into()));
    assert_eq!(world.read("changed"), "CHANGED");
    for (path, is_unknown) in [("missing", true), ("../outside", false), (".git/config", false)] {
        let options = RestoreOptions { paths: vec![path.into()], ..RestoreOptions::default() };
        let error = store.plan_restore(&named("before").into(), options).unwrap_err();
        assert_eq!(matches!(error, RestoreError::UnknownPath { .. }), is_unknown, "{error}");
        assert_eq!(matches!(error, RestoreError::Path { .. }), !is_unknown, "{error}");
    }
}

#[test]
fn a_plan_that_no_longer_fits_changes_nothing() {
    let world = World::new();
    world.write("f", "one");
    let store = world.store();
    take(&store, "one");
    world.write("f", "two");
    let plan = store.plan_restore(&named("one").into(), RestoreOptions::default()).unwrap();
    world.write("f", "three");
    let error = store.apply(plan).unwrap_err();
    assert!(matches!(&error, RestoreError::Changed { path } if path == std::path::Path::new("f")));
    assert_eq!(world.read("f"), "three");
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn the_parent_of_a_restored_path_is_never_a_link() {
    let world = World::new();
    world.write("dir/secret", "inside");
    let store = world.store();
    take(&store, "before");
    world.remove("dir");
    world.link(world.outside(""), "dir");
    restore(&store, "before");
    assert_eq!(world.read("dir/secret"), "inside");
    assert_eq!(std::fs::read_to_string(world.outside("secret")).unwrap(), "outside");
}

#[test]
fn restored_files_have_the_present_time_unless_asked_otherwise() {
    let world = World::new();
    world.write("f", "one");
    let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 5);
    let file = std::fs::File::options().write(true).open(world.path("f")).unwrap();
    file.set_modified(old).unwrap();
    let store = world.store();
    take(&store, "one");
    let modified = || world.path("f").metadata().unwrap().modified().unwrap();
    world.write("f", "two");
    restore(&store, "one");
    assert!(modified() > old + std::time::Duration::from_secs(1));
    world.write("f", "two");
    let options = RestoreOptions { times: Times::Recorded, ..RestoreOptions::default() };
    let plan = store.plan_restore(&named("one").into(), options).unwrap();
    store.apply(plan).unwrap();
    assert_eq!(modified(), old);
}

#[test]
fn directories_that_may_not_be_written_are_restored_within() {
    let world = World::new();
    world.write("locked/inner/f", "one");
    world.mode("locked/inner", 0o500);
    world.mode("locked", 0o555);
    let before = world.tree();
    let store = world.store();
    take(&store, "before");
    world.mode("locked", 0o755);
    world.mode("locked/inner", 0o755);
    world.remove("locked");
    restore(&store, "before");
    assert_eq!(world.tree(), before);
    world.mode("locked/inner", 0o755);
    world.write("locked/inner/f", "two");
    world.mode("locked/inner", 0o500);
    restore(&store, "before");
    assert_eq!(world.tree(), before);
    world.mode("locked", 0o755);
    world.mode("locked/inner", 0o755);
}
