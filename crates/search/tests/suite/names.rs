use std::time::{Duration, SystemTime};

use carrel_fsroot::Problem;
use carrel_search::{Cancel, Error, GlobRequest, Order, TruncationReason, glob};
use pretty_assertions::assert_eq;

use crate::{TestTree, names_in};

fn age(tree_fixture: &TestTree, path: &str, seconds: u64) {
    let file = std::fs::File::options().write(true).open(tree_fixture.inside(path)).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - seconds)).unwrap();
}

#[test]
fn globs_find_names_and_paths() {
    let tree_fixture = TestTree::with(&[
        ("main.go", ""),
        ("sub/inner.go", ""),
        ("sub/deep/x.go", ""),
        ("sub/notes.md", ""),
        ("other/sub/y.go", ""),
    ]);
    let all = ["main.go", "other/sub/y.go", "sub/deep/x.go", "sub/inner.go"];
    assert_eq!(names_in(&tree_fixture.scope(), "**/*.go"), all);
    assert_eq!(names_in(&tree_fixture.scope(), "*.go"), all);
    assert_eq!(names_in(&tree_fixture.scope(), "./**/*.go"), all);
    assert_eq!(names_in(&tree_fixture.scope(), "sub/*.go"), ["sub/inner.go"]);
    assert_eq!(names_in(&tree_fixture.scope(), "*.{md,rs}"), ["sub/notes.md"]);
    // The prefix stays, and a path may be relative to the scope or to the root.
    assert_eq!(names_in(&tree_fixture.at("sub"), "*.go"), ["sub/deep/x.go", "sub/inner.go"]);
    assert_eq!(names_in(&tree_fixture.at("sub"), "deep/*.go"), ["sub/deep/x.go"]);
    assert_eq!(names_in(&tree_fixture.at("sub"), "sub/deep/*.go"), ["sub/deep/x.go"]);
    assert_eq!(names_in(&tree_fixture.at("sub"), "/deep/*.go"), Vec::<String>::new());
    assert_eq!(names_in(&tree_fixture.scope(), "*.none"), Vec::<String>::new());
}

#[test]
fn the_last_changed_comes_first_and_paths_break_ties() {
    let tree_fixture = TestTree::with(&[("old", ""), ("new", ""), ("b/same", ""), ("a/same", "")]);
    age(&tree_fixture, "old", 500);
    age(&tree_fixture, "new", 1);
    age(&tree_fixture, "b/same", 100);
    age(&tree_fixture, "a/same", 100);
    let report = glob(&tree_fixture.scope(), &GlobRequest::new("*"), &Cancel::new()).unwrap();
    assert_eq!(report.text(), "new\na/same\nb/same\nold\n");
    assert_eq!((report.total, report.truncation), (4, None));
}

#[test]
fn a_limit_keeps_the_first_and_counts_all() {
    let tree_fixture = TestTree::new();
    for n in 0_u32..50 {
        let path = format!("d{}/f{n}", n % 7);
        tree_fixture.file(&path, "");
        age(&tree_fixture, &path, n.into());
    }
    let request = GlobRequest { limit: 2, ..GlobRequest::new("f*") };
    let report = glob(&tree_fixture.scope(), &request, &Cancel::new()).unwrap();
    assert_eq!(report.text(), "d0/f0\nd1/f1\n");
    assert_eq!((report.total, report.truncation), (50, Some(TruncationReason::Limit)));
    let request = GlobRequest { order: Order::Path, ..request };
    let report = glob(&tree_fixture.scope(), &request, &Cancel::new()).unwrap();
    assert_eq!(report.text(), "d0/f0\nd0/f14\n");
}

#[test]
fn links_are_found_and_never_followed() {
    let tree_fixture = TestTree::with(&[("sub/a.txt", "")]);
    tree_fixture.link("sub", "to_directory");
    tree_fixture.link("sub/a.txt", "link.txt");
    tree_fixture.link("../outside", "out");
    assert_eq!(
        names_in(&tree_fixture.scope(), "*"),
        ["link.txt", "out", "sub/a.txt", "to_directory"]
    );
    // What is named is followed, and shown where it really is.
    assert_eq!(names_in(&tree_fixture.at("to_directory"), "*"), ["sub/a.txt"]);
}

#[test]
fn wrong_scopes_and_globs_are_refused() {
    let tree_fixture = TestTree::with(&[("file", "")]);
    tree_fixture.link("../outside", "out");
    let refused = |path: &str, pattern: &str| {
        glob(&tree_fixture.at(path), &GlobRequest::new(pattern), &Cancel::new()).unwrap_err()
    };
    for (path, expected) in [("missing", Problem::NotFound), ("file", Problem::NotADirectory)] {
        match refused(path, "*") {
            Error::Path(error) => assert_eq!(error.problem(), expected, "{path}"),
            other => panic!("{path}: {other}"),
        }
    }
    for path in ["..", "../outside", "/etc", "out"] {
        let Error::Path(error) = refused(path, "*") else { panic!("{path} is not refused") };
        assert!(matches!(error.problem(), Problem::Escapes(_)), "{path}: {error}");
    }
    let text = refused("", "src/[a-").to_string();
    assert!(text.starts_with("invalid glob `src/[a-` at character 5"), "{text}");
}
