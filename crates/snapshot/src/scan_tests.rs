//! Scans of trees that are changed meanwhile, as the last scan would have left them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::disk::{Disk, ServerDisk};
use crate::error::StorageError;
use crate::faults::World;
use crate::objects::Objects;
use crate::scan::scan;
use crate::scan_cache::{Known, KnownDirectory, ScanCache, State};
use crate::scan_options::{ScanOptions, Scanned, Trust};
use crate::tree::{Node, read_list};
use crate::unchanged::unchanged;

/// A store's disk that waits before each write.
#[derive(Debug)]
struct Slow(ServerDisk, Duration);

impl Disk for Slow {
    fn list(&self) -> Result<Vec<String>, StorageError> {
        self.0.list()
    }

    fn length(&self, name: &str) -> Result<Option<u64>, StorageError> {
        self.0.length(name)
    }

    fn read_at(&self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<bool, StorageError> {
        self.0.read_at(name, offset, buffer)
    }

    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        std::thread::sleep(self.1);
        self.0.write_at(name, offset, bytes)
    }

    fn truncate(&self, name: &str, length: u64) -> Result<(), StorageError> {
        self.0.truncate(name, length)
    }

    fn sync(&self, name: &str) -> Result<(), StorageError> {
        self.0.sync(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.0.remove(name)
    }

    fn sync_names(&self) -> Result<(), StorageError> {
        self.0.sync_names()
    }
}

fn objects(world: &World, pause: Duration) -> Objects {
    Objects::open(Arc::new(Slow(ServerDisk::new(world.root("store")), pause))).unwrap()
}

fn look(world: &World, cache: &mut ScanCache, objects: &mut Objects) -> Scanned {
    let options = ScanOptions::default();
    scan(&world.root("workspace"), &options, &BTreeSet::new(), cache, objects).unwrap()
}

/// Returns the names of the top directory, directories with a slash.
fn names(scanned: &Scanned, objects: &mut Objects) -> Vec<String> {
    let list = read_list(&objects.get(scanned.top).unwrap()).unwrap();
    let shown = |entry: crate::Entry| {
        let slash = if matches!(entry.node, Node::Directory { .. }) { "/" } else { "" };
        format!("{}{slash}", entry.name.display())
    };
    list.into_iter().map(shown).collect()
}

fn child<'a>(directory: &'a mut KnownDirectory, name: &str) -> &'a mut Known {
    directory.children.iter_mut().find(|known| known.name == name).unwrap()
}

#[test]
fn only_directories_that_are_as_the_last_scan_found_them_are_passed_over() {
    let world = World::new();
    for path in ["f", "a/f", "a/b/f", "c/f", "ignored/f"] {
        world.write(path, "1");
    }
    world.write(".gitignore", "ignored\n");
    let (mut objects, mut cache) = (objects(&world, Duration::ZERO), ScanCache::default());
    let options = ScanOptions::default();
    let found = |cache: &ScanCache, options: &ScanOptions| {
        let top = world.root("workspace").directory(Path::new(".")).unwrap();
        let found = unchanged(&top, options, &BTreeSet::new(), &cache.top);
        found.into_iter().map(|path| path.display().to_string()).collect::<BTreeSet<_>>()
    };
    let expect = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    look(&world, &mut cache, &mut objects);
    // Keys that are younger than the clock's tick are not trusted.
    assert_eq!(found(&cache, &options), BTreeSet::new());
    std::thread::sleep(Duration::from_millis(100));
    look(&world, &mut cache, &mut objects);
    assert_eq!(found(&cache, &options), expect(&["", "a", "a/b", "c"]));
    world.write("a/b/f", "2");
    assert_eq!(found(&cache, &options), expect(&["", "a", "c"]));
    world.write("c/new", "3");
    assert_eq!(found(&cache, &options), expect(&["", "a"]));
    world.write(".gitignore", "c\n");
    assert_eq!(found(&cache, &options), expect(&["a"]));
    let but = |trust| ScanOptions { trust, ..ScanOptions::default() };
    assert_eq!(found(&cache, &but(Trust::Except(["a/f".into()].into()))), BTreeSet::new());
    assert_eq!(found(&cache, &but(Trust::Nothing)), BTreeSet::new());
    let scanned = look(&world, &mut cache, &mut objects);
    assert_eq!(names(&scanned, &mut objects), [".gitignore", "a/", "c", "f", "ignored/"]);
    assert_eq!((scanned.totals.files, scanned.files_read, scanned.totals.ignored), (5, 3, 1));
}

#[test]
fn a_name_that_has_become_another_thing_since_it_was_listed_is_taken_as_it_is() {
    let world = World::new();
    world.write("was_file/f", "1");
    world.write("was_directory", "2");
    let mut objects = objects(&world, Duration::ZERO);
    let mut cache = ScanCache::default();
    look(&world, &mut cache, &mut objects);
    // As if both had been the other thing when the directory was listed.
    cache.top.is_settled = true;
    for (name, is_directory) in [("was_file", false), ("was_directory", true)] {
        let known = child(&mut cache.top, name);
        (known.is_directory, known.state) = (is_directory, State::Unknown);
    }
    let scanned = look(&world, &mut cache, &mut objects);
    assert_eq!(names(&scanned, &mut objects), ["was_directory", "was_file/"]);
    assert_eq!((scanned.totals.files, scanned.totals.directories), (2, 1));
}

#[test]
fn a_name_that_moves_while_its_directory_is_scanned_is_taken_under_the_new_one() {
    let world = World::new();
    world.write("new_name", "1");
    world.write("other", "2");
    let mut objects = objects(&world, Duration::ZERO);
    let mut cache = ScanCache::default();
    look(&world, &mut cache, &mut objects);
    cache.top.is_settled = true;
    child(&mut cache.top, "new_name").name = "mid_name".into();
    let scanned = look(&world, &mut cache, &mut objects);
    assert_eq!(names(&scanned, &mut objects), ["new_name", "other"]);
}

#[test]
fn a_file_whose_storing_takes_long_is_not_settled_by_that() {
    let world = World::new();
    // Enough for the store to write before the scan is over, and more than the age from which keys are trusted.
    let (content, pause) = (vec![7; 3 << 20], Duration::from_millis(100));
    let mut random = fastrand::Rng::with_seed(1);
    let content: Vec<u8> = content.iter().map(|_| random.u8(..)).collect();
    let is_read_again = (0..20).any(|round| {
        let mut objects = objects(&world, pause);
        let mut cache = ScanCache::default();
        world.write("large", [&content[..], &[round]].concat());
        let written = SystemTime::now();
        assert_eq!(look(&world, &mut cache, &mut objects).files_read, 1);
        assert!(written.elapsed().unwrap() > pause);
        // False in a round in which the machine was so loaded that the file was old before it was read.
        look(&world, &mut cache, &mut objects).files_read == 1
    });
    assert!(is_read_again);
}
