use std::io::Read;

use carrel_fsroot::{FileKind, Problem};

use crate::{TestTree, p};

#[test]
fn a_directory_lists_and_opens_what_is_in_it() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("a/b/file", "text");
    tree_fixture.link("file", "a/b/link");
    let directory = tree_fixture.root.directory(p("a")).unwrap().directory(p("b")).unwrap();
    let (mut entries, all) = directory.entries(10).unwrap();
    entries.sort();
    let seen: Vec<_> = entries.iter().map(|e| (e.name.to_str().unwrap(), e.kind)).collect();
    assert_eq!((seen, all), (vec![("file", FileKind::File), ("link", FileKind::Link)], true));
    let (mut file, metadata) = directory.open_file(p("file")).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), metadata.size), ("text", 4));
    assert_eq!(directory.read_link(p("link")).unwrap(), p("file"));
    assert_eq!(directory.link_metadata(p("link")).unwrap().kind, FileKind::Link);
    // A second listing begins at the start again.
    assert_eq!(directory.entries(10).unwrap().0.len(), 2);
}

#[test]
fn a_listing_is_bounded_and_says_so() {
    let tree_fixture = TestTree::new();
    for n in 0..2000 {
        tree_fixture.file(&format!("many/{n}"), "");
    }
    let directory = tree_fixture.root.directory(p("many")).unwrap();
    let (entries, all) = directory.entries(1000).unwrap();
    assert_eq!((entries.len(), all), (1000, false));
    let (entries, all) = directory.entries(2000).unwrap();
    assert_eq!((entries.len(), all), (2000, true));
}

#[test]
fn a_step_follows_no_link_and_leaves_by_no_path() {
    let tree_fixture = TestTree::new();
    tree_fixture.file("in/file", "x");
    tree_fixture.link("in", "to_directory");
    tree_fixture.link("in/file", "to_file");
    tree_fixture.link("../outside", "out");
    tree_fixture.fifo("pipe");
    let top = tree_fixture.root.directory(p("")).unwrap();
    for name in ["to_directory", "out"] {
        assert_eq!(top.directory(p(name)).unwrap_err().problem(), Problem::Link, "{name}");
    }
    for path in ["to_file", "out/secret", "to_directory/file"] {
        assert_eq!(top.open_file(p(path)).unwrap_err().problem(), Problem::Link, "{path}");
    }
    for path in ["..", "../outside", "/etc", "in/../.."] {
        assert!(top.directory(p(path)).is_err(), "{path}");
        assert!(top.open_file(p(path)).is_err(), "{path}");
    }
    for path in ["..", ".", "", "in/file", "../outside/secret", "a\0"] {
        assert_eq!(top.link_metadata(p(path)).unwrap_err().problem(), Problem::NoName, "{path:?}");
        assert_eq!(top.read_link(p(path)).unwrap_err().problem(), Problem::NoName, "{path:?}");
    }
    let refused = top.open_file(p("pipe")).unwrap_err().problem();
    assert_eq!(refused, Problem::NotRegular(FileKind::Fifo));
}

#[test]
fn browsing_opens_nothing_sensitive_for_a_walk() {
    let tree_fixture = TestTree::new();
    tree_fixture.file(".ssh/id", "key");
    tree_fixture.file("ok/file", "x");
    tree_fixture.link(".ssh", "innocent");
    let browser = tree_fixture.root.browse();
    for path in [".ssh", "innocent"] {
        assert_eq!(browser.directory(p(path)).unwrap_err().problem(), Problem::Sensitive, "{path}");
    }
    for path in [".ssh/id", "innocent/id"] {
        assert_eq!(browser.open_file(p(path)).unwrap_err().problem(), Problem::Sensitive, "{path}");
    }
    assert!(browser.directory(p("ok")).is_ok() && browser.open_file(p("ok/file")).is_ok());
}

#[test]
fn a_directory_that_is_opened_for_looking_up_does_the_same_and_can_be_listed() {
    let tree = TestTree::new();
    tree.file("a/b/file", "x");
    tree.link("../../outside", "a/out");
    let top = tree.root.directory(p("")).unwrap();
    let a = top.look_up(p("a")).unwrap();
    assert_eq!(a.metadata().unwrap(), tree.root.metadata(p("a")).unwrap());
    let (mut entries, all) = a.entries(10).unwrap();
    entries.sort();
    let names: Vec<_> = entries.iter().map(|entry| entry.name.to_str().unwrap()).collect();
    assert_eq!((names, all), (vec!["b", "out"], true));
    assert_eq!(a.look_up(p("b")).unwrap().link_metadata(p("file")).unwrap().size, 1);
    assert_eq!(a.look_up(p("out")).unwrap_err().problem(), Problem::Link);
    assert_eq!(a.look_up(p("b/file")).unwrap_err().problem(), Problem::NotADirectory);
}
