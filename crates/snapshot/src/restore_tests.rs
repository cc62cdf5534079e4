//! Restores that fail or are cut short.
#![expect(clippy::disallowed_methods, reason = "the tests lay out their own files")]

use carrel_fsroot::{Durability, Root};

use std::sync::Arc;

use crate::compare::{Change, ChangeKind};
use crate::faults::{Faults, World, create};
use crate::journal::Journal;
use crate::name::SnapshotId;
use crate::store::State;
use crate::{Node, ObjectId, RestoreError, RestoreOptions, SnapshotName, Store, Times};

#[test]
fn the_changes_before_one_that_fails_are_taken_back() {
    let world = tempfile::tempdir().unwrap();
    let (workspace, directory) = (world.path().join("workspace"), world.path().join("store"));
    std::fs::create_dir_all(workspace.join("gone")).unwrap();
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(workspace.join("a"), "old").unwrap();
    std::fs::write(workspace.join("gone/b"), "old").unwrap();
    let open =
        || Store::open(Root::open(&directory).unwrap(), Root::open(&workspace).unwrap()).unwrap();
    let store = open();
    let error = store.locked(|state| {
        let file = |content: &str, state: &mut State| Node::File {
            mode: 0o644,
            modified: 0,
            size: content.len() as u64,
            id: state.objects.put(content.as_bytes()).unwrap(),
        };
        let (old, new) = (file("old", state), file("new!", state));
        let list = Node::Directory { mode: 0o755, id: ObjectId::of(b"") };
        let change = |path: &str, kind, old: Option<&Node>, new: Option<&Node>| Change {
            path: path.into(),
            kind,
            old: old.cloned(),
            new: new.cloned(),
        };
        let journal = Journal {
            process: std::process::id(),
            snapshot: SnapshotId(1),
            before: SnapshotId(2),
            times: Times::Now,
            durability: Durability::Synced,
            changes: vec![
                change("a", ChangeKind::Modified, Some(&old), Some(&new)),
                change("added", ChangeKind::Added, None, Some(&new)),
                change("gone", ChangeKind::Deleted, Some(&list), None),
                change("gone/b", ChangeKind::Deleted, Some(&old), None),
                change("missing/c", ChangeKind::Added, None, Some(&new)),
                change("z", ChangeKind::Added, None, Some(&new)),
            ],
            granted: Vec::new(),
        };
        store.make_changes(state, &journal).map(drop)
    });
    let error = error.unwrap_err();
    let message = "could not restore missing/c; the workspace is as it was before";
    assert_eq!(error.to_string(), message);
    let read = |path: &str| std::fs::read_to_string(workspace.join(path)).unwrap();
    assert_eq!((read("a"), read("gone/b")), ("old".into(), "old".into()));
    for path in ["added", "missing", "z"] {
        assert!(!workspace.join(path).exists(), "{path}");
    }
    assert!(open().recovery().is_none());
}

fn journal_of(changes: Vec<Change>, granted: Vec<(std::path::PathBuf, u32)>) -> Journal {
    Journal {
        process: std::process::id(),
        snapshot: SnapshotId(1),
        before: SnapshotId(2),
        times: Times::Now,
        durability: Durability::Synced,
        changes,
        granted,
    }
}

#[test]
fn a_write_between_the_look_at_the_tree_and_the_replacement_is_not_lost() {
    for (path, durability) in [
        ("changed", Durability::Synced),
        ("changed", Durability::Buffered),
        ("deleted", Durability::Synced),
        ("added", Durability::Synced),
        ("link", Durability::Synced),
    ] {
        let world = World::new();
        world.write("changed", "one");
        world.write("added", "one");
        world.write("a", "one");
        let link = world.path("workspace/link");
        std::os::unix::fs::symlink("one", &link).unwrap();
        let store = world.store();
        let snapshot = create(&store, "one").unwrap();
        world.write("changed", "two");
        world.write("deleted", "two");
        world.write("a", "two");
        std::fs::remove_file(world.path("workspace/added")).unwrap();
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("two", &link).unwrap();
        let error = store.locked(|state| {
            let options = RestoreOptions { durability, ..RestoreOptions::default() };
            let (plan, scanned) = store.plan_against_now(state, snapshot.clone(), options).unwrap();
            // A command that runs meanwhile.
            if path == "link" {
                std::fs::remove_file(&link).unwrap();
            }
            world.write(path, "written meanwhile");
            store.carry_out_plan(state, plan, scanned, 0)
        });
        let error = error.unwrap_err();
        assert!(matches!(error, RestoreError::ChangedMeanwhile { .. }), "{path}: {error}");
        assert!(error.to_string().ends_with("the workspace is as it was before"), "{error}");
        assert_eq!(world.read_bytes(path), b"written meanwhile", "{path}");
        assert_eq!(world.read_bytes("a"), b"two", "{path}");
    }
}

