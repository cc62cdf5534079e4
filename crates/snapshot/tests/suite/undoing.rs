use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::{FixedClock, Timestamp};
use carrel_snapshot::{
    CheckpointId, Conflict, LeftImage, MAX_CHECKPOINTS, PendingCheckpoint, Store, UndoError, Undone,
};
use pretty_assertions::assert_eq;

use crate::{World, take};

/// Does what a call does: images before, the change, the commit.
fn call(
    store: &Store,
    label: &str,
    paths: &[&str],
    change: impl FnOnce(&mut PendingCheckpoint<'_>),
) -> CheckpointId {
    let mut checkpoint = store.begin_checkpoint("ann", label);
    for path in paths {
        checkpoint.before_image(Path::new(path)).unwrap();
    }
    change(&mut checkpoint);
    checkpoint.commit().unwrap().unwrap()
}

fn undo(store: &Store, id: CheckpointId) -> Undone {
    store.undo("ann", id, &[]).unwrap()
}

#[test]
fn a_call_is_taken_back_whole_and_that_too() {
    let world = World::new();
    for path in ["edited", "deleted", "tree/deep/file", "tree/other"] {
        world.write(path, path);
    }
    world.mode("deleted", 0o640);
    world.link("edited", "tree/link");
    let store = world.store();
    let before = world.tree();
    let paths = ["edited", "deleted", "created", "tree", "now/here"];
    let id = call(&store, "ApplyPatch", &paths, |_| {
        world.write("edited", "EDITED");
        world.write("created", "new");
        world.remove("deleted");
        world.remove("tree");
    });
    let after = world.tree();
    let undone = undo(&store, id);
    assert_eq!(undone.conflicts, []);
    assert_eq!(undone.restored.len(), 8);
    assert_eq!(world.tree(), before);
    let back = undo(&store, undone.checkpoint.unwrap());
    assert_eq!((back.conflicts, world.tree()), (vec![], after));
    let again = undo(&store, back.checkpoint.unwrap());
    assert_eq!((again.conflicts, world.tree()), (vec![], before));
    let labels: Vec<_> = store
        .checkpoints("ann")
        .unwrap()
        .into_iter()
        .map(|c| (c.id.to_string(), c.label))
        .collect();
    let expected = [("u4", "undo u3"), ("u3", "undo u2"), ("u2", "undo u1"), ("u1", "ApplyPatch")];
    assert_eq!(labels, expected.map(|(id, label)| (id.to_owned(), label.to_owned())));
}

#[test]
fn a_file_that_changed_since_keeps_everything_as_it_is() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    let store = world.store();
    let id = call(&store, "edit", &["a", "b"], |_| {
        world.write("a", "2");
        world.write("b", "2");
    });
    world.write("b", "3");
    let undone = undo(&store, id);
    assert_eq!(undone.conflicts, [(PathBuf::from("b"), Conflict::Changed)]);
    assert_eq!((undone.restored.len(), undone.checkpoint), (0, None));
    assert_eq!((world.read("a"), world.read("b")), ("2".into(), "3".into()));
    // The other one alone can be.
    let undone = store.undo("ann", id, &["a".into()]).unwrap();
    assert_eq!((undone.restored, world.read("a")), (vec![PathBuf::from("a")], "1".into()));
    let error = store.undo("ann", id, &["c".into()]).unwrap_err();
    assert!(matches!(error, UndoError::UnknownPath { .. }), "{error}");
}

#[test]
fn what_could_not_be_kept_or_compared_is_a_conflict_of_its_own() {
    let world = World::new();
    let large = vec![7_u8; (16 << 20) + 1];
    world.write("was_large", &large);
    world.write("becomes_large", "small");
    let store = world.store();
    let id = call(&store, "edit", &["was_large", "becomes_large"], |_| {
        world.write("was_large", "small");
        world.write("becomes_large", &large);
    });
    let expected = [
        (PathBuf::from("becomes_large"), Conflict::Unverifiable),
        (PathBuf::from("was_large"), Conflict::MissingBeforeSnapshot),
    ];
    assert_eq!(undo(&store, id).conflicts, expected);
}

