use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use carrel_fsroot::{Collision, Durability, Problem, WriteOptions};

use crate::{TestTree, p};

fn options(collision: Collision) -> WriteOptions {
    WriteOptions { collision, durability: Durability::Buffered, new_mode: Some(0o640) }
}

#[test]
fn a_link_under_the_name_is_replaced_and_not_followed() {
    let tree = TestTree::new();
    tree.file("target", "target");
    for (name, target) in [("in", "target"), ("out", "../outside/secret"), ("none", "nothing")] {
        tree.link(target, name);
        let mut file = tree.root.begin_entry_write(p(name), options(Collision::Replace)).unwrap();
        file.append(b"new").unwrap();
        file.commit().unwrap();
        let metadata = tree.inside(name).symlink_metadata().unwrap();
        assert!(metadata.is_file(), "{name}");
        assert_eq!(std::fs::read_to_string(tree.inside(name)).unwrap(), "new");
    }
    assert_eq!(std::fs::read_to_string(tree.inside("target")).unwrap(), "target");
    assert_eq!(std::fs::read_to_string(tree.outside("secret")).unwrap(), "outside");
    assert!(!tree.inside("nothing").exists());
}

#[test]
fn an_entry_write_refuses_directories_paths_and_collisions() {
    let tree = TestTree::new();
    tree.file("directory/file", "x");
    tree.link("nothing", "link");
    let problem = |path: &str, collision| {
        tree.root.begin_entry_write(p(path), options(collision)).unwrap_err().problem()
    };
    assert_eq!(problem("directory", Collision::Replace), Problem::IsADirectory);
    assert_eq!(problem("link", Collision::Refuse), Problem::Exists);
    for path in ["directory/file", "..", ".", "", "/etc", "directory/"] {
        assert_eq!(problem(path, Collision::Replace), Problem::NoName, "{path}");
    }
}

#[test]
fn a_mode_is_set_by_name_and_never_through_a_link_or_with_set_user_id() {
    let tree = TestTree::new();
    tree.file("file", "x");
    tree.link("file", "link");
    tree.link("../outside/secret", "out");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    let before = mode(&tree.outside("secret"));
    tree.root.set_entry_mode(p("file"), 0o4751).unwrap();
    assert_eq!(mode(&tree.inside("file")), 0o751);
    for link in ["link", "out"] {
        assert_eq!(tree.root.set_entry_mode(p(link), 0o777).unwrap_err().problem(), Problem::Link);
        assert_eq!(tree.root.open_entry_file(p(link)).unwrap_err().problem(), Problem::Link);
    }
    assert_eq!((mode(&tree.inside("file")), mode(&tree.outside("secret"))), (0o751, before));
}

#[test]
fn the_time_of_the_last_change_can_be_set_before_the_file_appears() {
    let tree = TestTree::new();
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let mut file = tree.root.begin_entry_write(p("f"), options(Collision::Refuse)).unwrap();
    file.append(b"x").unwrap();
    file.set_modified(time).unwrap();
    file.commit().unwrap();
    let metadata = tree.inside("f").metadata().unwrap();
    assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_000_000_000, 123_456_789));
}
