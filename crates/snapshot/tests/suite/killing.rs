//! Processes that are killed at random moments, and processes that share a store. `CARREL_KILL_ROUNDS` sets how many
//! moments.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use carrel_snapshot::{CreateRequest, Node, Reason, RestoreOptions, Snapshot, SnapshotId, Store};
use pretty_assertions::assert_eq;

use crate::{World, named, since, take};

/// The variable by which this binary knows that it is the child of a test, and what it has to do.
const TASK: &str = "CARREL_SNAPSHOT_TASK";
const WORLD: &str = "CARREL_SNAPSHOT_WORLD";

fn rounds() -> usize {
    std::env::var("CARREL_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

fn child(world: &World, task: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killing::child_process", "--nocapture"])
        .env(TASK, task)
        .env(WORLD, world.directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The other process of these tests; by itself it does nothing.
#[test]
fn child_process() {
    let (Ok(task), Ok(world)) = (std::env::var(TASK), std::env::var(WORLD)) else { return };
    let world = PathBuf::from(world);
    let root = |name: &str| carrel_fsroot::Root::open(&world.join(name)).unwrap();
    let store = Store::open(root("store"), root("workspace")).unwrap();
    let mut log = std::fs::File::options().append(true).open(world.join("outside/log")).unwrap();
    let mut random = fastrand::Rng::new();
    let mut change = || {
        for _ in 0..5 {
            let path = world.join(format!("workspace/d{}/f{}", random.u8(..5), random.u8(..9)));
            std::fs::write(path, vec![random.u8(..); random.usize(..9000)]).unwrap();
        }
    };
    let mut create = || {
        let request = CreateRequest::unnamed(Reason::Asked);
        let id = store.create(&request).unwrap().snapshot.id;
        log.write_all(format!("done {id}\n").as_bytes()).unwrap();
        id
    };
    match task.as_str() {
        "snapshot" => loop {
            change();
            create();
        },
        "restore" => loop {
            for name in ["one", "two"] {
                let plan =
                    store.plan_restore(&named(name).into(), RestoreOptions::default()).unwrap();
                let before = store.apply(plan).unwrap().before;
                store.delete(&before.id.into()).unwrap();
            }
        },
        "undo" => loop {
            let newest = store.checkpoints("ann").unwrap()[0].id;
            assert_eq!(store.undo("ann", newest, &[]).unwrap().conflicts, []);
            log.write_all(b"undone\n").unwrap();
        },
        "collect" => {
            let mut previous: Option<SnapshotId> = None;
            loop {
                change();
                let id = create();
                if let Some(previous) = previous.replace(id) {
                    log_deletion(&world, previous);
                    store.delete(&previous.into()).unwrap();
                }
                store.collect_garbage().unwrap();
            }
        }
        "garbage" => {
            log.write_all(b"begins\n").unwrap();
            store.collect_garbage().unwrap();
            log.write_all(b"ended\n").unwrap();
            loop {
                std::thread::park();
            }
        }
        "share" => {
            for number in 0..15 {
                let own = format!("own-{}", std::process::id());
                let path = world.join("workspace").join(&own);
                let mut checkpoint = store.begin_checkpoint(own.clone(), format!("{number}"));
                checkpoint.before_image(std::path::Path::new(&own)).unwrap();
                std::fs::write(&path, number.to_string()).unwrap();
                checkpoint.commit().unwrap().unwrap();
                create();
                if number % 5 == 4 {
                    store.collect_garbage().unwrap();
                }
            }
            assert_eq!(
                store.checkpoints(&format!("own-{}", std::process::id())).unwrap().len(),
                15
            );
        }
        task => panic!("unknown task {task}"),
    }
}

fn log_deletion(world: &std::path::Path, id: SnapshotId) {
    let mut log = std::fs::File::options().append(true).open(world.join("outside/log")).unwrap();
    log.write_all(format!("deleting {id}\n").as_bytes()).unwrap();
}

fn prepared() -> World {
    let world = World::new();
    std::fs::write(world.outside("log"), "").unwrap();
    for directory in 0..5 {
        for file in 0..9 {
            world.write(format!("d{directory}/f{file}"), format!("{directory}{file}").repeat(700));
        }
    }
    world
}

fn kill_within(mut child: Child, span: Duration, random: &mut fastrand::Rng) {
    let micros = u64::try_from(span.as_micros()).unwrap();
    std::thread::sleep(Duration::from_micros(random.u64(..micros)));
    assert!(child.try_wait().unwrap().is_none(), "the process ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns the snapshots that a killed process reported and did not begin to delete.
fn reported(world: &World) -> Vec<String> {
    let log = std::fs::read_to_string(world.outside("log")).unwrap();
    let of = |word: &str| -> Vec<String> {
        log.lines().filter_map(|line| line.strip_prefix(word)).map(str::to_owned).collect()
    };
    let deleted = of("deleting ");
    of("done ").into_iter().filter(|id| !deleted.contains(id)).collect()
}

fn assert_complete(store: &Store, snapshot: &Snapshot) {
    let mut pending = vec![snapshot.top];
    let mut files = 0;
    while let Some(list) = pending.pop() {
        for entry in store.entries(list).unwrap() {
            match entry.node {
                Node::File { id, size, .. } => {
                    files += 1;
                    assert_eq!(store.content(id).unwrap().len() as u64, size);
                }
                Node::Directory { id, .. } => pending.push(id),
                Node::Link { .. } | Node::LeftOut(_) => {}
            }
        }
    }
    assert_eq!(files, snapshot.totals.files);
}

fn assert_nothing_lost(world: &World, store: &Store) {
    let listed = store.list().unwrap();
    for id in reported(world) {
        let id = SnapshotId::parse(&id).unwrap();
        let found = listed.iter().find(|snapshot| snapshot.id == id);
        assert_complete(store, found.unwrap_or_else(|| panic!("{id} is lost")));
    }
    assert_eq!(store.damaged().unwrap(), [""; 0]);
}

#[test]
fn snapshots_and_collections_killed_at_any_moment_lose_nothing() {
    let mut random = fastrand::Rng::new();
    for task in ["snapshot", "collect"] {
        let world = prepared();
        let mut reports = 0;
        for _ in 0..rounds() {
            kill_within(child(&world, task), Duration::from_millis(400), &mut random);
            let store = world.store();
            assert_nothing_lost(&world, &store);
            reports += reported(&world).len();
            let id = store.create(&CreateRequest::unnamed(Reason::Asked)).unwrap().snapshot.id;
            assert_complete(&store, &store.find(&id.into()).unwrap());
            store.collect_garbage().unwrap();
            assert_nothing_lost(&world, &store);
            // The rest was looked at twice.
            for snapshot in store.list().unwrap().iter().skip(5) {
                log_deletion(world.directory.path(), snapshot.id);
                store.delete(&snapshot.id.into()).unwrap();
            }
        }
        assert!(reports > 0, "no process lived long enough to take a snapshot");
    }
}

/// Bounds the rounds that go on until a collection was interrupted.
const MAX_ROUNDS: usize = 100;

/// A workspace whose store is mostly garbage, with checkpoints of undo.
fn littered() -> World {
    let world = prepared();
    let store = world.store();
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..12 {
        for file in 0..20 {
            let content: Vec<u8> = (0..40_000).map(|_| random.u8(..)).collect();
            world.write(format!("d{}/f{}", file % 5, file / 5), content);
        }
        take(&store, &format!("s{round}"));
    }
    for round in (0..12).filter(|round| round % 4 != 1) {
        store.delete(&named(&format!("s{round}")).into()).unwrap();
    }
    for number in 0..5 {
        let path = format!("d{number}/f0");
        let mut checkpoint = store.begin_checkpoint("ann", path.clone());
        checkpoint.before_image(std::path::Path::new(&path)).unwrap();
        world.write(&path, "edited");
        checkpoint.commit().unwrap().unwrap();
    }
    world
}

fn duplicate(world: &World) -> World {
    let copy = World::new();
    let (from, to) = (world.directory.path().join("."), copy.directory.path());
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
    copy
}

fn has_logged(world: &World, done: &str) -> bool {
    std::fs::read_to_string(world.outside("log")).unwrap().lines().any(|line| line == done)
}

fn wait_for(world: &World, done: &str) {
    let begun = Instant::now();
    while !has_logged(world, done) {
        assert!(begun.elapsed() < Duration::from_mins(1), "the process never {done}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_collection_killed_at_any_moment_keeps_what_is_needed_and_the_next_one_ends_it() {
    let world = littered();
    let needed: Vec<_> = world.store().list().unwrap();
    assert!(world.store().usage().unwrap().reclaimable > 1 << 20);
    let whole = duplicate(&world);
    let mut collecting = child(&whole, "garbage");
    wait_for(&whole, "begins");
    let begun = Instant::now();
    wait_for(&whole, "ended");
    let span = u64::try_from(begun.elapsed().as_micros()).unwrap();
    collecting.kill().unwrap();
    collecting.wait().unwrap();
    let expected = whole.store().usage().unwrap();
    assert_eq!(expected.reclaimable, 0);

    let mut random = fastrand::Rng::with_seed(rounds() as u64);
    let mut interrupted = 0;
    let mut round = 0;
    while round < rounds() * 2 || (interrupted == 0 && round < MAX_ROUNDS) {
        round += 1;
        let world = duplicate(&world);
        let mut collecting = child(&world, "garbage");
        wait_for(&world, "begins");
        std::thread::sleep(Duration::from_micros(random.u64(..span)));
        collecting.kill().unwrap();
        collecting.wait().unwrap();
        interrupted += usize::from(!has_logged(&world, "ended"));
        let store = world.store();
        assert_eq!(store.damaged().unwrap(), [""; 0], "round {round}");
        assert_eq!(store.list().unwrap(), needed, "round {round}");
        for snapshot in &needed {
            assert_complete(&store, snapshot);
        }
        let checkpoints = store.checkpoints("ann").unwrap();
        assert_eq!(checkpoints.len(), 5, "round {round}");
        // What another process has before and after a whole collection.
        store.collect_garbage().unwrap();
        let usage = store.usage().unwrap();
        assert_eq!((usage.reclaimable, usage.damaged), (0, 0), "round {round}");
        // There may be one more segment, each with a header of its own.
        let more = usage.stored.saturating_sub(expected.stored);
        assert!(more < 1024, "round {round}: {more} bytes stay");
        drop(store);
        let store = world.store();
        for snapshot in &needed {
            assert_complete(&store, snapshot);
        }
        for checkpoint in checkpoints {
            assert_eq!(store.undo("ann", checkpoint.id, &[]).unwrap().conflicts, []);
        }
        assert!(!world.read_bytes("d3/f0").starts_with(b"edited"), "round {round}");
    }
    assert!(interrupted > 0, "none of {round} collections was interrupted");
}

#[test]
fn a_restore_killed_at_any_moment_is_whole_or_not_begun_after_the_next_opening() {
    let world = prepared();
    world.link("d0", "link");
    let store = world.store();
    take(&store, "one");
    for file in 0..9 {
        world.write(format!("d1/f{file}"), "two");
        world.write(format!("new{file}/f"), "two");
    }
    world.remove("d3");
    world.write("d3", "a file");
    world.remove("link");
    world.write("link/f", "a directory");
    world.mode("d2", 0o700);
    take(&store, "two");
    drop(store);
    let mut random = fastrand::Rng::new();
    let mut recovered = 0;
    for _ in 0..rounds() * 3 {
        kill_within(child(&world, "restore"), Duration::from_millis(400), &mut random);
        let store = world.store();
        if let Some(recovery) = store.recovery() {
            assert_eq!((&recovery.conflicts, &recovery.failed), (&vec![], &vec![]));
            recovered += 1;
        }
        let names: Vec<_> = world.tree().into_keys().collect();
        let unfinished = |path: &PathBuf| path.to_string_lossy().contains(".carrel-write");
        assert!(!names.iter().any(unfinished), "{names:?}");
        let left = [since(&store, "one"), since(&store, "two")];
        assert!(left.iter().any(Vec::is_empty), "{left:?}");
    }
    assert!(recovered > 0, "no restore was interrupted");
}

#[test]
fn an_undo_killed_at_any_moment_is_whole_or_not_begun_after_the_next_opening() {
    let world = prepared();
    let store = world.store();
    let (one, mut checkpoint) = (world.tree(), store.begin_checkpoint("ann", "edit"));
    for path in ["d0", "d1", "d2", "d3", "new"] {
        checkpoint.before_image(std::path::Path::new(path)).unwrap();
    }
    for file in 0..9 {
        world.write(format!("d1/f{file}"), "two".repeat(500));
        world.write(format!("d2/f{file}"), "two");
        world.remove(&format!("d0/f{file}"));
    }
    world.remove("d3");
    world.write("d3", "a file");
    world.write("new", "two");
    checkpoint.commit().unwrap().unwrap();
    let two = world.tree();
    drop(store);
    let mut random = fastrand::Rng::new();
    let mut recovered = 0;
    for _ in 0..rounds() * 3 {
        kill_within(child(&world, "undo"), Duration::from_millis(400), &mut random);
        recovered += usize::from(world.stored("undo.journal").exists());
        let store = world.store();
        let found = world.tree();
        assert!(found == one || found == two, "{:?}", found.keys());
        let newest = store.checkpoints("ann").unwrap()[0].id;
        let undone = store.undo("ann", newest, &[]).unwrap();
        assert_eq!(undone.conflicts, []);
        assert!(world.tree() == one || world.tree() == two);
        // Killed before the first write, or after the last one, it is what was taken back or what that left.
        assert!(undone.restored.is_empty() || world.tree() != found);
    }
    assert!(recovered > 0, "no undo was interrupted");
    assert!(!std::fs::read_to_string(world.outside("log")).unwrap().is_empty());
}

#[test]
fn two_processes_share_a_store() {
    let world = prepared();
    let children = [child(&world, "share"), child(&world, "share"), child(&world, "share")];
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = world.store();
    assert_nothing_lost(&world, &store);
    let mut ids = reported(&world);
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), store.list().unwrap().len()), (45, 45));
}
