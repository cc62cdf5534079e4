//! Disks that fail: full ones, failing syncs, and processes that share a store meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use carrel_domain::{SystemClock, sync};
use carrel_fsroot::Root;

use crate::disk::Disk;
use crate::error::StorageError;
use crate::name::SnapshotName;
use crate::{CreateError, CreateRequest, Node, ScanError, Snapshot, Store};

/// The faults of a disk.
#[derive(Debug)]
pub(crate) struct Faults {
    /// The bytes that can still be written.
    space: AtomicUsize,
    /// The next sync of a file whose name begins with this fails.
    sync: Mutex<Option<String>>,
    /// The reads until one fails.
    reads: AtomicUsize,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            space: AtomicUsize::new(usize::MAX),
            sync: Mutex::default(),
            reads: AtomicUsize::new(usize::MAX),
        }
    }
}

impl Faults {
    pub(crate) fn fail_sync_of(&self, name: &str) {
        *sync::lock(&self.sync) = Some(name.to_owned());
    }

    /// Makes the read after this number of reads fail, once.
    pub(crate) fn fail_read(&self, after: usize) {
        self.reads.store(after, Ordering::Relaxed);
    }

    fn set_space(&self, bytes: usize) {
        self.space.store(bytes, Ordering::Relaxed);
    }
}

/// A disk with faults.
#[derive(Debug)]
pub(crate) struct Faulty {
    disk: Arc<dyn Disk>,
    faults: Arc<Faults>,
}

impl Faulty {
    pub(crate) fn new(disk: Arc<dyn Disk>, faults: Arc<Faults>) -> Self {
        Self { disk, faults }
    }
}

fn failed(name: &str, kind: std::io::ErrorKind) -> StorageError {
    StorageError::io(name)(kind.into())
}

impl Disk for Faulty {
    fn list(&self) -> Result<Vec<String>, StorageError> {
        self.disk.list()
    }

    fn length(&self, name: &str) -> Result<Option<u64>, StorageError> {
        self.disk.length(name)
    }

    fn read_at(&self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<bool, StorageError> {
        let left = self.faults.reads.load(Ordering::Relaxed);
        if left != usize::MAX {
            self.faults.reads.store(left.wrapping_sub(1), Ordering::Relaxed);
        }
        if left == 0 {
            return Err(failed(name, std::io::ErrorKind::Other));
        }
        self.disk.read_at(name, offset, buffer)
    }

    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let space = self.faults.space.load(Ordering::Relaxed);
        let written = bytes.len().min(space);
        self.disk.write_at(name, offset, &bytes[..written])?;
        if space != usize::MAX {
            self.faults.set_space(space - written);
        }
        if written == bytes.len() {
            Ok(())
        } else {
            Err(failed(name, std::io::ErrorKind::StorageFull))
        }
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), StorageError> {
        self.disk.truncate(name, length)
    }

    fn sync(&self, name: &str) -> Result<(), StorageError> {
        let mut fails = sync::lock(&self.faults.sync);
        if fails.as_ref().is_some_and(|start| name.starts_with(start)) {
            *fails = None;
            return Err(failed(name, std::io::ErrorKind::StorageFull));
        }
        drop(fails);
        self.disk.sync(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.disk.remove(name)
    }

    fn sync_names(&self) -> Result<(), StorageError> {
        self.disk.sync_names()
    }
}

/// A workspace and its store.
pub(crate) struct World {
    directory: tempfile::TempDir,
}

#[expect(clippy::disallowed_methods, reason = "the tests lay out their own files")]
impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["workspace", "store"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.directory.path().join("workspace").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read_bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.directory.path().join("workspace").join(path)).unwrap()
    }

    pub(crate) fn path(&self, path: &str) -> std::path::PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn remove_tree(&self, path: &str) {
        std::fs::remove_dir_all(self.directory.path().join("workspace").join(path)).unwrap();
    }

    pub(crate) fn root(&self, name: &str) -> Root {
        Root::open(&self.directory.path().join(name)).unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.root("store"), self.root("workspace")).unwrap()
    }

    pub(crate) fn store_with(&self, faults: &Arc<Faults>) -> Store {
        let faults = Arc::clone(faults);
        Store::on(self.root("store"), self.root("workspace"), Arc::new(SystemClock), |disk| {
            Arc::new(Faulty::new(disk, faults))
        })
        .unwrap()
    }
}

pub(crate) fn create(store: &Store, name: &str) -> Result<Snapshot, CreateError> {
    let request = CreateRequest::named(SnapshotName::new(name).unwrap());
    store.create(&request).map(|created| created.snapshot)
}

/// Edits a file with a checkpoint.
fn edit(world: &World, store: &Store, path: &str, content: &[u8]) {
    let mut checkpoint = store.begin_checkpoint("ann", "edit");
    checkpoint.before_image(Path::new(path)).unwrap();
    world.write(path, content);
    checkpoint.commit().unwrap().unwrap();
}

