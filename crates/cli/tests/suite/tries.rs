//! Tries: candidates in forks, verified, ranked, promoted; also when the program is killed in between.

/// The ends that tries have.
mod ends;
/// Kills and interrupts.
mod killed;

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Done, TestEnvironment};

/// The tests of the project, of which the wrong operator passes one.
const TESTS: &str = "import unittest, calc\n\
    class T(unittest.TestCase):\n\
    \x20   def test_zero(self): self.assertEqual(calc.add(0, 0), 0)\n\
    \x20   def test_small(self): self.assertEqual(calc.add(2, 3), 5)\n\
    \x20   def test_large(self): self.assertEqual(calc.add(20, 30), 50)\n";

const VERIFY: &str = "python3 -m unittest";

/// The candidates of most tests: one fails, one is right and too large, one is right. Each says in a log of its own how
/// often it was begun.
const RUNS: [&str; 3] = [
    "echo begun >> log-1; sed -i 's/a - b/a * b/' calc.py",
    "echo begun >> log-2; sed -i 's/a - b/a + b/' calc.py; seq 5000 > numbers.txt",
    "echo begun >> log-3; sed -i 's/a - b/a + b/' calc.py",
];

/// A root with a workspace `X` that has a project whose tests fail.
struct Project {
    test_env: TestEnvironment,
    path: PathBuf,
}

impl Project {
    fn each(check: impl Fn(&Self) + Sync) {
        Self::each_in("full", check);
    }

    fn each_in(tier: &str, check: impl Fn(&Self) + Sync) {
        let all: Vec<_> =
            TestEnvironment::all().into_iter().filter(|one| one.tier == tier).collect();
        std::thread::scope(|scope| {
            for test_env in all {
                scope.spawn(|| check(&Self::new(test_env)));
            }
        });
    }

    fn new(test_env: TestEnvironment) -> Self {
        let path = test_env.managed("500M");
        let project = Self { test_env, path };
        let files = format!(
            "printf 'def add(a, b):\\n    return a - b\\n' > calc.py; cat > test_calc.py <<'E'\n{TESTS}E\n"
        );
        project.line("X", &files);
        project
    }

    fn root(&self) -> &Path {
        self.path.parent().unwrap()
    }

    /// Runs a line for the shell in a workspace, which has to succeed; returns its output.
    fn line(&self, workspace: &str, line: &str) -> String {
        let done = self.test_env.line_in(&self.root().join(workspace), line);
        assert_eq!(done.code, 0, "{}: {line}: {done:?}", self.test_env);
        done.stdout().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.test_env.carrel();
        command.args(["try", "--json"]).args(arguments).arg("--root").arg(self.root());
        if !["ls", "show"].contains(&arguments[0]) {
            command.args(["--tier", self.test_env.tier]);
        }
        command
    }

