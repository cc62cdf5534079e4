use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use carrel_fsroot::Problem;

use crate::{TestTree, p};

#[test]
fn a_tree_goes_without_touching_what_its_links_lead_to() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("tree/a/b/c", "");
    tree_fixture.file("kept", "");
    tree_fixture.link("../../outside", "tree/out");
    tree_fixture.link(tree_fixture.outside("secret"), "tree/a/absolute");
    tree_fixture.link("../kept", "tree/inward");
    tree_fixture.fifo("tree/fifo");
    tree_fixture.root.remove_tree(p("tree")).unwrap();
    assert!(!tree_fixture.inside("tree").exists());
    assert!(tree_fixture.inside("kept").exists() && tree_fixture.outside("secret").exists());
}

#[test]
fn a_link_is_removed_and_not_its_target() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("real/x", "");
    tree_fixture.link("real", "link");
    tree_fixture.root.remove_tree(p("link")).unwrap();
    assert!(tree_fixture.inside("real/x").exists() && !tree_fixture.inside("link").is_symlink());
}

#[test]
fn a_tree_deeper_than_any_path_goes_with_few_descriptors() {
    let tree_fixture = TestTree::new();
    tree_fixture.root.create_directory(p("deep"), 0o755).unwrap();
    let mut level = tree_fixture.root.open_root(p("deep")).unwrap();
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
    tree_fixture.root.remove_tree(p("deep")).unwrap();
    assert!(tree_fixture.root.list(p("")).unwrap().is_empty());
}

#[test]
fn write_protected_directories_go_like_all_others() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("tree/module/source", "");
    for path in ["tree/module", "tree"] {
        std::fs::set_permissions(tree_fixture.inside(path), Permissions::from_mode(0o555)).unwrap();
    }
    std::fs::create_dir(tree_fixture.inside("shut")).unwrap();
    tree_fixture.file("shut/inner/x", "");
    std::fs::set_permissions(tree_fixture.inside("shut/inner"), Permissions::from_mode(0o000))
        .unwrap();
    tree_fixture.root.remove_tree(p("tree")).unwrap();
    tree_fixture.root.remove_tree(p("shut")).unwrap();
    assert!(tree_fixture.root.list(p("")).unwrap().is_empty());
}

#[test]
fn a_directory_larger_than_one_batch_goes() {
    let tree_fixture = TestTree::new();
    std::fs::create_dir(tree_fixture.inside("many")).unwrap();
    for n in 0..5000 {
        std::fs::File::create(tree_fixture.inside(&format!("many/file-{n}"))).unwrap();
    }
    tree_fixture.root.remove_tree(p("many")).unwrap();
    assert!(!tree_fixture.inside("many").exists());
}

#[test]
fn what_cannot_be_removed_is_left_and_the_rest_goes() {
    carrel_skip::needs!(Root);
    let tree_fixture = TestTree::new();
    for path in ["tree/a/x", "tree/b/mounted/y", "tree/b/z", "tree/c"] {
        tree_fixture.file(path, "");
    }
    let mounted = tree_fixture.inside("tree/b/mounted");
    let run = |program: &str, arguments: &[&str]| {
        std::process::Command::new(program).args(arguments).status().unwrap().success()
    };
    assert!(run("mount", &["-t", "tmpfs", "none", mounted.to_str().unwrap()]));
    std::fs::write(mounted.join("precious"), "").unwrap();
    let error = tree_fixture.root.remove_tree(p("tree")).unwrap_err();
    let kept = mounted.join("precious").exists();
    assert!(run("umount", &[mounted.to_str().unwrap()]));
    assert!(kept, "a file of another file system was removed");
    assert!(matches!(error.problem(), Problem::CrossesMount | Problem::Io), "{error:?}");
    let left: Vec<_> =
        tree_fixture.root.list(p("tree")).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(left, ["b"]);
    tree_fixture.root.remove_tree(p("tree")).unwrap();
}

#[test]
fn a_missing_tree_is_an_error() {
    let tree_fixture = TestTree::new();
    assert_eq!(tree_fixture.root.remove_tree(p("none")).unwrap_err().problem(), Problem::NotFound);
}
