//! Readers against damaged bytes: they refuse or return something valid, and never panic.

use std::path::Path;

use carrel_domain::encoding::Reader;

use crate::journal::Journal;
use crate::object_id::ObjectId;
use crate::scan::scan;
use crate::scan_cache::ScanCache;
use crate::snapshot::Snapshot;
use crate::tree::read_list;
use crate::{Node, ScanOptions};

/// Damages bytes in one of the ways that disks and programs do.
fn damage(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..6) {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => bytes[at] = random.u8(..),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.u8(..)),
            4 => drop(bytes.remove(at)),
            _ => {
                let end = (at + random.usize(1..64)).min(bytes.len());
                bytes[at..end].fill(0xff);
            }
        }
    }
}

/// Replaces the checksum at the end, so that the reader behind it is reached.
fn with_checksum(bytes: &mut Vec<u8>) {
    let body = bytes.len().saturating_sub(ObjectId::LENGTH);
    bytes.truncate(body);
    let checksum = ObjectId::of(bytes);
    bytes.extend_from_slice(checksum.as_bytes());
}

#[expect(clippy::disallowed_methods, reason = "the test lays out its own files")]
fn lay_out(workspace: &Path) {
    std::fs::create_dir_all(workspace.join("a/b/c")).unwrap();
    for number in 0..20 {
        std::fs::write(workspace.join(format!("a/b/f{number}")), format!("{number}")).unwrap();
    }
    std::os::unix::fs::symlink("a/b", workspace.join("link")).unwrap();
}

#[test]
fn damaged_bytes_are_refused_or_read_as_something_valid() {
    use std::sync::Arc;

    use crate::disk::ServerDisk;
    use crate::objects::Objects;
    let world = tempfile::tempdir().unwrap();
    lay_out(world.path());
    let root = carrel_fsroot::Root::open(world.path()).unwrap();
    let store = tempfile::tempdir().unwrap();
    let disk = ServerDisk::new(carrel_fsroot::Root::open(store.path()).unwrap());
    let mut objects = Objects::open(Arc::new(disk)).unwrap();
    let mut cache = ScanCache::default();
    let scanned = scan(
        &root,
        &ScanOptions::default(),
        &std::collections::BTreeSet::new(),
        &mut cache,
        &mut objects,
    )
    .unwrap();
    let list = objects.get(scanned.top).unwrap();
    let stored_cache = cache.to_bytes();
    assert_eq!(ScanCache::of_bytes(&stored_cache).as_ref(), Some(&cache));
    let mut random = fastrand::Rng::with_seed(5);
    let rounds = 20_000;
    for round in 0..rounds {
        let mut bytes = list.clone();
        damage(&mut bytes, &mut random);
        for entry in read_list(&bytes).unwrap_or_default() {
            let is_repository = matches!(entry.node, Node::LeftOut(_)) && entry.name == ".git";
            let name = Path::new(&entry.name);
            let is_one = name.components().count() == 1 && name.file_name() == Some(&entry.name);
            assert!(is_one && (is_repository || entry.name != ".git"));
        }
        let mut bytes = stored_cache.clone();
        damage(&mut bytes, &mut random);
        if round % 2 == 0 {
            with_checksum(&mut bytes);
            let _ = ScanCache::of_bytes(&bytes);
        } else if bytes != stored_cache {
            assert_eq!(ScanCache::of_bytes(&bytes), None);
        }
        let noise: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(64).collect();
        let mut reader = Reader::new(&noise);
        while reader.text().is_some() {}
        let _ = (Journal::of_bytes(&noise), Snapshot::of_bytes(&noise).is_ok());
    }
}

#[test]
fn a_journal_comes_back_and_a_damaged_one_names_nothing_outside() {
    use carrel_fsroot::Durability;

    use crate::compare::{Change, ChangeKind};
    use crate::name::SnapshotId;
    use crate::tree_writer::Times;
    let file = Node::File { mode: 0o644, modified: 7, size: 1, id: ObjectId::of(b"x") };
    let change = |path: &str, kind, old, new| Change { path: path.into(), kind, old, new };
    let journal = Journal {
        process: 4711,
        snapshot: SnapshotId(3),
        before: SnapshotId(4),
        times: Times::Recorded,
        durability: Durability::Atomic,
        changes: vec![
            change("a/b", ChangeKind::Added, None, Some(file.clone())),
            change("c", ChangeKind::Type, Some(Node::Link { target: "/x".into() }), Some(file)),
        ],
        granted: vec![("a".into(), 0o555)],
    };
    let bytes = journal.to_bytes();
    assert_eq!(Journal::of_bytes(&bytes).as_ref(), Some(&journal));
    let mut random = fastrand::Rng::with_seed(6);
    for _ in 0..50_000 {
        let mut bytes = bytes.clone();
        damage(&mut bytes, &mut random);
        with_checksum(&mut bytes);
        for change in Journal::of_bytes(&bytes).map(|journal| journal.changes).unwrap_or_default() {
            let names = change.path.components();
            let is_inside =
                |name| matches!(name, std::path::Component::Normal(name) if name != ".git");
            assert!(change.path.is_relative() && names.into_iter().all(is_inside));
        }
    }
}
