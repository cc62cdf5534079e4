//! git, cargo, npm and pip in forks: what the base built and installed is there, and nothing is made again. The short form
//! of `scripts/verify-forks`.

use std::path::Path;

use pretty_assertions::assert_eq;

use super::{downloaded, has, own_home, with_toolchains};
use crate::test_environment::{Done, TestEnvironment};

/// The number of forks that work at the same time.
const FORKS: usize = 3;

/// Makes a repository with a crate, a package of npm and one of Python, and builds and installs all of it.
const SET_UP: &str = "set -e
mkdir -p src js/left py
printf '%s\\n' '[package]' 'name = \"sample\"' 'version = \"0.1.0\"' 'edition = \"2021\"' '[dependencies]' \"fastrand = \\\"=$FASTRAND\\\"\" > Cargo.toml
echo 'pub fn roll() -> u8 { fastrand::u8(1..=6) }
#[test] fn it_rolls() { assert!((1..=6).contains(&roll())); }' > src/lib.rs
echo '{\"name\":\"left\",\"version\":\"1.2.3\"}' > js/left/package.json
echo '{\"name\":\"js\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"},\"dependencies\":{\"left\":\"file:left\"}}' > js/package.json
echo \"require('node:test')('finds what npm installed', () => require('left/package.json'));\" > js/a.test.js
printf '%s\\n' 'import sys, unittest' 'class A(unittest.TestCase):' '    def test_it(self): self.assertIn(\".venv\", sys.prefix)' > py/test_a.py
printf '%s\\n' target .venv node_modules __pycache__ > .gitignore
(cd js && npm install --offline --no-audit --no-fund)
/usr/bin/python3 -m venv .venv
git init -q && git config user.name Ann && git config user.email ann@example.org
cargo build --offline && git add -A && git commit -qm Begin";

/// Prints the same in the base and in each fork.
const SAME: [&str; 5] = [
    "git status --porcelain; git log --format=%s; git fsck --no-progress",
    "cargo build --offline 2>&1 | grep -c Compiling; cargo test --offline 2>&1 | grep -E 'test result|^test ' | sed 's/; finished in.*//'",
    "cd js && npm ls && npm install --offline --no-audit --no-fund | grep -o 'up to date' && npm test 2>&1 | grep -E '(pass|fail) [0-9]'",
    ".venv/bin/pip --version | cut -d' ' -f1,2; .venv/bin/pip list --disable-pip-version-check; .venv/bin/pip check",
    "cd py && ../.venv/bin/python -m unittest 2>&1 | grep -E '^(OK|Ran|FAILED)' | cut -d' ' -f1,2",
];

fn line(test_env: &TestEnvironment, workspace: &Path, line: &str) -> Done {
    let mut command = test_env.carrel();
    command.env("HOME", own_home());
    command.args(["exec", "--json", "--tier", test_env.tier, "--timeout", "100"]);
    command.arg("--workspace").arg(workspace);
    if let Some(version) = downloaded("fastrand") {
        command.args(["--env", &format!("FASTRAND={version}")]);
    }
    Done::of({
        command.args(["-c", line]);
        command
    })
}

/// Returns what the lines print, with the workspace's own name in place of a fork's.
fn all(test_env: &TestEnvironment, workspace: &Path) -> Vec<String> {
    let name = workspace.file_name().unwrap().to_str().unwrap();
    let own = SAME.iter().map(|same| {
        let done = line(test_env, workspace, same);
        assert_eq!(done.code, 0, "{test_env}: {name}: {same}: {done:?}");
        done.stdout().replace(name, "X")
    });
    own.collect()
}

#[test]
fn what_the_base_built_and_installed_is_there_in_forks_and_nothing_is_made_again() {
    let tools = ["cargo", "npm", "git"].iter().all(|program| has(program));
    if !tools || downloaded("fastrand").is_none() || !Path::new("/usr/bin/python3").exists() {
        return carrel_skip::unavailable("cargo with fastrand, npm, git and /usr/bin/python3");
    }
    for test_env in with_toolchains().into_iter().filter(|test_env| test_env.tier == "full") {
        let base = test_env.managed("500M");
        let done = line(&test_env, &base, SET_UP);
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
        // The tests are built, too.
        line(&test_env, &base, SAME[1]);
        let expected = all(&test_env, &base);
        assert!(expected[1].starts_with("0\n"), "{test_env}: {expected:?}");
        assert!(expected[1].contains("test it_rolls ... ok"), "{test_env}: {expected:?}");
        assert!(expected[2].contains("left@1.2.3"), "{test_env}: {expected:?}");
        assert!(expected[2].contains("pass 1"), "{test_env}: {expected:?}");
        assert!(expected[4].contains("OK"), "{test_env}: {expected:?}");

        let root = base.parent().unwrap();
        let mut command = test_env.carrel();
        command.args(["workspace", "fork", "X", "--json", "--count", &FORKS.to_string()]);
        let done = Done::of({
            command.args(["--tier", test_env.tier, "--root"]).arg(root);
            command
        });
        assert_eq!(done.code, 0, "{test_env}: {done:?}");
        std::thread::scope(|scope| {
            for number in 1..=FORKS {
                let fork = root.join(format!("X.fork-{number}"));
                let (test_env, expected) = (&test_env, &expected);
                scope.spawn(move || assert_eq!(all(test_env, &fork), *expected, "{test_env}"));
            }
        });
        let status = line(&test_env, &base, "git status --porcelain");
        assert_eq!(status.stdout(), "", "{test_env}: {status:?}");
    }
}