    fn carrel_try(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments))
    }

    /// Begins the usual try, with more arguments.
    fn usual<'a>(more: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = vec!["X", "--verify", VERIFY, "--max-lines", "100"];
        arguments.extend(RUNS.iter().flat_map(|run| ["--run", *run]));
        arguments.extend(more);
        arguments
    }

    fn workspace(&self, arguments: &[&str]) -> Done {
        let mut command = self.test_env.carrel();
        command.args(["workspace", "--json"]).args(arguments).arg("--root").arg(self.root());
        if ["fork", "diff", "promote"].contains(&arguments[0]) {
            command.args(["--tier", self.test_env.tier]);
        }
        Done::of(command)
    }

    fn tool(&self, workspace: &str, name: &str, arguments: &Value) -> Done {
        let mut command = self.test_env.carrel();
        command.args(["tool", "--json", name]).arg(arguments.to_string());
        command.arg("--workspace").arg(self.root().join(workspace));
        Done::of(command)
    }

    fn keys(&self) -> Vec<String> {
        let listed = self.workspace(&["ls"]).json;
        let workspaces = listed["workspaces"].as_array().unwrap();
        workspaces.iter().map(|one| one["key"].as_str().unwrap().to_owned()).collect()
    }

    /// The ids of all tries.
    fn tries(&self) -> Vec<String> {
        let listed = self.carrel_try(&["ls"]);
        assert_eq!(listed.code, 0, "{}: {listed:?}", self.test_env);
        let tries = listed.json["tries"].as_array().unwrap().iter();
        tries.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Begins a try that is killed at a point, and returns its id.
    fn killed_at(&self, point: &str, arguments: &[&str]) -> String {
        let mut command = self.command(arguments);
        let output = command.env("CARREL_TRY_KILL_AT", point).output().unwrap();
        let test_env = &self.test_env;
        assert_eq!(output.status.signal(), Some(9), "{test_env}: {point}: {output:?}");
        let tries = self.tries();
        let [id] = tries.as_slice() else { panic!("{test_env}: {point}: {tries:?}") };
        id.clone()
    }

    /// Takes a try up with a process that is killed at a point too.
    fn killed_at_again(&self, point: &str, id: &str) -> String {
        self.killed_at(point, &["--resume", id])
    }

    /// What is left of forks beside the workspaces.
    fn layers(&self) -> Vec<String> {
        // As their owner: an ordinary user's root is closed to others.
        let layers = std::fs::read_dir(self.root().join(".carrel/forks")).unwrap();
        layers.map(|one| one.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    /// The base is what candidate 3 makes, and no fork is left.
    fn assert_promoted(&self, record: &Value, context: &str) {
        let test_env = &self.test_env;
        let context = format!("{test_env}: {context}");
        assert_eq!(record["outcome"]["kind"], "promoted", "{context}: {record:#}");
        assert_eq!(record["outcome"]["candidate"], 3, "{context}: {record:#}");
        let ranks: Vec<_> = record["ranking"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["candidate"].as_u64().unwrap())
            .collect();
        assert_eq!(ranks, [3, 1, 2], "{context}: {record:#}");
        let failed = &record["candidates"][0]["verification"];
        assert_eq!(failed["verdict"], "failed", "{context}: {record:#}");
        let tests = json!({ "passed": 1, "failed": 2, "skipped": 0, "errors": 0 });
        assert_eq!(failed["tests"], tests, "{context}: {record:#}");
        assert_eq!(
            record["candidates"][1]["disqualified"]["reason"], "too_large",
            "{context}: {record:#}"
        );
        let right = &record["candidates"][2];
        assert_eq!(right["verification"]["verdict"], "passed", "{context}: {record:#}");
        assert_eq!(right["verification"]["tests"]["passed"], 3, "{context}: {record:#}");
        assert_eq!(right["diff"]["files"], 2, "{context}: {record:#}");

        assert_eq!(self.keys(), ["X"], "{context}");
        assert_eq!(self.layers(), [""; 0], "{context}");
        let state = "ls; cat calc.py log-3; echo thawed > thawed; rm thawed";
        let expected = "calc.py\nlog-3\ntest_calc.py\ndef add(a, b):\n    return a + b\nbegun\n";
        assert_eq!(self.line("X", state), expected, "{context}");
    }

    /// The work of the losers can be brought back, and so can the state before.
    fn assert_work_is_kept(&self, record: &Value, context: &str) {
        let context = format!("{}: {context}", self.test_env);
        let ended = record["outcome"]["ended"].as_array().unwrap();
        let numbers: Vec<_> = ended.iter().map(|one| one["candidate"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [1, 2], "{context}: {record:#}");
        for (one, expected) in ended.iter().zip(["    return a * b\n", "    return a + b\n"]) {
            let restored = self.tool("X", "snapshot_restore", &json!({ "name": one["snapshot"] }));
            assert_eq!(restored.code, 0, "{context}: {restored:?}");
            assert_eq!(self.line("X", "tail -n 1 calc.py"), expected, "{context}");
        }
        assert_eq!(self.line("X", "wc -l < numbers.txt"), "5000\n", "{context}");
        let before = &record["outcome"]["before"];
        let restored = self.tool("X", "snapshot_restore", &json!({ "name": before }));
        assert_eq!(restored.code, 0, "{context}: {restored:?}");
        assert_eq!(
            self.line("X", "ls; tail -n 1 calc.py"),
            "calc.py\ntest_calc.py\n    return a - b\n"
        );
    }
}
