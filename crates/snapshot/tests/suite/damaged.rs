//! Stores whose files were damaged.

use std::collections::BTreeMap;
use std::path::PathBuf;

use carrel_snapshot::{CreateRequest, Node, ObjectId, Reason, RestoreError, StorageError, Store};

use crate::{Found, World, named, restore, take, unsynced};

/// Returns the store's files that hold more than locks.
fn files(world: &World) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(world.stored("")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.file_name().unwrap() != "lock");
    files.sort();
    files
}

/// Reads everything that a store says it has; content that is returned is what its id says.
fn read_all(store: &Store) {
    for snapshot in store.list().unwrap() {
        let mut pending = vec![snapshot.top];
        while let Some(list) = pending.pop() {
            for entry in store.entries(list).unwrap_or_default() {
                match entry.node {
                    Node::File { id, .. } => {
                        let content = store.content(id);
                        assert!(content.is_err() || ObjectId::of(&content.unwrap()) == id);
                    }
                    Node::Directory { id, .. } => pending.push(id),
                    Node::Link { .. } | Node::LeftOut(_) => {}
                }
            }
        }
    }
}

#[test]
fn a_store_with_damaged_files_never_returns_wrong_content_and_goes_on() {
    let world = World::new();
    for number in 0..30 {
        world.write(format!("d{}/f{number}", number % 4), format!("{number} ").repeat(number * 7));
    }
    let store = world.store();
    take(&store, "one");
    world.write("d0/f0", "changed");
    take(&store, "two");
    let mut checkpoint = store.begin_checkpoint("ann", "edit");
    checkpoint.before_image(std::path::Path::new("d1/f1")).unwrap();
    world.write("d1/f1", "changed");
    checkpoint.commit().unwrap();
    store.collect_garbage().unwrap();
    drop(store);
    let pristine: BTreeMap<_, _> = files(&world)
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    assert_eq!(pristine.len(), 5, "{:?}", pristine.keys());
    let mut random = fastrand::Rng::with_seed(9);
    for round in 0..100 {
        for path in files(&world) {
            std::fs::remove_file(path).unwrap();
        }
        for (path, content) in &pristine {
            std::fs::write(path, content).unwrap();
        }
        let victims: Vec<_> = pristine.keys().collect();
        let victim = victims[random.usize(..victims.len())];
        let mut bytes = pristine[victim].clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..4) {
                0 => bytes[at] ^= 1 << random.u8(..8),
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, random.u8(..)),
                _ => {
                    let end = (at + 100).min(bytes.len());
                    bytes[at..end].fill(0);
                }
            }
        }
        std::fs::write(victim, &bytes).unwrap();
        let store = match Store::open(world.root("store"), world.root("workspace")) {
            Ok(store) => store,
            // The number of a version was hit.
            Err(error) => {
                assert!(error.to_string().contains("newer version"), "{round}: {error}");
                continue;
            }
        };
        read_all(&store);
        let _ = (store.usage(), store.checkpoints("ann").unwrap(), store.damaged().unwrap());
        // What the damage took is read from the workspace again: at once if the index shows it, else once a
        // restore has met it.
        let before = world.tree();
        let restored = (0..20).any(|_| {
            let request = CreateRequest::unnamed(Reason::Asked);
            let new = store.create(&request).unwrap().snapshot;
            world.write("d3/f3", format!("round {round}"));
            world.remove("d1");
            world.remove("d2");
            let plan = store.plan_restore(&new.id.into(), unsynced());
            let restored = plan.and_then(|plan| store.apply(plan));
            if let Err(error) = &restored {
                assert!(matches!(error, RestoreError::Storage(StorageError::Damaged { .. })));
                for (path, found) in &before {
                    match found {
                        Found::File { content, .. } => world.write(path, content),
                        _ => std::fs::create_dir_all(world.path(path)).unwrap(),
                    }
                }
            }
            restored.is_ok()
        });
        assert!(restored, "round {round}, {}", victim.display());
        assert_eq!(world.tree(), before, "round {round}, {}", victim.display());
    }
}

