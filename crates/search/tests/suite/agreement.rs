use std::process::Command;

use carrel_search::Scope;
use pretty_assertions::assert_eq;

use crate::{TestTree, shown_in, text_of};

const ROUNDS: u64 = 150;
const NAMES: [&str; 9] = ["a", "b", "c.rs", "d.log", "ab", "x1", "build", ".dot", "a.rs"];
const RULES: [&str; 20] = [
    "a", "/a", "a/", "*.rs", "!a.rs", "build/", "b/**", "**/x1", "a/**/b", "!ab", "x[0-9]",
    "*.log", "!d.log", "/b/c.rs", "!.dot", "?b", "a*", "!a/", "# a", "/*/build",
];

/// Makes a tree of random names with random rules in random directories.
fn random_world(seed: u64) -> TestTree {
    let mut random = fastrand::Rng::with_seed(seed);
    let tree_fixture = TestTree::new();
    for _ in 0..40 {
        let depth = random.usize(1..5);
        let names: Vec<_> = (0..depth).map(|_| NAMES[random.usize(..NAMES.len())]).collect();
        let path = tree_fixture.inside(names.join("/"));
        // A name may be taken by a directory already, or a directory by a file.
        if std::fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.exists() {
            std::fs::write(&path, "needle\n").unwrap();
        }
    }
    for _ in 0..random.usize(1..6) {
        let depth = random.usize(0..3);
        let names: Vec<_> = (0..depth).map(|_| NAMES[random.usize(..NAMES.len())]).collect();
        let directory = tree_fixture.inside(names.join("/"));
        let file = [".gitignore", ".gitignore", ".ignore", ".rgignore"][random.usize(..4)];
        let rules: Vec<_> =
            (0..random.usize(1..5)).map(|_| RULES[random.usize(..RULES.len())]).collect();
        if directory.is_dir() {
            std::fs::write(directory.join(file), rules.join("\n")).unwrap();
        }
    }
    tree_fixture
}

fn rg(tree_fixture: &TestTree, arguments: &[&str]) -> String {
    let fixed = ["--no-require-git", "--no-ignore-global", "--no-ignore-parent", "--sort=path"];
    let output = Command::new("rg")
        .args(fixed)
        .args(arguments)
        .current_dir(tree_fixture.inside(""))
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
#[ignore = "needs rg 14 or later; for a look at how both see random trees"]
fn random_trees_look_the_same_to_rg() {
    for seed in 0..ROUNDS {
        let tree_fixture = random_world(seed);
        let files = rg(&tree_fixture, &["--files"]);
        assert_eq!(shown_in(&tree_fixture.scope()).join("\n"), files.trim_end(), "seed {seed}");
        let hidden = rg(&tree_fixture, &["--files", "--hidden"]);
        let scope = Scope { hidden: true, ..tree_fixture.scope() };
        assert_eq!(shown_in(&scope).join("\n"), hidden.trim_end(), "seed {seed}");
        let all = rg(&tree_fixture, &["--files", "--hidden", "--no-ignore"]);
        let scope = Scope { hidden: true, ignored: true, ..tree_fixture.scope() };
        assert_eq!(shown_in(&scope).join("\n"), all.trim_end(), "seed {seed}");
        let lines = rg(&tree_fixture, &["-n", "-H", "needle"]);
        assert_eq!(text_of(&tree_fixture.scope(), "needle"), lines);
    }
}
