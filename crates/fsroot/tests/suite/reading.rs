use std::os::unix::fs::PermissionsExt;

use carrel_fsroot::{Durability, FileKind, Problem, UsageLimit, WalkControl, WriteOptions};

use crate::{TestTree, p};

#[test]
fn a_read_is_whole_or_refused_by_size() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("file", "0123456789");
    assert_eq!(tree_fixture.root.read(p("file"), 10).unwrap(), b"0123456789");
    let error = tree_fixture.root.read(p("file"), 9).unwrap_err();
    assert_eq!(error.problem(), Problem::TooLarge { size: 10, limit: 9 });
}

#[test]
fn a_range_ends_with_the_file_and_tells_its_size() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("file", "0123456789");
    for (offset, length, bytes) in [(0, 4, "0123"), (8, 4, "89"), (10, 4, ""), (u64::MAX, 4, "")] {
        let range = tree_fixture.root.read_range(p("file"), offset, length).unwrap();
        assert_eq!((range.bytes.as_slice(), range.size), (bytes.as_bytes(), 10));
    }
}

#[test]
fn a_listing_is_sorted_and_tells_kinds() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("b", "");
    tree_fixture.file("a/x", "");
    tree_fixture.link("nowhere", "c");
    tree_fixture.fifo("d");
    let entries = tree_fixture.root.list(p("")).unwrap();
    let listed: Vec<_> =
        entries.iter().map(|entry| (entry.name.to_str().unwrap(), entry.kind)).collect();
    assert_eq!(
        listed,
        [
            ("a", FileKind::Directory),
            ("b", FileKind::File),
            ("c", FileKind::Link),
            ("d", FileKind::Fifo)
        ]
    );
}

#[test]
fn a_bounded_listing_is_whole_or_none() {
    let tree_fixture = TestTree::new();
    for number in 0..1000 {
        tree_fixture.file(&format!("many/{number:03}"), "");
    }
    let listed = tree_fixture.root.list_at_most(p("many"), 1000).unwrap().unwrap();
    assert_eq!(listed, tree_fixture.root.list(p("many")).unwrap());
    assert_eq!(tree_fixture.root.list_at_most(p("many"), 999).unwrap(), None);
    assert_eq!(tree_fixture.root.list_at_most(p("many"), 0).unwrap(), None);
}

#[test]
fn the_entry_itself_is_described_however_it_is_named() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("directory/file", "0123456789");
    tree_fixture.link("directory", "link");
    tree_fixture.link("nowhere", "dangling");
    for (path, kind) in [
        ("directory", FileKind::Directory),
        ("link", FileKind::Link),
        ("./link", FileKind::Link),
        ("dangling", FileKind::Link),
        ("directory/file", FileKind::File),
        ("link/file", FileKind::File),
    ] {
        assert_eq!(tree_fixture.root.link_metadata(p(path)).unwrap().kind, kind, "{path}");
    }
    for path in ["missing", "./missing", "directory/missing"] {
        let error = tree_fixture.root.link_metadata(p(path)).unwrap_err();
        assert_eq!(error.problem(), Problem::NotFound, "{path}");
    }
    for path in ["..", "/", "a\0b"] {
        assert!(tree_fixture.root.link_metadata(p(path)).is_err(), "{path}");
    }
}

#[test]
fn the_time_of_a_change_cannot_be_set_back() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("file", "old");
    let before = tree_fixture.root.metadata(p("file")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    tree_fixture.file("file", "new");
    let file = std::fs::File::options().write(true).open(tree_fixture.inside("file")).unwrap();
    file.set_modified(before.modified).unwrap();
    let after = tree_fixture.root.metadata(p("file")).unwrap();
    assert_eq!((after.modified, after.size), (before.modified, before.size));
    assert!(after.changed > before.changed);
}

#[test]
fn names_that_are_not_text_survive() {
    use std::os::unix::ffi::OsStrExt;
    let tree_fixture = TestTree::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::write(tree_fixture.inside("").join(name), "x").unwrap();
    assert_eq!(tree_fixture.root.list(p("")).unwrap()[0].name, name);
    assert_eq!(tree_fixture.root.read(name.as_ref(), 10).unwrap(), b"x");
}

