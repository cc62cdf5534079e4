//! Power loss, simulated: the steps of a store are recorded, and the store is opened as each prefix of them may have
//! left it when what was not synced is lost, wholly or in part.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use carrel_domain::{SystemClock, sync};
use carrel_fsroot::Root;

use crate::disk::Disk;
use crate::error::StorageError;
use crate::faults::{Faults, Faulty};
use crate::name::{SnapshotId, SnapshotName};
use crate::{CreateRequest, Node, ObjectId, Reason, RestoreOptions, SameName, Snapshot, Store};

#[derive(Clone, Debug)]
enum Step {
    Write {
        name: String,
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        name: String,
        length: usize,
    },
    Sync(String),
    /// The kernel reported an error, and does not write again what it could not write.
    FailedSync(String),
    Rename {
        from: String,
        to: String,
    },
    Remove(String),
    SyncNames,
    /// The caller was told that a snapshot is there.
    Reported(SnapshotId),
    /// The caller asked for a snapshot to be deleted.
    Deleting(SnapshotId),
}

/// Records the steps, and takes them.
#[derive(Debug)]
struct Recorder {
    disk: Arc<dyn Disk>,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Recorder {
    fn note(&self, step: Step) {
        sync::lock(&self.steps).push(step);
    }
}

impl Disk for Recorder {
    fn list(&self) -> Result<Vec<String>, StorageError> {
        self.disk.list()
    }

    fn length(&self, name: &str) -> Result<Option<u64>, StorageError> {
        self.disk.length(name)
    }

    fn read_at(&self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<bool, StorageError> {
        self.disk.read_at(name, offset, buffer)
    }

    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let offset_in_memory = usize::try_from(offset).unwrap();
        self.note(Step::Write {
            name: name.to_owned(),
            offset: offset_in_memory,
            bytes: bytes.to_vec(),
        });
        self.disk.write_at(name, offset, bytes)
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), StorageError> {
        let length_in_memory = usize::try_from(length).unwrap();
        self.note(Step::Truncate { name: name.to_owned(), length: length_in_memory });
        self.disk.truncate(name, length)
    }

    fn sync(&self, name: &str) -> Result<(), StorageError> {
        let synced = self.disk.sync(name);
        self.note(match synced {
            Ok(()) => Step::Sync(name.to_owned()),
            Err(_) => Step::FailedSync(name.to_owned()),
        });
        synced
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        self.note(Step::Rename { from: from.to_owned(), to: to.to_owned() });
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.note(Step::Remove(name.to_owned()));
        self.disk.remove(name)
    }

    fn sync_names(&self) -> Result<(), StorageError> {
        self.note(Step::SyncNames);
        self.disk.sync_names()
    }
}

/// A change of contents or names that is not synced.
#[derive(Clone, Debug)]
enum Unsynced {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

#[derive(Clone, Debug, Default)]
struct Inode {
    synced: Vec<u8>,
    unsynced: Vec<Unsynced>,
}

#[derive(Clone, Debug)]
enum NameStep {
    Add(String, usize),
    Rename(String, String),
    Remove(String),
}

/// A file system that loses what is not synced.
#[derive(Default)]
struct Model {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    unsynced_names: Vec<NameStep>,
}

impl Model {
    fn inode(&mut self, name: &str) -> &mut Inode {
        if !self.names.contains_key(name) {
            self.inodes.push(Inode::default());
            let number = self.inodes.len() - 1;
            self.unsynced_names.push(NameStep::Add(name.to_owned(), number));
            self.names.insert(name.to_owned(), number);
        }
        &mut self.inodes[self.names[name]]
    }

    fn take(&mut self, step: &Step) {
        match step.clone() {
            Step::Write { name, offset, bytes } => {
                self.inode(&name).unsynced.push(Unsynced::Write { offset, bytes });
            }
            Step::Truncate { name, length } => {
                self.inode(&name).unsynced.push(Unsynced::Truncate { length });
            }
            Step::Sync(name) => {
                let inode = self.inode(&name);
                for change in std::mem::take(&mut inode.unsynced) {
                    change.apply(&mut inode.synced);
                }
            }
            Step::FailedSync(name) => self.inode(&name).unsynced.clear(),
            Step::Rename { from, to } => {
                apply_name(&mut self.names, &NameStep::Rename(from.clone(), to.clone()));
                self.unsynced_names.push(NameStep::Rename(from, to));
            }
            Step::Remove(name) => {
                apply_name(&mut self.names, &NameStep::Remove(name.clone()));
                self.unsynced_names.push(NameStep::Remove(name));
            }
            Step::SyncNames => {
                self.synced_names = self.names.clone();
                self.unsynced_names.clear();
            }
            Step::Reported(_) | Step::Deleting(_) => {}
        }
    }