/// Reads everything that the snapshots of a store have.
fn assert_complete(store: &Store) {
    for snapshot in store.list().unwrap() {
        let mut pending = vec![snapshot.top];
        while let Some(list) = pending.pop() {
            for entry in store.entries(list).unwrap() {
                match entry.node {
                    Node::File { id, size, .. } => {
                        assert_eq!(store.content(id).unwrap().len() as u64, size);
                    }
                    Node::Directory { id, .. } => pending.push(id),
                    Node::Link { .. } | Node::LeftOut(_) => {}
                }
            }
        }
    }
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

#[test]
fn processes_that_fill_a_segment_do_not_overwrite_each_other() {
    let world = World::new();
    let stores = [world.store(), world.store(), world.store()];
    world.write("f", noise(0, 900));
    let first = world.read_bytes("f");
    for number in 1..=20 {
        let store = &stores[usize::try_from(number).unwrap() % stores.len()];
        edit(&world, store, "f", &noise(number, 900));
    }
    // A look at the present files and a scan of what is new append too, and announce nothing.
    create(&stores[0], "one").unwrap();
    for store in stores.iter().chain([&world.store()]) {
        assert_eq!(store.checkpoints("ann").unwrap().len(), 20);
        assert_complete(store);
    }
    for checkpoint in stores[1].checkpoints("ann").unwrap() {
        let undone = stores[2].undo("ann", checkpoint.id, &[]).unwrap();
        assert_eq!(undone.conflicts, [], "{checkpoint:?}");
    }
    assert_eq!(world.read_bytes("f"), first);
}

#[test]
fn a_snapshot_after_one_that_met_a_full_disk_is_whole() {
    // Each cut: within the first record, between two, in the list.
    for space in [0, 30, 800, 1000, 1500, 2200, 2400] {
        let world = World::new();
        let faults = Arc::new(Faults::default());
        let store = world.store_with(&faults);
        for number in 0..3 {
            world.write(&format!("f{number}"), noise(number, 700));
        }
        faults.set_space(space);
        create(&store, "failed").unwrap_err();
        faults.set_space(usize::MAX);
        world.write("f1", noise(77, 700));
        create(&store, "one").unwrap();
        edit(&world, &store, "f2", b"edited");
        create(&store, "two").unwrap();
        assert_complete(&store);
        drop(store);
        let store = world.store();
        assert_complete(&store);
        assert!(store.list().unwrap().len() >= 2);
        assert_eq!(store.checkpoints("ann").unwrap().len(), 1);
    }
}

#[test]
fn what_a_failed_scan_found_does_not_displace_what_another_process_appends() {
    let world = World::new();
    let (one, other) = (world.store(), world.store());
    world.write("a", noise(1, 500));
    for number in 0..=1000 {
        world.write(&format!("z/{number}"), "");
    }
    let error = create(&one, "one").unwrap_err();
    assert!(matches!(error, CreateError::Scan(ScanError::TooManyEntries)), "{error}");
    edit(&world, &other, "b", &noise(2, 300));
    edit(&world, &other, "b", &noise(3, 300));
    world.remove_tree("z");
    create(&one, "one").unwrap();
    for store in [&one, &other, &world.store()] {
        assert_complete(store);
        assert_eq!(store.checkpoints("ann").unwrap().len(), 2);
    }
}

#[test]
fn garbage_is_collected_in_pieces_that_keep_everything_needed() {
    let world = World::new();
    let (store, other) = (world.store(), world.store());
    for number in 0..30 {
        world.write(&format!("f{number}"), noise(number, 900));
        create(&store, &format!("s{number}")).unwrap();
        // Every second content is garbage then.
        if number % 2 == 1 {
            world.write(&format!("f{number}"), "small");
            store.delete(&SnapshotName::new(format!("s{number}")).unwrap().into()).unwrap();
        }
    }
    let pieces = store.locked(|state| {
        let live = state.snapshots.iter().map(|snapshot| snapshot.top).collect();
        Ok::<_, StorageError>(state.objects.pieces(&live).len())
    });
    assert!(pieces.unwrap() > 1);
    let collected = store.collect_garbage().unwrap();
    assert!(collected.after < collected.before, "{collected:?}");
    assert_eq!(store.usage().unwrap().reclaimable, 0);
    for store in [&store, &other, &world.store()] {
        assert_complete(store);
        assert_eq!(store.list().unwrap().len(), 15);
    }
    // Nothing is copied when nothing is to be dropped.
    let names = || world.root("store").list(Path::new(".")).unwrap().len();
    let before = (names(), store.usage().unwrap());
    store.collect_garbage().unwrap();
    assert_eq!((names(), store.usage().unwrap()), before);
}

#[test]
fn garbage_is_looked_for_only_when_much_has_changed() {
    let world = World::new();
    let store = world.store();
    let may = || store.may_have_garbage(20_000, 1000).unwrap();
    world.write("f", noise(1, 5000));
    create(&store, "one").unwrap();
    assert!(!may(), "the whole store is not worth it");
    world.write("f", noise(2, 30_000));
    create(&store, "two").unwrap();
    assert!(may());
    store.usage().unwrap();
    assert!(!may(), "nothing has changed since the last look");
    for number in 0..16 {
        create(&store, "more").unwrap();
        store.delete(&SnapshotName::new("more").unwrap().into()).unwrap();
        assert_eq!(may(), number == 15, "{number}");
    }
    store.usage().unwrap();
    world.write("f", noise(3, 15_000));
    create(&store, "three").unwrap();
    assert!(may());
}