#[test]
fn another_name_of_a_replaced_file_is_not_taken_for_a_change() {
    let world = World::new();
    world.write("a", "one");
    world.write("b", "one");
    let store = world.store();
    create(&store, "one").unwrap();
    world.write("a", "two");
    std::fs::remove_file(world.path("workspace/b")).unwrap();
    std::fs::hard_link(world.path("workspace/a"), world.path("workspace/b")).unwrap();
    let name: crate::Reference = SnapshotName::new("one").unwrap().into();
    store.restore(&name, RestoreOptions::default()).unwrap();
    assert_eq!((world.read_bytes("a"), world.read_bytes("b")), (b"one".into(), b"one".into()));
}

#[test]
fn a_restore_that_the_store_fails_is_finished_by_its_next_use() {
    let mut failures = 0;
    for reads in 0.. {
        let world = World::new();
        for number in 0..6 {
            world.write(&format!("f{number}"), format!("one {number}").repeat(20));
        }
        let faults = Arc::new(Faults::default());
        let store = world.store_with(&faults);
        create(&store, "one").unwrap();
        for number in 0..6 {
            world.write(&format!("f{number}"), format!("two {number}").repeat(20));
        }
        // So that each file is written by itself.
        let options =
            RestoreOptions { durability: Durability::Buffered, ..RestoreOptions::default() };
        let name: crate::Reference = SnapshotName::new("one").unwrap().into();
        faults.fail_read(reads);
        let restored = store.restore(&name, options.clone());
        let has_read_all = restored.is_ok();
        faults.fail_read(usize::MAX);
        if restored.is_err() {
            failures += 1;
            // Another process may be the next one.
            match reads % 2 {
                0 => drop(store.list().unwrap()),
                _ => drop(world.store()),
            }
            assert!(!world.path("store/restore.journal").exists());
        }
        let contents: Vec<_> =
            (0..6).map(|number| world.read_bytes(&format!("f{number}"))).collect();
        let all = |word: &str| contents.iter().all(|content| content.starts_with(word.as_bytes()));
        assert!(all("one") || all("two"), "{reads}: {contents:?}");
        if has_read_all {
            break;
        }
    }
    assert!(failures > 6, "{failures}");
}

#[test]
fn directories_that_a_restore_made_writable_get_their_modes_back_after_a_kill() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.write("locked/f", "one");
    let mode = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(world.path("workspace/locked"), permissions).unwrap();
    };
    let found = || world.path("workspace/locked").metadata().unwrap().permissions().mode() & 0o777;
    mode(0o555);
    let store = world.store();
    create(&store, "one").unwrap();
    mode(0o755);
    world.write("locked/f", "two");
    mode(0o555);
    // The process ends after it has made the directory writable.
    let journal = store.locked(|state| {
        let snapshot = state.snapshots[0].clone();
        let options = RestoreOptions::default();
        let (plan, scanned) = store.plan_against_now(state, snapshot, options).unwrap();
        let (journal, _) = store.prepare(state, &plan, scanned, 0)?;
        store.begin_journal(&journal).map(|()| journal)
    });
    assert_eq!(journal.unwrap().granted, [("locked".into(), 0o555)]);
    mode(0o755);
    drop(store);
    let store = world.store();
    assert_eq!(store.recovery().unwrap().finished, 1);
    assert_eq!((world.read_bytes("locked/f"), found()), (b"one".into(), 0o555));
    // A mode that has been set since is kept.
    store
        .locked(|_| store.begin_journal(&journal_of(vec![], vec![("locked".into(), 0o555)])))
        .unwrap();
    mode(0o750);
    drop(store);
    drop(world.store());
    assert_eq!(found(), 0o750);
}

#[test]
fn what_a_process_with_the_same_number_was_writing_is_removed() {
    let world = World::new();
    world.write("d/f", "one");
    let store = world.store();
    let node = |content: &str| Node::File {
        mode: 0o644,
        modified: 0,
        size: content.len() as u64,
        id: ObjectId::of(content.as_bytes()),
    };
    store
        .locked(|state| {
            state.objects.put(b"two")?;
            state.objects.flush()?;
            let change = Change {
                path: "d/f".into(),
                kind: ChangeKind::Modified,
                old: Some(node("one")),
                new: Some(node("two")),
            };
            store.begin_journal(&journal_of(vec![change], vec![]))
        })
        .unwrap();
    drop(store);
    let leftover = format!("d/.carrel-write-{}-1", std::process::id());
    world.write(&leftover, "unfinished");
    drop(world.store());
    assert_eq!(world.read_bytes("d/f"), b"two");
    assert!(!world.path("workspace").join(leftover).exists());
}
