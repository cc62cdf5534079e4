//! The lines that each test runs, recorded by real runners.

use std::path::Path;
use std::process::Command;

use carrel_tools::{Session, ToolResponse};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::machine::{bare, with_go, with_python_tools};
use super::{LOCK, counts, rust, section, verdict};
use crate::test_environment::{Setting, TestEnvironment};

const SUMS: &str = "LIMIT = 3\n\n\ndef add(a, b):\n    if a > LIMIT:\n        return a + b + 0\n    return a + b\n\n\ndef unused():\n    return 1\n";
const TESTS: &str = "import pytest\nfrom probe.sums import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n\n\nclass TestMore:\n    @pytest.mark.parametrize(\"x\", [0, 5])\n    def test_each(self, x):\n        assert add(x, x) == 2 * x\n";

const GO: &str = "package probe\n\nfunc Add(a, b int) int {\n\tif a > 3 {\n\t\treturn a + b + 0\n\t}\n\treturn a + b\n}\n";
const GO_TESTS: &str = "package probe\n\nimport \"testing\"\n\nfunc TestAdds(t *testing.T) {\n\tfor i := 0; i < 4; i++ {\n\t\tif Add(1, 2) != 3 {\n\t\t\tt.Fatal(\"no\")\n\t\t}\n\t}\n}\n\nfunc TestBig(t *testing.T) {\n\tif Add(7, 2) != 9 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n";

fn python(test_env: &TestEnvironment) {
    test_env.put("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = [\".\"]\n");
    test_env.put("probe/__init__.py", "");
    test_env.put("probe/sums.py", SUMS);
    test_env.put("tests/test_sums.py", TESTS);
}

/// Makes the workspace a repository whose files are committed.
fn commit(test_env: &TestEnvironment) {
    let line = "git init -q && git add -A && \
                git -c user.name=a -c user.email=a@example.com commit -q -m a";
    let made = Command::new("sh").args(["-c", line]).current_dir(test_env.path("main")).status();
    assert!(made.unwrap().success());
}

/// Returns all that git sees beside the commit, ignored files too.
fn status(test_env: &TestEnvironment) -> String {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain", "--ignored"]).current_dir(test_env.path("main"));
    String::from_utf8(git.output().unwrap().stdout).unwrap()
}

async fn record(test_env: &TestEnvironment) -> ToolResponse {
    test_env.call("run_tests", json!({ "coverage": true })).await
}

/// Returns the text of an answer without its last line, which has the age of the recording.
async fn covering(test_env: &TestEnvironment, arguments: Value) -> String {
    let text = test_env.text("tests_covering", arguments).await;
    let (text, age) = text.trim_end().rsplit_once("\n\n").unwrap();
    assert!(age.starts_with("recorded "), "{age}");
    format!("{text}\n")
}

fn recorded(answer: &ToolResponse) -> (u64, u64, Vec<String>) {
    let coverage = &section(answer)["coverage"];
    let gaps = coverage["gaps"].as_array().unwrap().iter();
    let gaps = gaps.map(|gap| gap.as_str().unwrap().to_owned()).collect();
    (coverage["tests"].as_u64().unwrap(), coverage["files"].as_u64().unwrap(), gaps)
}