#[test]
fn a_move_is_taken_back_by_a_move() {
    let world = World::new();
    world.write("from/a", "1");
    let store = world.store();
    let id = call(&store, "Move", &[], |checkpoint| {
        checkpoint.moved(Path::new("from"), Path::new("to")).unwrap();
        std::fs::rename(world.path("from"), world.path("to")).unwrap();
    });
    world.write("to/b", "made since");
    let undone = undo(&store, id);
    assert_eq!((world.read("from/a"), world.read("from/b")), ("1".into(), "made since".into()));
    assert!(!world.path("to").exists());
    undo(&store, undone.checkpoint.unwrap());
    assert_eq!(world.read("to/a"), "1");
    world.write("from", "in the way");
    assert_eq!(undo(&store, id).conflicts, [(PathBuf::from("from"), Conflict::Changed)]);
}

#[test]
fn a_file_that_is_edited_and_then_moved_is_taken_back_whole() {
    let world = World::new();
    world.write("from", "1");
    let store = world.store();
    let before = world.tree();
    let id = call(&store, "ApplyPatch", &["from"], |checkpoint| {
        world.write("from", "2");
        checkpoint.moved(Path::new("from"), Path::new("to")).unwrap();
        std::fs::rename(world.path("from"), world.path("to")).unwrap();
    });
    let after = world.tree();
    let undone = undo(&store, id);
    assert_eq!((undone.conflicts, world.tree()), (vec![], before));
    undo(&store, undone.checkpoint.unwrap());
    assert_eq!(world.tree(), after);
}

#[test]
fn each_owner_has_the_last_fifty_and_a_call_without_effect_has_none() {
    let world = World::new();
    world.write("f", "0");
    let store = world.store();
    let first = call(&store, "edit 1", &["f"], |_| world.write("f", "1"));
    for number in 2..=MAX_CHECKPOINTS + 1 {
        call(&store, &format!("edit {number}"), &["f"], |_| world.write("f", number.to_string()));
    }
    let mut other = store.begin_checkpoint("bob", "edit");
    other.before_image(Path::new("g")).unwrap();
    world.write("g", "x");
    other.commit().unwrap().unwrap();
    let mut idle = store.begin_checkpoint("ann", "nothing");
    idle.before_image(Path::new("f")).unwrap();
    assert_eq!(idle.commit().unwrap(), None);
    // Another process sees the same, although nothing was synced and no index written.
    for store in [&store, &world.store()] {
        assert_eq!(store.checkpoints("ann").unwrap().len(), MAX_CHECKPOINTS);
        assert_eq!(store.checkpoints("bob").unwrap().len(), 1);
        let error = store.undo("ann", first, &[]).unwrap_err();
        let message = "checkpoint u1 not found; the last 50 calls can be undone, the newest is u51";
        assert_eq!(error.to_string(), message);
    }
    let bobs = CheckpointId::parse("u52").unwrap();
    assert!(matches!(store.undo("ann", bobs, &[]), Err(UndoError::Unknown { .. })));
    store.collect_garbage().unwrap();
    assert_eq!(store.usage().unwrap().checkpoints, MAX_CHECKPOINTS + 1);
    undo(&store, CheckpointId::parse("u51").unwrap());
    assert_eq!(world.read("f"), "50");
}

#[test]
fn many_calls_are_not_scanned_at_every_opening() {
    let world = World::new();
    let store = world.store();
    for number in 0..150 {
        call(&store, "edit", &["f"], |_| world.write("f", number.to_string()));
    }
    let index = world.stored("objects.index");
    assert!(!index.exists(), "an index is not written for each call");
    drop(store);
    let store = world.store();
    assert!(index.exists());
    assert_eq!(store.usage().unwrap().checkpoints, 150);
    drop(store);
    let store = world.store();
    let newest = store.checkpoints("ann").unwrap()[0].id;
    undo(&store, newest);
    assert_eq!(world.read("f"), "148");
}

