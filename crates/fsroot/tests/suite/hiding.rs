use carrel_domain::{Code, Coded};
use carrel_fsroot::{Problem, WriteOptions};

use crate::{TestTree, p};

fn tree_fixture() -> TestTree {
    let tree_fixture = TestTree::new();
    for path in [".ssh/id", ".gitconfig", ".task_env_1", ".carrel/x", "src/main.rs", "src/.aws/key"]
    {
        tree_fixture.file(path, "contents");
    }
    tree_fixture.link(".ssh", "keys");
    tree_fixture.link(".gitconfig", "settings");
    tree_fixture
}

#[test]
fn sensitive_names_are_refused_under_every_spelling() {
    let tree_fixture = tree_fixture();
    let browser = tree_fixture.root.browse();
    let paths = [
        ".ssh",
        ".ssh/id",
        "./.ssh/id",
        "src/../.ssh/id",
        "keys",
        "keys/id",
        "settings",
        ".task_env_1",
        ".SSH/missing",
        "src/.aws/key",
        "keys/missing",
    ];
    for path in paths {
        for (name, result) in [
            ("read", browser.read(p(path), 100).map(drop)),
            ("list", browser.list(p(path)).map(drop)),
            ("metadata", browser.metadata(p(path)).map(drop)),
            ("write", browser.write(p(path), b"x", WriteOptions::default())),
        ] {
            let error = result.expect_err(&format!("{name} {path}"));
            // A link is judged by what it leads to; an operation that cannot even open that says why.
            let other = matches!(
                error.problem(),
                Problem::IsADirectory | Problem::NotADirectory | Problem::NotFound
            );
            assert!(
                error.problem() == Problem::Sensitive || (other && !path.starts_with('.')),
                "{name} {path}: {error}"
            );
        }
    }
    assert_eq!(browser.read(p("keys/id"), 9).unwrap_err().code(), Code::SensitivePath);
    assert_eq!(std::fs::read_to_string(tree_fixture.inside(".gitconfig")).unwrap(), "contents");
    assert!(
        !tree_fixture.inside(".ssh/missing").exists() && tree_fixture.inside(".ssh/id").exists()
    );
}

#[test]
fn listings_leave_sensitive_names_out() {
    let tree_fixture = tree_fixture();
    let browser = tree_fixture.root.browse();
    let names: Vec<_> = browser.list(p("")).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["keys", "settings", "src"]);
}