    /// Returns the files that are left if `survives` says so for each unsynced change.
    fn after_power_loss(&self, mut survives: impl FnMut() -> bool) -> BTreeMap<String, Vec<u8>> {
        let mut names = self.synced_names.clone();
        for step in &self.unsynced_names {
            if survives() {
                apply_name(&mut names, step);
            }
        }
        let mut contents = |number: usize| {
            let mut content = self.inodes[number].synced.clone();
            for change in &self.inodes[number].unsynced {
                if survives() {
                    change.apply(&mut content);
                }
            }
            content
        };
        names.into_iter().map(|(name, number)| (name, contents(number))).collect()
    }
}

fn apply_name(names: &mut BTreeMap<String, usize>, step: &NameStep) {
    match step {
        NameStep::Add(name, number) => drop(names.insert(name.clone(), *number)),
        NameStep::Rename(from, to) => {
            if let Some(number) = names.remove(from) {
                names.insert(to.clone(), number);
            }
        }
        NameStep::Remove(name) => drop(names.remove(name)),
    }
}

impl Unsynced {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                content.resize(content.len().max(end), 0);
                content[*offset..end].copy_from_slice(bytes);
            }
            Self::Truncate { length } => content.resize(*length, 0),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the test lays out its own files")]
mod files {
    use super::{BTreeMap, Path};

