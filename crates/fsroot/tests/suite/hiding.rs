use carrel_domain::{Code, Coded};
use carrel_fsroot::{Problem, WriteOptions};

use crate::{World, p};

fn world() -> World {
    let world = World::new();
    for path in [".ssh/id", ".gitconfig", ".task_env_1", ".carrel/x", "src/main.rs", "src/.aws/key"]
    {
        world.file(path, "contents");
    }
    world.link(".ssh", "keys");
    world.link(".gitconfig", "settings");
    world
}

#[test]
fn sensitive_names_are_refused_under_every_spelling() {
    let world = world();
    let browser = world.root.browse();
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
    assert_eq!(std::fs::read_to_string(world.inside(".gitconfig")).unwrap(), "contents");
    assert!(!world.inside(".ssh/missing").exists() && world.inside(".ssh/id").exists());
}

#[test]
fn listings_leave_sensitive_names_out() {
    let world = world();
    let browser = world.root.browse();
    let names: Vec<_> = browser.list(p("")).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["keys", "settings", "src"]);
}
