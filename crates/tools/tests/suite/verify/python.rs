//! Python: pytest, ruff, black and mypy.

use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::machine::{bare, test_tools, with_python_tools};
use super::{could_not_run, counts, section, verdict};
use crate::test_environment::TestEnvironment;

const PROJECT: &str = "[project]\nname = \"probe\"\nversion = \"1\"\n\n[tool.pytest.ini_options]\npythonpath = [\".\"]\n\n[tool.ruff]\n\n[tool.mypy]\n";
const SUMS: &str = "def add(a: int, b: int) -> int:\n    return a + b\n";
const TESTS: &str = "import pytest\nfrom probe.sums import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n\n\nclass TestNothing:\n    @pytest.mark.parametrize(\"x\", [0, \"a b[c]\"])\n    def test_each(self, x):\n        assert add(x, x) == x\n";

fn project(test_env: &TestEnvironment) {
    test_env.put("pyproject.toml", PROJECT);
    test_env.put("probe/__init__.py", "");
    test_env.put("probe/sums.py", SUMS);
    test_env.put("tests/test_sums.py", TESTS.replace(", \"a b[c]\"", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn pytest_passes_fails_and_reruns_only_what_failed() {
    let test_env = with_python_tools();
    project(&test_env);
    let passed = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&passed), "passed", "{}", passed.text());
    assert_eq!(counts(&passed), [2, 0, 0, 0], "{}", passed.text());

    test_env.put("probe/sums.py", SUMS.replace("a + b", "a - b"));
    test_env.put("tests/test_sums.py", TESTS);
    let failed = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&failed), "failed", "{}", failed.text());
    assert_eq!(counts(&failed), [1, 2, 0, 0], "{}", failed.text());
    assert_eq!(
        section(&failed)["failures"],
        json!([
            { "name": "tests/test_sums.py::test_adds", "file": "tests/test_sums.py", "line": 6 },
            {
                "name": "tests/test_sums.py::TestNothing::test_each[a b[c]]",
                "file": "tests/test_sums.py",
                "line": 12
            }
        ]),
        "{}",
        failed.text()
    );
    let said = "1. tests/test_sums.py::test_adds\n   tests/test_sums.py:6\n   assert -1 == 3\n    +  where -1 = add(1, 2)\n\n2. ";
    assert!(failed.text().contains(said), "{}", failed.text());

    test_env.put("probe/sums.py", SUMS);
    let rerun = test_env.call("run_failing_tests", json!({})).await;
    assert_eq!(rerun.structured["rerun"], 2, "{}", rerun.text());
    assert_eq!(counts(&rerun), [1, 1, 0, 0], "{}", rerun.text());
    let again = test_env.call("run_failing_tests", json!({})).await;
    assert_eq!(counts(&again), [0, 1, 0, 0], "only what still failed: {}", again.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn pytest_that_cannot_load_a_file_is_never_no_failures() {
    let test_env = with_python_tools();
    project(&test_env);
    let broken = [
        ("tests/test_broken.py", "def test_x(:\n", "SyntaxError: invalid syntax"),
        (
            "tests/test_broken.py",
            "import nowhere\n",
            "ModuleNotFoundError: No module named 'nowhere'",
        ),
        ("tests/conftest.py", "import nowhere\n", "ModuleNotFoundError: No module named 'nowhere'"),
    ];
    for (file, text, message) in broken {
        test_env.put(file, text);
        let answer = test_env.call("run_tests", json!({})).await;
        assert_eq!(verdict(&answer), "failed", "{}", answer.text());
        assert_eq!(section(&answer)["build_errors"], 1, "{}", answer.text());
        let workspace = format!("\n{file}:1:error: {message}\n");
        assert!(answer.text().contains(&workspace), "{}", answer.text());
        let last = test_env.text("last_test_failures", json!({})).await;
        assert!(last.starts_with("1 build error(s) from last run_tests call (python, "), "{last}");
        assert!(last.ends_with(&workspace), "{last}");
        let rerun = test_env.text("run_failing_tests", json!({})).await;
        assert!(
            rerun.ends_with("names no test that could be run again; rerun run_tests"),
            "{rerun}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pytest_that_is_ended_or_finds_nothing_did_not_pass() {
    let test_env = with_python_tools();
    project(&test_env);
    test_env.put("tests/test_exit.py", "import os\n\n\ndef test_ends():\n    os._exit(0)\n");
    let ended = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&ended), "failed", "{}", ended.text());
    let named = &section(&ended)["failures"][0]["name"];
    assert_eq!(*named, "tests/test_exit.py::test_ends", "{}", ended.text());
    let nothing = test_env.call("run_tests", json!({ "name": "no_such_test" })).await;
    assert_eq!(could_not_run(&nothing), "no tests were run");
    test_env.put(
        "pyproject.toml",
        PROJECT.replace("pythonpath", "addopts = \"--nonsense\"\npythonpath"),
    );
    let unusable = test_env.call("run_tests", json!({})).await;
    assert!(
        could_not_run(&unusable).contains("unrecognized arguments: --nonsense"),
        "{}",
        unusable.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unittest_that_is_ended_or_cannot_load_a_file_did_not_pass() {
    let test_env = TestEnvironment::new();
    test_env.put("setup.py", "");
    let tests = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_good(self):\n        pass\n";
    test_env.put("tests/test_a.py", tests);
    let passed = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&passed), "passed", "{}", passed.text());
    test_env.put("tests/test_b.py", tests.replace("pass", "__import__(\"os\")._exit(0)"));
    let ended = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&ended), "failed", "{}", ended.text());
    assert_eq!(section(&ended)["failures"][0]["name"], "test_b.A.test_good", "{}", ended.text());
    test_env.put("tests/test_b.py", "import unittest, nowhere\n");
    let unloaded = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&unloaded), "failed", "{}", unloaded.text());
    assert!(
        unloaded.text().contains("tests/test_b.py:1:error: ModuleNotFoundError"),
        "{}",
        unloaded.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ruff_is_clean_finds_and_breaks() {
    let test_env = with_python_tools();
    project(&test_env);
    test_env.put("tests/test_sums.py", "");
    let clean = test_env.call("run_lint", json!({})).await;
    assert_eq!(verdict(&clean), "passed", "{}", clean.text());
    assert!(clean.text().starts_with("0 findings\n"), "{}", clean.text());

    test_env.put("probe/unused.py", "import os\n");
    let found = test_env.call("run_lint", json!({ "path": "probe/unused.py" })).await;
    assert_eq!(verdict(&found), "failed", "{}", found.text());
    let unused = section(&found)["findings"].as_array().unwrap().iter();
    let unused: Vec<_> = unused.filter(|finding| finding["rule"] == "F401").collect();
    assert_eq!(
        unused,
        [&json!({
            "file": "probe/unused.py",
            "line": 1,
            "column": 8,
            "end_line": 1,
            "end_column": 10,
            "severity": "error",
            "rule": "F401",
            "message": "`os` imported but unused",
            "fixable": true,
            "url": "https://docs.astral.sh/ruff/rules/unused-import"
        })]
    );
    test_env.put("pyproject.toml", PROJECT.replace("[tool.ruff]", "[tool.ruff]\nnonsense = 1"));
    let broken = test_env.call("run_lint", json!({})).await;
    assert!(could_not_run(&broken).contains("unknown field `nonsense`"), "{}", broken.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn mypy_is_clean_and_finds() {
    let test_env = with_python_tools();
    project(&test_env);
    let clean = test_env.call("run_typecheck", json!({ "path": "probe" })).await;
    assert_eq!(verdict(&clean), "passed", "{}", clean.text());
    test_env.put("probe/sums.py", SUMS.replace("a + b", "str(a)"));
    let found = test_env.call("run_typecheck", json!({ "path": "probe" })).await;
    assert_eq!(verdict(&found), "failed", "{}", found.text());
    assert_eq!(
        section(&found)["findings"],
        json!([{
            "file": "probe/sums.py",
            "line": 2,
            "column": 12,
            "end_line": 2,
            "end_column": 18,
            "severity": "error",
            "rule": "return-value",
            "message": "Incompatible return value type (got \"str\", expected \"int\")"
        }])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ruff_and_black_say_what_is_not_in_style_and_mend_it() {
    for (settings, tool) in [("", "ruff format"), ("\n[tool.black]\n", "black")] {
        let test_env = with_python_tools();
        test_env.put("pyproject.toml", format!("{PROJECT}{settings}"));
        let ugly = SUMS.replace("a + b", "( a+b )");
        test_env.put("sums.py", &ugly);
        let checked = test_env.call("format", json!({ "check": true })).await;
        assert_eq!(section(&checked)["verdict"], "failed", "{}", checked.text());
        assert!(checked.text().contains("sums.py"), "{}", checked.text());
        assert!(
            checked.text().contains(&format!("command: {tool} --check .")),
            "{}",
            checked.text()
        );
        assert_eq!(test_env.get("sums.py"), ugly);
        let mended = test_env.call("format", json!({})).await;
        assert_eq!(section(&mended)["verdict"], "passed", "{}", mended.text());
        assert_eq!(test_env.get("sums.py"), SUMS, "{tool}");
        let clean = test_env.call("format", json!({ "check": true })).await;
        assert_eq!(section(&clean)["verdict"], "passed", "{}", clean.text());
        test_env.put("sums.py", "def add(:\n");
        let broken = test_env.call("format", json!({})).await;
        assert_eq!(section(&broken)["verdict"], "failed", "{}", broken.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn python_tools_that_are_missing_are_named_with_how_to_get_them() {
    let test_env = bare();
    project(&test_env);
    for (tool, missing) in [
        ("run_tests", "pytest"),
        ("run_lint", "ruff"),
        ("run_typecheck", "mypy"),
        ("format", "ruff"),
    ] {
        let answer = test_env.call(tool, json!({})).await;
        let reason = format!("{missing} is not installed; run `pip install {missing}`");
        assert_eq!(could_not_run(&answer), reason, "{tool}");
        assert!(!answer.text().contains("findings"), "{}", answer.text());
    }
    assert!(
        test_env
            .text("last_test_failures", json!({}))
            .await
            .starts_with("no structured failures available for python")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_in_the_project_is_the_one_that_counts() {
    let test_env = bare();
    test_env.put("pyproject.toml", "[project]\nname = \"probe\"\nversion = \"1\"\n");
    test_env.put(
        "tests/test_prefix.py",
        "import sys\n\n\ndef test_prefix():\n    assert sys.prefix.endswith(\"/main/.venv\")\n",
    );
    install_pytest(&test_env);
    let answer = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&answer), "passed", "{}", answer.text());
    assert_eq!(section(&answer)["commands"][0][0], ".venv/bin/pytest", "{}", answer.text());
    let other = test_env.call("run_lint", json!({})).await;
    assert!(could_not_run(&other).starts_with("ruff is not installed; "), "{}", other.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_many_failures_keeps_within_the_size_of_a_reply() {
    let test_env = bare();
    test_env.put("pyproject.toml", "[project]\nname = \"probe\"\nversion = \"1\"\n");
    let number = |number| {
        format!("def test_{number}():\n    assert list(range(200)) == list(range(1, 201))\n\n\n")
    };
    test_env.put("tests/test_many.py", (0..100).map(number).collect::<String>());
    install_pytest(&test_env);
    let usual = test_env.text("run_tests", json!({})).await;
    let small = test_env.text("run_tests", json!({ "max_bytes": 3000 })).await;
    for (text, limit) in [(&usual, 31_000), (&small, 4000)] {
        assert!(text.len() <= limit, "{}", text.len());
        assert!(text.starts_with("failed\n0 passed, 100 failed"), "{text}");
        assert!(text.ends_with("exit: 1\n"), "{text}");
    }
    // The first failures are shown whole, the others with a line of their message.
    assert!(usual.contains("\n5. tests/test_many.py::test_4\n"), "{usual}");
    assert!(usual.contains("\n6. tests/test_many.py::test_5:22 assert [0, 1, 2"), "{usual}");
    assert!(usual.contains("\n(50 more; last_test_failures shows them)\n"), "{usual}");
    assert!(small.contains(" bytes left out; narrow the run, or read BashOutput "), "{small}");
    let again = test_env.text("last_test_failures", json!({ "limit": 500 })).await;
    assert!(again.len() <= 31_000, "{}", again.len());
}

/// Makes an environment in the workspace `main` as people do, without the network.
fn install_pytest(test_env: &TestEnvironment) {
    let tools = test_tools();
    let (pip, wheels) = (tools.join("python/bin/pip"), tools.join("wheels"));
    let mut make = Command::new("/usr/bin/python3");
    make.args(["-m", "venv", "--without-pip", ".venv"]);
    let mut install = Command::new(pip);
    install
        .args(["--python", ".venv/bin/python", "install", "--quiet", "--no-index", "--find-links"])
        .arg(wheels)
        .arg("pytest");
    for command in [&mut make, &mut install] {
        let output = command.current_dir(test_env.path("main")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