    pub(super) fn write(path: &Path, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(super) fn remove(path: &Path) {
        std::fs::remove_file(path).unwrap();
    }

    pub(super) fn lay_out(directory: &Path, files: &BTreeMap<String, Vec<u8>>) {
        std::fs::create_dir_all(directory).unwrap();
        for (name, content) in files {
            std::fs::write(directory.join(name), content).unwrap();
        }
    }
}

fn root(path: &Path) -> Root {
    files::write(&path.join(".made"), "");
    files::remove(&path.join(".made"));
    Root::open(path).unwrap()
}

fn name(text: &str) -> SnapshotName {
    SnapshotName::new(text).unwrap()
}

/// Reads everything that a snapshot has.
fn assert_complete(store: &Store, snapshot: &Snapshot, context: &str) {
    let mut pending: Vec<ObjectId> = vec![snapshot.top];
    while let Some(list) = pending.pop() {
        for entry in store.entries(list).expect(context) {
            match entry.node {
                Node::File { id, size, .. } => {
                    assert_eq!(store.content(id).expect(context).len() as u64, size);
                }
                Node::Directory { id, .. } => pending.push(id),
                Node::Link { .. } | Node::LeftOut(_) => {}
            }
        }
    }
}

/// Does everything that writes to a store, and returns the steps.
fn record(world: &Path) -> Vec<Step> {
    let workspace = world.join("workspace");
    let steps: Arc<Mutex<Vec<Step>>> = Arc::default();
    let for_disk = Arc::clone(&steps);
    let store =
        Store::on(root(&world.join("store")), root(&workspace), Arc::new(SystemClock), |disk| {
            Arc::new(Recorder { disk, steps: for_disk })
        })
        .unwrap();
    let note = |step| sync::lock(&steps).push(step);
    let create = |request: &CreateRequest| {
        let snapshot = store.create(request).unwrap().snapshot;
        note(Step::Reported(snapshot.id));
        snapshot
    };
    let mut random = fastrand::Rng::with_seed(17);
    let mut change = |file: &str| {
        let content: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(900).collect();
        files::write(&workspace.join(file), content);
    };
    for number in 0..6 {
        change(&format!("d{}/f{number}", number % 3));
    }
    let first = create(&CreateRequest::named(name("first")));
    change("d1/f1");
    let mut checkpoint = store.begin_checkpoint("ann", "edit");
    checkpoint.before_image(Path::new("d1/f1")).unwrap();
    change("d1/f1");
    let checkpoint = checkpoint.commit().unwrap().unwrap();
    let second = create(&CreateRequest::named(name("second")));
    store.undo("ann", checkpoint, &[]).unwrap();
    // Shares content with what undo appended and did not sync.
    create(&CreateRequest::unnamed(Reason::Automatic("turn".into())));
    create(&CreateRequest::unnamed(Reason::Automatic("turn".into())));
    for number in 6..10 {
        change(&format!("d4/f{number}"));
    }
    note(Step::Deleting(first.id));
    let replacing =
        CreateRequest { same_name: SameName::Replaced, ..CreateRequest::named(name("first")) };
    create(&replacing);
    note(Step::Deleting(second.id));
    store.delete(&name("second").into()).unwrap();
    store.collect_garbage().unwrap();
    change("d4/f6");
    create(&CreateRequest::named(name("third")));
    let plan = store.plan_restore(&name("first").into(), RestoreOptions::default()).unwrap();
    let before = store.apply(plan).unwrap().before;
    note(Step::Reported(before.id));
    create(&CreateRequest::named(name("fourth")));
    drop(store);
    Arc::into_inner(steps).unwrap().into_inner().unwrap()
}

#[test]
fn every_snapshot_that_was_reported_survives_a_power_loss_at_every_step() {
    let world = tempfile::tempdir().unwrap();
    let steps = record(world.path());
    assert!(steps.len() > 60, "{}", steps.len());
    let mut random = fastrand::Rng::with_seed(18);
    let mut model = Model::default();
    let mut expected = BTreeSet::new();
    for (count, step) in steps.iter().enumerate() {
        model.take(step);
        match step {
            Step::Reported(id) => drop(expected.insert(*id)),
            Step::Deleting(id) => drop(expected.remove(id)),
            _ => {}
        }
        for variant in 0..4 {
            let context = format!("after step {count} {step:?}, variant {variant}")
                .chars()
                .take(200)
                .collect::<String>();
            let files = model.after_power_loss(|| match variant {
                0 => false,
                1 => true,
                _ => random.bool(),
            });
            let goes_on = variant == count % 4;
            assert_survives(&files, &expected, goes_on, &context);
        }
    }
}

#[test]
fn a_snapshot_after_a_failed_sync_has_nothing_that_the_kernel_may_have_dropped() {
    let world = tempfile::tempdir().unwrap();
    let workspace = world.path().join("workspace");
    for number in 0..3 {
        files::write(&workspace.join(format!("f{number}")), number.to_string().repeat(700));
    }
    let steps: Arc<Mutex<Vec<Step>>> = Arc::default();
    let (for_disk, faults) = (Arc::clone(&steps), Arc::new(Faults::default()));
    let for_faulty = Arc::clone(&faults);
    let store = Store::on(
        root(&world.path().join("store")),
        root(&workspace),
        Arc::new(SystemClock),
        |disk| {
            Arc::new(Recorder { disk: Arc::new(Faulty::new(disk, for_faulty)), steps: for_disk })
        },
    )
    .unwrap();
    let create = |text: &str| store.create(&CreateRequest::named(name(text)));
    let first = create("first").unwrap().snapshot;
    files::write(&workspace.join("f1"), "changed");
    faults.fail_sync_of("segment-");
    create("failed").unwrap_err();
    let second = create("second").unwrap().snapshot;
    // Undo alone would append the same content without syncing it, so also the index must not name it.
    let other = Store::open(root(&world.path().join("store")), root(&workspace)).unwrap();
    files::write(&workspace.join("f2"), "changed");
    let third = other.create(&CreateRequest::named(name("third"))).unwrap().snapshot;
    drop((store, other));
    let mut model = Model::default();
    sync::lock(&steps).iter().for_each(|step| model.take(step));
    let files = model.after_power_loss(|| false);
    assert_survives(&files, &BTreeSet::from([first.id, second.id]), true, "after a failed sync");
    assert!(third.id > second.id);
}

fn assert_survives(
    files: &BTreeMap<String, Vec<u8>>,
    expected: &BTreeSet<SnapshotId>,
    goes_on: bool,
    context: &str,
) {
    let world = tempfile::tempdir().unwrap();
    let directory: PathBuf = world.path().join("store");
    files::lay_out(&directory, files);
    let open = || Store::open(root(&directory), root(&world.path().join("workspace")));
    let store = open().expect(context);
    let found = store.list().expect(context);
    for id in expected {
        let snapshot = found.iter().find(|snapshot| snapshot.id == *id);
        assert_complete(
            &store,
            snapshot.unwrap_or_else(|| panic!("{id} is lost {context}")),
            context,
        );
    }
    if !goes_on {
        return;
    }
    // It goes on as if nothing had happened, with numbers that were not used.
    files::write(&world.path().join("workspace/new"), "new");
    let new = store.create(&CreateRequest::named(name("new"))).expect(context).snapshot;
    assert!(expected.iter().all(|id| *id < new.id), "{context}");
    drop(store);
    let store = open().expect(context);
    assert_complete(&store, &store.find(&name("new").into()).expect(context), context);
}
