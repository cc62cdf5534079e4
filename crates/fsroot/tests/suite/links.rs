//! Absolute links that stay inside work in every operation as they do for commands.

use std::path::Path;

use carrel_fsroot::{Collision, Error, Escape, FileKind, Problem, Root, WalkControl, WriteOptions};

use crate::{TestTree, p};

/// A tree whose links are absolute and stay inside.
fn linked_tree() -> TestTree {
    let tree_fixture = TestTree::new();
    tree_fixture.file("directory/file", "contents");
    tree_fixture.file("directory/deep/er/file", "deeper");
    tree_fixture.link(tree_fixture.inside("directory"), "to-directory");
    tree_fixture.link(tree_fixture.inside("directory/file"), "to-file");
    tree_fixture.link(tree_fixture.inside(""), "to-top");
    tree_fixture.link("to-directory/deep", "relative-to-absolute");
    tree_fixture.link(tree_fixture.inside("relative-to-absolute/er"), "chain");
    tree_fixture
}

fn problem<T>(result: Result<T, Error>) -> Problem {
    result.map(drop).expect_err("it fails").problem()
}

fn text(root: &Root, path: &str) -> Result<String, Problem> {
    let bytes = root.read(p(path), 100).map_err(|error| error.problem())?;
    Ok(String::from_utf8(bytes).unwrap())
}

#[test]
fn absolute_links_that_stay_inside_are_followed() {
    let tree_fixture = linked_tree();
    let root = &tree_fixture.root;
    for (path, contents) in [
        ("to-directory/file", "contents"),
        ("to-file", "contents"),
        ("to-top/to-directory/file", "contents"),
        ("to-top/to-top/directory/../to-file", "contents"),
        ("to-directory/../to-file", "contents"),
        ("relative-to-absolute/er/file", "deeper"),
        ("chain/file", "deeper"),
        ("chain/../../file", "contents"),
        ("chain/../../../to-file", "contents"),
    ] {
        assert_eq!(text(root, path), Ok(contents.to_owned()), "{path}");
        assert_eq!(root.browse().read(p(path), 100).unwrap(), contents.as_bytes(), "{path}");
        let located = root.locate(p(path)).unwrap();
        assert_eq!(text(root, located.to_str().unwrap()), Ok(contents.to_owned()), "{path}");
    }
    let names = |path: &str| -> Vec<_> {
        root.list(p(path)).unwrap().into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(names("to-directory"), ["deep", "file"]);
    assert_eq!(names("to-directory/"), ["deep", "file"]);
    assert_eq!(root.metadata(p("to-top")).unwrap().identity, root.identity().unwrap());
    assert_eq!(
        root.open_root(p("chain")).unwrap().path(),
        tree_fixture.inside("directory/deep/er")
    );
    assert_eq!(root.link_metadata(p("to-top/to-file")).unwrap().kind, FileKind::Link);
    let mut visited = Vec::new();
    let visit = |entry: &carrel_fsroot::WalkEntry<'_>| {
        visited.push(entry.path.to_owned());
        Ok(WalkControl::Continue)
    };
    root.walk(p("relative-to-absolute"), visit, Err).unwrap();
    assert_eq!(visited, [p("er"), p("er/file")]);
}

#[test]
fn a_path_through_an_absolute_link_fails_as_it_does_without_one() {
    let tree_fixture = linked_tree();
    tree_fixture.link(tree_fixture.inside("nothing"), "dangling");
    tree_fixture.link(tree_fixture.inside("self"), "self");
    let root = &tree_fixture.root;
    for (path, expected) in [
        ("to-directory/missing", Problem::NotFound),
        ("to-directory/missing/below", Problem::NotFound),
        ("to-file/below", Problem::NotADirectory),
        ("to-file/", Problem::NotADirectory),
        ("to-directory", Problem::IsADirectory),
        ("self", Problem::LinkLoop),
        ("dangling", Problem::Escapes(Escape::DanglingLink)),
        ("dangling/below", Problem::Escapes(Escape::DanglingLink)),
        ("to-directory/../../outside/secret", Problem::Escapes(Escape::Climbs)),
    ] {
        assert_eq!(problem(root.read(p(path), 100)), expected, "{path}");
    }
    assert_eq!(problem(root.write(p("dangling"), b"x", WriteOptions::default())), {
        Problem::Escapes(Escape::DanglingLink)
    });
}