#[test]
fn a_torn_end_is_cut_off_and_what_was_before_it_stays() {
    let world = World::new();
    world.write("f", "one");
    let store = world.store();
    take(&store, "one");
    drop(store);
    let segment = world.stored("segment-000001");
    let whole = std::fs::read(&segment).unwrap();
    for torn in [&b"crR1"[..], &[0; 100], &whole[16..whole.len() - 1], &[0xff; 3]] {
        std::fs::write(&segment, [&whole, torn].concat()).unwrap();
        let store = world.store();
        if torn.len() > 100 {
            // Whole records behind the end are an append whose snapshot was never made.
            assert!(std::fs::read(&segment).unwrap().starts_with(&whole));
        } else {
            assert_eq!(std::fs::read(&segment).unwrap(), whole);
        }
        world.write("f", "two");
        restore(&store, "one");
        assert_eq!(world.read("f"), "one");
        for snapshot in store.list().unwrap() {
            if snapshot.name != Some(named("one")) {
                store.delete(&snapshot.id.into()).unwrap();
            }
        }
    }
}

#[test]
fn a_stale_or_missing_index_is_made_again() {
    let world = World::new();
    for number in 0..300 {
        world.write(format!("f{number}"), format!("{number}"));
    }
    let store = world.store();
    take(&store, "one");
    drop(store);
    let (objects, scan) = (world.stored("objects.index"), world.stored("scan.index"));
    let (old_objects, old_scan) = (std::fs::read(&objects).unwrap(), std::fs::read(&scan).unwrap());
    world.write("f7", "changed");
    let store = world.store();
    take(&store, "two");
    store.delete(&named("one").into()).unwrap();
    store.collect_garbage().unwrap();
    drop(store);
    let before = world.tree();
    // The index of before the collection names a segment that is gone.
    std::fs::write(&objects, old_objects).unwrap();
    std::fs::write(&scan, old_scan).unwrap();
    let store = world.store();
    take(&store, "three");
    world.write("f8", "changed too");
    restore(&store, "two");
    assert_eq!(world.tree(), before);
    drop(store);
    std::fs::remove_file(&objects).unwrap();
    std::fs::remove_file(&scan).unwrap();
    let store = world.store();
    world.write("f8", "changed again");
    restore(&store, "two");
    assert_eq!(world.tree(), before);
}

#[test]
fn a_snapshot_whose_record_is_damaged_keeps_all_content_until_it_is_deleted() {
    let world = World::new();
    world.write("f", "one".repeat(100));
    let store = world.store();
    take(&store, "one");
    world.write("f", "two".repeat(100));
    take(&store, "two");
    let whole = std::fs::read(world.stored("snapshot-000001")).unwrap();
    std::fs::write(world.stored("snapshot-000001"), &whole[..whole.len() / 2]).unwrap();
    drop(store);
    let store = world.store();
    assert_eq!(store.damaged().unwrap(), ["snapshot-000001"]);
    let error = store.collect_garbage().unwrap_err();
    assert!(error.to_string().contains("delete @1 to give that snapshot up"), "{error}");
    // It may have been repaired meanwhile.
    std::fs::write(world.stored("snapshot-000001"), &whole).unwrap();
    drop(store);
    let store = world.store();
    restore(&store, "one");
    assert_eq!(world.read("f"), "one".repeat(100));
    std::fs::write(world.stored("snapshot-000001"), "damaged").unwrap();
    drop(store);
    let store = world.store();
    let id = carrel_snapshot::SnapshotId::parse("@1").unwrap();
    assert_eq!(store.delete(&id.into()).unwrap().id, id);
    assert!(store.delete(&id.into()).is_err());
    assert_eq!((store.damaged().unwrap().len(), store.list().unwrap().len()), (0, 2));
    store.collect_garbage().unwrap();
    restore(&store, "two");
    assert_eq!(world.read("f"), "two".repeat(100));
}
