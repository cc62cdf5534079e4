//! Extended attributes, times, names and contents of single entries.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, UNIX_EPOCH};

use carrel_fsroot::{Attribute, CopyMethod, Problem, Root};

fn attribute(name: &str, value: &[u8]) -> Attribute {
    Attribute { name: name.into(), value: value.to_vec() }
}

#[test]
fn attributes_are_set_listed_and_removed_on_the_entry_itself() {
    let world = tempfile::tempdir().unwrap();
    std::fs::write(world.path().join("file"), "").unwrap();
    symlink("file", world.path().join("link")).unwrap();
    let root = Root::open(world.path()).unwrap();
    let (one, long) = (attribute("user.one", b"1"), attribute("user.long", &[7; 2000]));
    for name in ["file", "."] {
        let name = Path::new(name);
        root.set_entry_attribute(name, &one).unwrap();
        root.set_entry_attribute(name, &long).unwrap();
        assert_eq!(root.entry_attributes(name).unwrap(), [long.clone(), one.clone()]);
        root.remove_entry_attribute(name, &long.name).unwrap();
        root.remove_entry_attribute(name, &long.name).unwrap();
        assert_eq!(root.entry_attribute_names(name).unwrap(), ["user.one"]);
    }
    // A link is not followed.
    let link = Path::new("link");
    assert_eq!(root.entry_attributes(link).unwrap(), []);
    assert_eq!(root.set_entry_attribute(link, &one).unwrap_err().problem(), Problem::Link);
    let foreign = attribute("security.capability", b"1");
    let refused = root.set_entry_attribute(Path::new("file"), &foreign).unwrap_err();
    assert_eq!(refused.problem(), Problem::PermissionDenied);
    for name in ["a/b", "..", ""] {
        let refused = root.entry_attributes(Path::new(name)).unwrap_err();
        assert_eq!(refused.problem(), Problem::NoName, "{name}");
    }
}

#[test]
fn times_and_names_are_those_of_a_link_itself() {
    let world = tempfile::tempdir().unwrap();
    std::fs::create_dir(world.path().join("d")).unwrap();
    std::fs::write(world.path().join("file"), "").unwrap();
    symlink("file", world.path().join("link")).unwrap();
    let root = Root::open(world.path()).unwrap();
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 123);
    root.set_entry_modified(Path::new("link"), time).unwrap();
    let modified = |name: &str| root.link_metadata(Path::new(name)).unwrap().modified;
    assert_eq!(modified("link"), time);
    assert_ne!(modified("file"), time);
    let below = root.enter(Path::new("d")).unwrap();
    root.hard_link_into(Path::new("file"), &below, Path::new("second")).unwrap();
    let links = |path: &str| world.path().join(path).metadata().unwrap().nlink();
    assert_eq!((links("file"), links("d/second")), (2, 2));
    let refused = root.hard_link_into(Path::new("file"), &below, Path::new("second"));
    assert_eq!(refused.unwrap_err().problem(), Problem::Exists);
    let refused = below.create_entry_file(Path::new("second"), 0o600).unwrap_err();
    assert_eq!(refused.problem(), Problem::Exists);
}

#[test]
fn every_means_of_copying_gives_the_same_contents_and_holes() {
    let world = tempfile::tempdir().unwrap();
    let root = Root::open(world.path()).unwrap();
    let source = std::fs::File::create_new(world.path().join("source")).unwrap();
    for (offset, length) in [(0, 3), (1 << 20, 300_000), (20 << 20, 1)] {
        use std::os::unix::fs::FileExt;
        source.write_all_at(&vec![9; length], offset).unwrap();
    }
    source.set_len(30 << 20).unwrap();
    let source = root.open_entry_file(Path::new("source")).unwrap();
    let expected = std::fs::read(world.path().join("source")).unwrap();
    let going_on = AtomicBool::new(false);
    for method in [CopyMethod::Clone, CopyMethod::Kernel, CopyMethod::ReadWrite] {
        let name = Path::new(method.as_str());
        let target = root.create_entry_file(name, 0o600).unwrap();
        assert!({ method }.copy(&source, &target, &going_on).unwrap());
        assert!(std::fs::read(world.path().join(name)).unwrap() == expected, "{method:?}");
        let allocated = root.link_metadata(name).unwrap().allocated;
        assert!(allocated < 2 << 20, "{method:?}: {allocated}");
    }
    let target = root.create_entry_file(Path::new("cancelled"), 0o600).unwrap();
    let cancelled = AtomicBool::new(true);
    assert!(!{ CopyMethod::ReadWrite }.copy(&source, &target, &cancelled).unwrap());
}