#[test]
fn a_walk_visits_parents_first_and_never_follows_links() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("b/y", "");
    tree_fixture.file("a/x", "");
    tree_fixture.link("../outside", "a/out");
    tree_fixture.link("..", "a/up");
    let mut seen = Vec::new();
    let visit = |visit: &carrel_fsroot::WalkEntry<'_>| {
        seen.push(visit.path.display().to_string());
        Ok(WalkControl::Continue)
    };
    tree_fixture.root.walk(p(""), visit, Err).unwrap();
    assert_eq!(seen, ["a", "a/out", "a/up", "a/x", "b", "b/y"]);
}

#[test]
fn usage_counts_blocks_and_each_inode_once() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("data", &"x".repeat(100_000));
    std::fs::hard_link(tree_fixture.inside("data"), tree_fixture.inside("again")).unwrap();
    tree_fixture.link("data", "link");
    tree_fixture.link(tree_fixture.outside("secret"), "out");
    let sparse = std::fs::File::create(tree_fixture.inside("sparse")).unwrap();
    sparse.set_len(50 << 30).unwrap();
    let usage = tree_fixture.root.usage(p(""), UsageLimit::NONE).unwrap();
    // The data, the sparse file and two links.
    assert_eq!(usage.inodes, 4);
    assert!((100_000..200_000).contains(&usage.bytes), "{usage:?}");
}

#[test]
fn usage_stops_counting_when_the_answer_is_clear() {
    let tree_fixture = TestTree::new();
    for n in 0..100 {
        tree_fixture.file(&format!("f{n}"), "x");
    }
    let limit = UsageLimit { bytes: u64::MAX, inodes: 10 };
    assert_eq!(tree_fixture.root.usage(p(""), limit).unwrap().inodes, 11);
}

#[test]
fn usage_counts_a_tree_of_any_depth_with_few_descriptors() {
    let tree_fixture = TestTree::new();
    let buffered = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    let mut level = tree_fixture.root.try_clone().unwrap();
    for _ in 0..1000 {
        level.create_directory(p("d"), 0o755).unwrap();
        level.write(p("z"), b"after the directory", buffered).unwrap();
        level = level.open_root(p("d")).unwrap();
    }
    let usage = tree_fixture.root.usage(p(""), UsageLimit::NONE).unwrap();
    assert_eq!((usage.inodes, usage.unreadable), (2000, 0));
}

#[test]
fn an_unreadable_directory_is_reported_and_does_not_end_the_walk() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("a/x", "");
    tree_fixture.file("b/y", "");
    std::fs::set_permissions(tree_fixture.inside("a"), std::fs::Permissions::from_mode(0o000))
        .unwrap();
    let readable = std::fs::read_dir(tree_fixture.inside("a")).is_ok();
    let usage = tree_fixture.root.usage(p(""), UsageLimit::NONE).unwrap();
    // Root reads everything; an ordinary user is told what was left out.
    assert_eq!((usage.inodes, usage.unreadable), if readable { (4, 0) } else { (3, 1) });
    std::fs::set_permissions(tree_fixture.inside("a"), std::fs::Permissions::from_mode(0o700))
        .unwrap();
}

#[test]
fn a_root_reached_through_a_link_shows_its_real_path() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("file", "x");
    let link = tree_fixture.directory.path().join("link");
    std::os::unix::fs::symlink("inside", &link).unwrap();
    let root = carrel_fsroot::Root::open(&link).unwrap();
    assert_eq!(root.path(), tree_fixture.root.path());
    assert_eq!(root.identity().unwrap(), tree_fixture.root.identity().unwrap());
    assert_eq!(root.read(p("file"), 10).unwrap(), b"x");
}

#[test]
fn a_root_stays_the_same_directory_when_it_is_renamed_and_replaced() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("file", "mine");
    let moved = tree_fixture.directory.path().join("moved");
    std::fs::rename(tree_fixture.inside(""), &moved).unwrap();
    std::os::unix::fs::symlink("outside", tree_fixture.directory.path().join("inside")).unwrap();
    assert_eq!(tree_fixture.root.read(p("file"), 10).unwrap(), b"mine");
    assert!(tree_fixture.root.read(p("secret"), 10).unwrap_err().is_not_found());
}
