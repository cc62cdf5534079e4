use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use carrel_fsroot::Problem;

use crate::{World, p};

#[test]
fn a_tree_goes_without_touching_what_its_links_lead_to() {
    let world = World::new();
    world.file("tree/a/b/c", "");
    world.file("kept", "");
    world.link("../../outside", "tree/out");
    world.link(world.outside("secret"), "tree/a/absolute");
    world.link("../kept", "tree/inward");
    world.fifo("tree/fifo");
    world.root.remove_tree(p("tree")).unwrap();
    assert!(!world.inside("tree").exists());
    assert!(world.inside("kept").exists() && world.outside("secret").exists());
}

#[test]
fn a_link_is_removed_and_not_its_target() {
    let world = World::new();
    world.file("real/x", "");
    world.link("real", "link");
    world.root.remove_tree(p("link")).unwrap();
    assert!(world.inside("real/x").exists() && !world.inside("link").is_symlink());
}

#[test]
fn a_tree_deeper_than_any_path_goes_with_few_descriptors() {
    let world = World::new();
    world.root.create_directory(p("deep"), 0o755).unwrap();
    let mut level = world.root.open_root(p("deep")).unwrap();
    for _ in 0..3000 {
        level.create_directory(p("d"), 0o755).unwrap();
        level
            .write(
                p("f"),
                b"x",
                carrel_fsroot::WriteOptions {
                    durability: carrel_fsroot::Durability::Buffered,
                    ..Default::default()
                },
            )
            .unwrap();
        level = level.open_root(p("d")).unwrap();
    }
    world.root.remove_tree(p("deep")).unwrap();
    assert!(world.root.list(p("")).unwrap().is_empty());
}

#[test]
fn write_protected_directories_go_like_all_others() {
    let world = World::new();
    world.file("tree/module/source", "");
    for path in ["tree/module", "tree"] {
        std::fs::set_permissions(world.inside(path), Permissions::from_mode(0o555)).unwrap();
    }
    std::fs::create_dir(world.inside("shut")).unwrap();
    world.file("shut/inner/x", "");
    std::fs::set_permissions(world.inside("shut/inner"), Permissions::from_mode(0o000)).unwrap();
    world.root.remove_tree(p("tree")).unwrap();
    world.root.remove_tree(p("shut")).unwrap();
    assert!(world.root.list(p("")).unwrap().is_empty());
}

#[test]
fn a_directory_larger_than_one_batch_goes() {
    let world = World::new();
    std::fs::create_dir(world.inside("many")).unwrap();
    for n in 0..5000 {
        std::fs::File::create(world.inside(&format!("many/file-{n}"))).unwrap();
    }
    world.root.remove_tree(p("many")).unwrap();
    assert!(!world.inside("many").exists());
}

#[test]
fn what_cannot_be_removed_is_left_and_the_rest_goes() {
    carrel_skip::needs!(Root);
    let world = World::new();
    for path in ["tree/a/x", "tree/b/mounted/y", "tree/b/z", "tree/c"] {
        world.file(path, "");
    }
    let mounted = world.inside("tree/b/mounted");
    let run = |program: &str, arguments: &[&str]| {
        std::process::Command::new(program).args(arguments).status().unwrap().success()
    };
    assert!(run("mount", &["-t", "tmpfs", "none", mounted.to_str().unwrap()]));
    std::fs::write(mounted.join("precious"), "").unwrap();
    let error = world.root.remove_tree(p("tree")).unwrap_err();
    let kept = mounted.join("precious").exists();
    assert!(run("umount", &[mounted.to_str().unwrap()]));
    assert!(kept, "a file of another file system was removed");
    assert!(matches!(error.problem(), Problem::CrossesMount | Problem::Io), "{error:?}");
    let left: Vec<_> = world.root.list(p("tree")).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(left, ["b"]);
    world.root.remove_tree(p("tree")).unwrap();
}

#[test]
fn a_missing_tree_is_an_error() {
    let world = World::new();
    assert_eq!(world.root.remove_tree(p("none")).unwrap_err().problem(), Problem::NotFound);
}