#[tokio::test(flavor = "multi_thread")]
async fn pytest_records_the_lines_of_each_test_and_leaves_nothing_in_the_tree() {
    let test_env = with_python_tools();
    python(&test_env);
    test_env.put(".gitignore", ".pytest_cache/\n");
    commit(&test_env);
    let nothing = test_env.text("tests_covering", json!({ "file": "sums.py" })).await;
    assert_eq!(nothing, "no coverage data yet — run `run_tests` first, with `coverage: true`");

    let answer = record(&test_env).await;
    assert_eq!(verdict(&answer), "passed", "{}", answer.text());
    assert_eq!(counts(&answer), [3, 0, 0, 0], "{}", answer.text());
    assert_eq!(recorded(&answer), (3, 2, vec![]), "{}", answer.text());
    assert!(answer.text().contains("\ncoverage: recorded 3 test(s) in 2 file(s)\n"));
    assert_eq!(status(&test_env), "!! .pytest_cache/\n");

    let line = covering(&test_env, json!({ "file": "sums.py", "line": 7 })).await;
    assert_eq!(
        line,
        "2 test(s) cover probe/sums.py:7:\n\ntests/test_sums.py:\n  TestMore::test_each[0]\n  test_adds\n"
    );
    let all = covering(&test_env, json!({ "file": "probe/sums.py", "line": 0 })).await;
    assert_eq!(
        all,
        "3 test(s) cover probe/sums.py:\n\ntests/test_sums.py:\n  TestMore::test_each[0] (lines 5, 7)\n  \
         TestMore::test_each[5] (lines 5-6)\n  test_adds (lines 5, 7)\n\nlines that tests run: 5-7\n"
    );
    let unused = covering(&test_env, json!({ "file": "./probe/sums.py", "line": 11 })).await;
    assert_eq!(unused, "no coverage found for probe/sums.py:11\n");
    let loaded = covering(&test_env, json!({ "file": "probe/sums.py", "line": 1 })).await;
    assert_eq!(
        loaded,
        "no coverage found for probe/sums.py:1\nit runs outside of tests, when its module is loaded or initialised\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_names_the_file_that_was_meant_and_tells_that_it_changed() {
    let test_env = with_python_tools();
    python(&test_env);
    record(&test_env).await;
    let wrong = test_env.call("tests_covering", json!({ "file": "src/suns.py" })).await;
    assert_eq!(
        wrong.text(),
        "no coverage found for src/suns.py\nrecorded files with a similar name: probe/sums.py\n"
    );
    assert_eq!(wrong.structured["candidates"], json!(["probe/sums.py"]));
    let init = test_env.text("tests_covering", json!({ "file": "__init__.py" })).await;
    assert_eq!(init, "no coverage found for __init__.py\n", "an empty file has no lines");
    let empty = test_env.refusal("tests_covering", json!({ "file": " " })).await;
    assert_eq!(empty.1, "file is required");

    let query = json!({ "file": "probe/sums.py", "line": 7 });
    let fresh = test_env.call("tests_covering", query.clone()).await;
    assert_eq!(
        fresh.structured,
        json!({
            "file": "probe/sums.py",
            "line": 7,
            "count": 2,
            "tests": [
                {
                    "group": "tests/test_sums.py",
                    "name": "TestMore::test_each[0]",
                    "hits": null,
                    "lines": [[5, 5], [7, 7]]
                },
                { "group": "tests/test_sums.py", "name": "test_adds", "hits": null, "lines": [[5, 5], [7, 7]] }
            ],
            "lines": [[5, 5], [7, 7]],
            "stale": false,
            "candidates": []
        })
    );
    test_env.put("probe/sums.py", format!("# More.\n{SUMS}"));
    let stale = test_env.call("tests_covering", query.clone()).await;
    assert_eq!(stale.structured["stale"], true);
    let note = ", before the last change of probe/sums.py: lines may have moved\n";
    assert!(stale.text().ends_with(note), "{}", stale.text());
    test_env.put("probe/sums.py", SUMS);
    let again = test_env.call("tests_covering", query.clone()).await;
    assert_eq!(again.structured["stale"], false, "the content is what counts");
    std::fs::remove_file(test_env.path("main/probe/sums.py")).unwrap();
    assert_eq!(test_env.call("tests_covering", query).await.structured["stale"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_recording_replaces_the_first_and_another_session_sees_it() {
    let test_env = with_python_tools();
    python(&test_env);
    record(&test_env).await;
    test_env.put(
        "tests/test_sums.py",
        "from probe.sums import add\n\n\ndef test_other():\n    add(9, 9)\n",
    );
    let part = json!({ "coverage": true, "path": "tests/test_sums.py" });
    let answer = test_env.call("run_tests", part).await;
    assert_eq!(recorded(&answer).0, 1, "{}", answer.text());
    let query = json!({ "file": "probe/sums.py", "line": 5 });
    let other = Session::new("other");
    let seen = test_env.call_as(&other, "tests_covering", query).await.text();
    let expected =
        "1 test(s) cover probe/sums.py:5:\n\ntests/test_sums.py:\n  test_other\n\nrecorded ";
    assert!(seen.starts_with(expected), "{seen}");
    assert!(seen.contains(", from a run of a part of the tests"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_never_answer_for_each_other() {
    let tools = super::machine::test_tools().join("python");
    let policy = carrel_config::OperatorPolicy {
        path: vec![tools.join("bin")],
        readable: vec![tools],
        ..carrel_config::OperatorPolicy::default()
    };
    let names = &["main", "other"];
    let test_env = TestEnvironment::with(Setting { names, policy, ..Setting::default() });
    python(&test_env);
    let recorded = json!({ "coverage": true, "workspace": "main" });
    test_env.text("run_tests", recorded).await;
    let query = |workspace: &str| json!({ "file": "sums.py", "line": 5, "workspace": workspace });
    let main = test_env.text("tests_covering", query("main")).await;
    assert!(main.starts_with("3 test(s) cover probe/sums.py:5:\n"), "{main}");
    let other = test_env.text("tests_covering", query("other")).await;
    assert!(other.starts_with("no coverage data yet"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_tests_than_a_reply_shows_are_counted() {
    let test_env = with_python_tools();
    python(&test_env);
    let many = "import pytest\nfrom probe.sums import add\n\n\n@pytest.mark.parametrize(\"x\", range(250))\ndef test_many(x):\n    add(x, x)\n";
    test_env.put("tests/test_sums.py", many);
    record(&test_env).await;
    let text = covering(&test_env, json!({ "file": "sums.py", "line": 5 })).await;
    assert!(text.starts_with("250 test(s) cover probe/sums.py:5:\n"), "{text}");
    assert!(text.ends_with("\n... (50 more truncated)\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("  test_many[")).count(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_several_files_end_with_is_answered_with_their_paths() {
    let test_env = with_python_tools();
    python(&test_env);
    test_env.put("other/__init__.py", "");
    test_env.put("other/sums.py", "def twice(a):\n    return 2 * a\n");
    test_env.put(
        "tests/test_other.py",
        "from other.sums import twice\n\n\ndef test_twice():\n    twice(2)\n",
    );
    record(&test_env).await;
    let answer = test_env.call("tests_covering", json!({ "file": "sums.py" })).await;
    assert_eq!(
        answer.text(),
        "2 recorded files end with sums.py; name one:\n\nother/sums.py\nprobe/sums.py\n"
    );
    assert_eq!(answer.structured["candidates"], json!(["other/sums.py", "probe/sums.py"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn unittest_records_and_a_missing_package_is_named() {
    let test_env = TestEnvironment::new();
    test_env.put("setup.py", "");
    test_env.put("probe.py", "def one():\n    return 1\n");
    test_env.put(
        "tests/test_a.py",
        "import unittest\nimport probe\n\n\nclass A(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(probe.one(), 1)\n",
    );
    let answer = record(&test_env).await;
    assert_eq!(verdict(&answer), "passed", "{}", answer.text());
    let gap = "coverage.py is not installed; install the package `coverage` beside the test runner";
    assert_eq!(recorded(&answer), (0, 0, vec![gap.to_owned()]), "{}", answer.text());
    assert!(answer.text().contains(&format!("\ncoverage gap: {gap}\n")), "{}", answer.text());

    let test_env = with_python_tools();
    let command = json!(["python3", "-m", "unittest", "discover", "-v", "-s", "tests", "-t", "."]);
    test_env.put("carrel.toml", format!("[profile]\ntest = {command}\n"));
    test_env.put("setup.py", "");
    test_env.put("probe.py", "def one():\n    return 1\n");
    test_env.put("tests/__init__.py", "");
    test_env.put(
        "tests/test_a.py",
        "import unittest\nimport probe\n\n\nclass A(unittest.TestCase):\n    def setUp(self):\n        self.x = probe.one()\n\n    def test_one(self):\n        self.assertEqual(self.x, 1)\n",
    );
    let answer = record(&test_env).await;
    assert_eq!(verdict(&answer), "passed", "{}", answer.text());
    assert_eq!(recorded(&answer), (1, 2, vec![]), "{}", answer.text());
    let text = covering(&test_env, json!({ "file": "probe.py", "line": 2 })).await;
    assert_eq!(text, "1 test(s) cover probe.py:2:\n\ntests.test_a:\n  A.test_one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn go_records_counts_across_packages_and_failing_tests_too() {
    let test_env = with_go();
    test_env.put("go.mod", "module example.com/probe\n\ngo 1.19\n");
    test_env.put("add.go", GO);
    test_env.put("add_test.go", GO_TESTS.replace("!= 9", "!= 8"));
    test_env.put("sub/sub.go", "package sub\n\nimport \"example.com/probe\"\n\nfunc Twice(a int) int {\n\treturn probe.Add(a, a)\n}\n");
    test_env.put("sub/sub_test.go", "package sub\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {\n\tTwice(2)\n}\n\nfunc TestEnds(t *testing.T) {\n\tpanic(\"no\")\n}\n");
    commit(&test_env);
    let answer = record(&test_env).await;
    assert_eq!(verdict(&answer), "failed", "{}", answer.text());
    let lost =
        "TestEnds of example.com/probe/sub left no profile: it took too long, or its process ended";
    assert_eq!(recorded(&answer), (3, 2, vec![lost.to_owned()]), "{}", answer.text());
    assert_eq!(status(&test_env), "");
    let line = covering(&test_env, json!({ "file": "add.go", "line": 7 })).await;
    assert_eq!(
        line,
        "2 test(s) cover add.go:7:\n\nexample.com/probe:\n  TestAdds (4 hits)\n\nexample.com/probe/sub:\n  TestTwice (1 hit)\n"
    );
    let narrowed = json!({ "coverage": true, "path": "sub", "name": "TestTwice" });
    let answer = test_env.call("run_tests", narrowed).await;
    assert_eq!(recorded(&answer), (1, 2, vec![]), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn node_records_counts_of_test_files() {
    let test_env = TestEnvironment::new();
    test_env
        .put("package.json", "{ \"name\": \"probe\", \"scripts\": { \"test\": \"node --test\" } }");
    test_env.put("lib/sum.js", "// Adds.\nfunction add(a, b) {\n  if (a > 3) {\n    return a + b + 0;\n  }\n  return a + b;\n}\n\nmodule.exports = { add };\n");
    let test = "const test = require('node:test');\nconst { add } = require('../lib/sum.js');\ntest('a', () => { add(1, 2); });\ntest('b', () => { add(2, 2); });\n";
    test_env.put("test/small.test.js", test);
    test_env.put("test/big.test.js", test.replace("add(1, 2)", "add(7, 2)"));
    commit(&test_env);
    let answer = record(&test_env).await;
    assert_eq!(verdict(&answer), "passed", "{}", answer.text());
    assert_eq!(recorded(&answer), (2, 3, vec![]), "{}", answer.text());
    assert_eq!(status(&test_env), "");
    let line = covering(&test_env, json!({ "file": "sum.js", "line": 6 })).await;
    assert_eq!(
        line,
        "2 test(s) cover lib/sum.js:6:\n\ntest/big.test.js:\n  (all tests of the file) (1 hit)\n\ntest/small.test.js:\n  (all tests of the file) (2 hits)\n"
    );
}

/// Returns true if the machine or the toolchain has the tools for coverage.
fn has_llvm_tools() -> bool {
    let said = |argument: &[&str]| {
        let output = Command::new("rustc").args(argument).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let all = said(&["-vV"]);
    let field = |name: &str| all.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let version = field("LLVM version: ").split('.').next().unwrap();
    let sysroot = said(&["--print", "sysroot"]);
    let own = Path::new(sysroot.trim()).join("lib/rustlib").join(field("host: "));
    Path::new("/usr/bin").join(format!("llvm-cov-{version}")).exists()
        || own.join("bin/llvm-cov").exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn cargo_records_counts_of_each_test() {
    if !has_llvm_tools() {
        return carrel_skip::unavailable("llvm-cov of the toolchain's LLVM");
    }
    let test_env = rust();
    test_env.put("Cargo.lock", LOCK);
    test_env
        .put("tests/it.rs", "#[test]\nfn outside() {\n    assert_eq!(probe::add(2, 2), 4);\n}\n");
    test_env.put(".gitignore", "target/\n");
    // Cargo writes the lock file in its own form.
    test_env.text("run_tests", json!({})).await;
    commit(&test_env);
    let answer = record(&test_env).await;
    assert_eq!(verdict(&answer), "passed", "{}", answer.text());
    assert_eq!(recorded(&answer), (3, 2, vec![]), "{}", answer.text());
    assert_eq!(status(&test_env), "!! target/\n");
    let line = covering(&test_env, json!({ "file": "lib.rs", "line": 5 })).await;
    assert_eq!(
        line,
        "3 test(s) cover src/lib.rs:5:\n\nlib probe:\n  tests::adds (1 hit)\n  tests::adds_nothing (1 hit)\n\n\
         test it:\n  outside (1 hit)\n"
    );
    let narrowed = json!({ "coverage": true, "name": "adds_nothing" });
    let answer = test_env.call("run_tests", narrowed).await;
    assert_eq!(recorded(&answer), (1, 1, vec![]), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_missing_is_still_the_reason() {
    let test_env = bare();
    test_env.put("go.mod", "module example.com/probe\n");
    let answer = record(&test_env).await;
    assert_eq!(super::could_not_run(&answer), "go is not installed; install Go on this machine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_recording_answers_in_a_later_process() {
    let test_env = with_python_tools();
    python(&test_env);
    record(&test_env).await;
    let query = json!({ "file": "sums.py", "line": 7 });
    let before = covering(&test_env, query.clone()).await;
    let later = test_env.restarted(Setting::default());
    later.text("LS", json!({})).await;
    let later = later.restarted(Setting::default());
    assert_eq!(covering(&later, query.clone()).await, before, "after a call of another tool");
    let later = later.restarted(Setting::default());
    assert_eq!(covering(&later, query).await, before, "after a call of the tool");
}