#[test]
fn an_undo_writes_nothing_outside_and_nothing_of_git() {
    let world = World::new();
    world.write("dir/secret", "1");
    let store = world.store();
    let id = call(&store, "edit", &["dir/secret"], |_| world.write("dir/secret", "2"));
    world.remove("dir");
    world.link(world.outside(""), "dir");
    assert_eq!(undo(&store, id).conflicts, [(PathBuf::from("dir/secret"), Conflict::Unverifiable)]);
    assert_eq!(std::fs::read_to_string(world.outside("secret")).unwrap(), "outside");
    let mut checkpoint = store.begin_checkpoint("ann", "edit");
    for path in [".git/config", "../outside/secret", "/etc/passwd", "a/../../b", "", "."] {
        let error = checkpoint.before_image(Path::new(path)).unwrap_err();
        assert!(matches!(error, UndoError::Path { .. }), "{path}: {error}");
    }
}

#[test]
fn content_of_undo_that_a_snapshot_shares_is_durable_with_the_snapshot() {
    let world = World::new();
    world.write("f", "old content");
    let store = world.store();
    call(&store, "edit", &["f"], |_| world.write("f", "new content"));
    world.write("copy", "old content");
    let snapshot = take(&store, "one");
    assert_eq!(snapshot.totals.files, 2);
    assert_eq!(world.store().list().unwrap(), [snapshot]);
}

#[test]
fn an_undo_that_cannot_write_an_entry_leaves_everything_and_can_be_tried_again() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    world.write("missing/c", "1");
    let store = world.store();
    let id = call(&store, "edit", &["a", "b", "missing/c"], |_| {
        world.write("a", "2");
        world.remove("b");
        world.remove("missing/c");
    });
    // Its directory is not one of the call.
    world.remove("missing");
    let after = world.tree();
    let error = store.undo("ann", id, &[]).unwrap_err();
    assert!(matches!(&error, UndoError::Write { path, .. } if path == Path::new("missing/c")));
    assert_eq!(world.tree(), after);
    // The checkpoint of the undo is cancelled by another one, as if it had been taken back.
    let labels: Vec<_> = store.checkpoints("ann").unwrap().into_iter().map(|c| c.label).collect();
    assert_eq!(labels, ["undo u2", "undo u1", "edit"]);
    std::fs::create_dir(world.path("missing")).unwrap();
    undo(&store, id);
    assert_eq!((world.read("a"), world.read("b"), world.read("missing/c")).2, "1");
    assert_eq!((world.read("a"), world.read("b")), ("1".into(), "1".into()));
}

#[test]
fn an_edit_of_another_call_before_the_commit_is_not_taken_for_the_calls_own() {
    let world = World::new();
    world.write("f", "1");
    let store = world.store();
    let mut checkpoint = store.begin_checkpoint("ann", "edit");
    checkpoint.before_image(Path::new("f")).unwrap();
    world.write("f", "2");
    checkpoint
        .left(Path::new("f"), LeftImage::of(&world.root("workspace"), Path::new("f")))
        .unwrap();
    world.write("f", "of another call");
    let id = checkpoint.commit().unwrap().unwrap();
    assert_eq!(undo(&store, id).conflicts, [(PathBuf::from("f"), Conflict::Changed)]);
    assert_eq!(world.read("f"), "of another call");
}

#[test]
fn old_checkpoints_and_those_of_owners_that_were_long_idle_go() {
    let world = World::new();
    let day = |day: i64| Timestamp::from_millis(day * 86_400_000);
    let at = |now: Timestamp| {
        Store::with_clock(world.root("store"), world.root("workspace"), Arc::new(FixedClock(now)))
            .unwrap()
    };
    let edit = |store: &Store, owner: &str, content: &str| {
        let mut checkpoint = store.begin_checkpoint(owner, "edit");
        checkpoint.before_image(Path::new("f")).unwrap();
        world.write("f", content);
        checkpoint.commit().unwrap().unwrap();
    };
    edit(&at(day(1)), "ann", "1");
    let store = at(day(5));
    edit(&store, "ann", "2");
    assert_eq!(store.checkpoints("ann").unwrap().len(), 2);
    let store = at(day(9));
    assert_eq!(store.checkpoints("ann").unwrap().len(), 1);
    for owner in 0..64 {
        edit(&store, &format!("session {owner}"), &format!("{owner} {owner}"));
    }
    assert_eq!(store.checkpoints("ann").unwrap().len(), 0);
    assert_eq!(store.checkpoints("session 0").unwrap().len(), 1);
    store.collect_garbage().unwrap();
    assert_eq!(store.usage().unwrap().checkpoints, 64);
}
