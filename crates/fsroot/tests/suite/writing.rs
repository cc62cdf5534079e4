use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use carrel_fsroot::{Collision, Durability, Problem, WriteOptions, unfinished_write_pid};

use crate::{TestTree, p};

#[test]
fn a_write_keeps_mode_owner_and_attributes() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("file", "old");
    let path = tree_fixture.inside("file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(&path, Some(1234), Some(4321)).unwrap();
    }
    let attribute =
        rustix::fs::setxattr(&path, "user.note", b"kept", rustix::fs::XattrFlags::empty());
    tree_fixture.root.write(p("file"), b"new", WriteOptions::default()).unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o640);
    if root {
        assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
    }
    if attribute.is_ok() {
        let mut value = [0; 10];
        let length = rustix::fs::getxattr(&path, "user.note", value.as_mut_slice()).unwrap();
        assert_eq!(&value[..length], b"kept");
    } else {
        carrel_skip::unavailable("extended attributes of users");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
}

#[test]
fn what_root_creates_in_a_users_directory_belongs_to_the_user() {
    carrel_skip::needs!(Root);
    let tree_fixture = TestTree::new();
    let theirs = tree_fixture.inside("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(1234), Some(4321)).unwrap();
    tree_fixture.root.create_directories(p("theirs/a/b"), 0o755).unwrap();
    for name in ["theirs/new", "theirs/a/b/new"] {
        tree_fixture.root.write(p(name), b"new", WriteOptions::default()).unwrap();
    }
    for name in ["theirs/a", "theirs/a/b", "theirs/new", "theirs/a/b/new"] {
        let made = tree_fixture.inside(name).metadata().unwrap();
        assert_eq!((made.uid(), made.gid()), (1234, 4321), "{name}");
    }
}

#[test]
fn a_mode_can_be_given_to_a_new_file_regardless_of_the_umask() {
    let tree_fixture = TestTree::new();
    for mode in [0o777, 0o640, 0o4755] {
        let mut file =
            tree_fixture.root.begin_write(p("program"), WriteOptions::default()).unwrap();
        file.write_all(b"x").unwrap();
        file.set_mode(mode).unwrap();
        file.commit().unwrap();
        let written = std::fs::metadata(tree_fixture.inside("program")).unwrap();
        assert_eq!(written.mode() & 0o7777, mode & 0o777);
    }
}

#[test]
fn a_write_takes_away_the_right_to_run_as_another_user() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("program", "old");
    let path = tree_fixture.inside("program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    tree_fixture.root.write(p("program"), b"new", WriteOptions::default()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn a_write_goes_through_an_inward_link_and_keeps_it() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("real/AGENTS.md", "old");
    tree_fixture.link("real/AGENTS.md", "middle");
    tree_fixture.link("middle", "CLAUDE.md");
    tree_fixture.root.write(p("CLAUDE.md"), b"new", WriteOptions::default()).unwrap();
    assert_eq!(std::fs::read_to_string(tree_fixture.inside("real/AGENTS.md")).unwrap(), "new");
    assert!(
        tree_fixture.inside("CLAUDE.md").is_symlink() && tree_fixture.inside("middle").is_symlink()
    );
}

#[test]
fn a_write_leaves_the_other_names_of_a_file_alone() {
    let tree_fixture = TestTree::new();
    std::fs::hard_link(tree_fixture.outside("secret"), tree_fixture.inside("hard")).unwrap();
    tree_fixture.root.write(p("hard"), b"mine", WriteOptions::default()).unwrap();
    assert_eq!(std::fs::read_to_string(tree_fixture.outside("secret")).unwrap(), "outside");
}

#[test]
fn an_abandoned_write_leaves_nothing() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("file", "old");
    let mut pending = tree_fixture.root.begin_write(p("file"), WriteOptions::default()).unwrap();
    pending.write_all(b"half").unwrap();
    let names = tree_fixture.root.list(p("")).unwrap();
    let left_by = names.iter().find_map(|entry| unfinished_write_pid(&entry.name));
    assert_eq!(left_by, Some(std::process::id()));
    drop(pending);
    assert_eq!(tree_fixture.root.list(p("")).unwrap().len(), 1);
    assert_eq!(std::fs::read_to_string(tree_fixture.inside("file")).unwrap(), "old");
}

#[test]
fn a_refused_collision_leaves_what_is_there() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("file", "old");
    let options = WriteOptions { collision: Collision::Refuse, ..WriteOptions::default() };
    let error = tree_fixture.root.write(p("file"), b"new", options).unwrap_err();
    assert_eq!(error.problem(), Problem::Exists);
    tree_fixture.root.write(p("new"), b"new", options).unwrap();
    let error = tree_fixture.root.rename(p("new"), p("file"), Collision::Refuse).unwrap_err();
    assert_eq!(error.problem(), Problem::Exists);
    assert_eq!(std::fs::read_to_string(tree_fixture.inside("file")).unwrap(), "old");
}

#[test]
fn a_new_file_has_the_mode_that_was_asked_for() {
    let tree_fixture = TestTree::new();
    let options = WriteOptions {
        new_mode: Some(0o600),
        durability: Durability::Buffered,
        ..WriteOptions::default()
    };
    tree_fixture.root.write(p("file"), b"x", options).unwrap();
    assert_eq!(std::fs::metadata(tree_fixture.inside("file")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_directory_is_never_replaced_by_a_file() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("directory/x", "");
    let error = tree_fixture.root.write(p("directory"), b"x", WriteOptions::default()).unwrap_err();
    assert_eq!(error.problem(), Problem::IsADirectory);
}

#[test]
fn directories_are_made_as_far_as_they_are_missing() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("a/file", "");
    tree_fixture.link("a", "link");
    for path in ["x/y/z", "x/y/z", "link/b/c", "x/../w", "new/../also", "", "."] {
        tree_fixture.root.create_directories(p(path), 0o755).unwrap();
    }
    for path in ["x/y/z", "a/b/c", "w", "new", "also"] {
        assert!(tree_fixture.inside(path).is_dir(), "{path}");
    }
    let error = tree_fixture.root.create_directories(p("a/file/x"), 0o755).unwrap_err();
    assert_eq!(error.problem(), Problem::NotADirectory);
    let error = tree_fixture.root.create_directories(p("a/file"), 0o755).unwrap_err();
    assert_eq!(error.problem(), Problem::NotADirectory);
}

#[test]
fn a_rename_moves_links_themselves() {
    let tree_fixture = TestTree::new();
    tree_fixture.link("/etc/passwd", "link");
    tree_fixture.root.rename(p("link"), p("moved"), Collision::Refuse).unwrap();
    assert_eq!(tree_fixture.root.read_link(p("moved")).unwrap(), p("/etc/passwd"));
}