#[test]
fn forty_links_are_followed_and_no_more() {
    let tree_fixture = linked_tree();
    for number in 1..=40 {
        let before = if number == 1 { "directory".to_owned() } else { format!("n{}", number - 1) };
        tree_fixture.link(tree_fixture.inside(&before), &format!("n{number}"));
    }
    assert_eq!(text(&tree_fixture.root, "n40/file"), Ok("contents".to_owned()));
    assert_eq!(text(&tree_fixture.root, "to-top/n40/file"), Err(Problem::LinkLoop));
}

#[test]
fn a_write_through_an_absolute_link_replaces_its_target() {
    let tree_fixture = linked_tree();
    let root = &tree_fixture.root;
    root.write(p("to-file"), b"new", WriteOptions::default()).unwrap();
    root.write(p("chain/made"), b"made", WriteOptions::default()).unwrap();
    root.create_directories(p("to-directory/a/b"), 0o755).unwrap();
    assert_eq!(root.link_metadata(p("to-file")).unwrap().kind, FileKind::Link);
    assert_eq!(text(root, "directory/file"), Ok("new".to_owned()));
    assert_eq!(text(root, "directory/deep/er/made"), Ok("made".to_owned()));
    assert_eq!(root.metadata(p("directory/a/b")).unwrap().kind, FileKind::Directory);
    let refused = root.write(p("to-directory"), b"x", WriteOptions::default());
    assert_eq!(problem(refused), Problem::IsADirectory);
    let refused = root.write(p("to-top"), b"x", WriteOptions::default());
    assert_eq!(problem(refused), Problem::IsADirectory);
}

#[test]
fn removing_and_renaming_act_on_the_link_itself() {
    let tree_fixture = linked_tree();
    let root = &tree_fixture.root;
    root.rename(p("to-file"), p("to-directory/moved"), Collision::Refuse).unwrap();
    assert_eq!(root.link_metadata(p("directory/moved")).unwrap().kind, FileKind::Link);
    root.remove_file(p("to-directory/moved")).unwrap();
    root.remove_tree(p("to-directory")).unwrap();
    assert_eq!(problem(root.link_metadata(p("to-directory"))), Problem::NotFound);
    assert_eq!(text(root, "directory/file"), Ok("contents".to_owned()));
}

#[test]
fn an_absolute_link_belongs_to_the_root_that_it_names() {
    let tree_fixture = linked_tree();
    tree_fixture.link(tree_fixture.inside("directory/file"), "directory/own");
    tree_fixture.link(tree_fixture.inside("to-file"), "directory/above");
    let below = tree_fixture.root.open_root(p("directory")).unwrap();
    assert_eq!(text(&below, "own"), Ok("contents".to_owned()));
    assert_eq!(text(&below, "above"), Err(Problem::Escapes(Escape::AbsoluteLink)));
    // A neighbour whose name begins like the root's is outside.
    let neighbour =
        format!("{}2/file", tree_fixture.inside("").display().to_string().trim_end_matches('/'));
    tree_fixture.link(Path::new(&neighbour), "neighbour");
    let refused = text(&tree_fixture.root, "neighbour");
    assert_eq!(refused, Err(Problem::Escapes(Escape::AbsoluteLink)));
}

#[test]
fn a_sensitive_name_behind_an_absolute_link_stays_hidden() {
    let tree_fixture = linked_tree();
    tree_fixture.file(".ssh/id", "key");
    tree_fixture.link(tree_fixture.inside(".ssh"), "keys");
    let browser = tree_fixture.root.browse();
    assert_eq!(problem(browser.read(p("keys/id"), 100)), Problem::Sensitive);
    assert_eq!(problem(browser.write(p("keys/new"), b"x", WriteOptions::default())), {
        Problem::Sensitive
    });
}

#[test]
fn the_place_outside_that_a_path_leads_to_is_named_without_looking() {
    let tree_fixture = linked_tree();
    tree_fixture.link("/nonexistent/place", "absolute-out");
    tree_fixture.link("../outside", "directory/out");
    tree_fixture.link("../../outside", "directory/outer");
    let outside = |path: &str| tree_fixture.root.outside_target(p(path)).ok().flatten();
    assert_eq!(outside("absolute-out/x"), Some("/nonexistent/place/x".into()));
    assert_eq!(outside("to-directory/outer/secret"), Some(tree_fixture.outside("secret")));
    for inside in ["to-directory/file", "to-directory/out", "missing", "to-file"] {
        assert_eq!(outside(inside), None, "{inside}");
    }
}
