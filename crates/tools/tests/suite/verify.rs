//! Tests, linters and formatters of real projects, run for real.

/// Tests that bring their process down.
mod aborts;
/// Files that checks and test runs change.
mod changes;
/// Compiler diagnostics about changed Rust and Go files.
mod compiler;
/// The lines that each test runs.
mod coverage;
/// Effects of formatters, linters and installers as events.
mod effects;
/// Go: its own tests, vet and gofmt.
mod go;
/// Installations of dependencies.
mod install;
/// Machines with and without the tools of a language.
pub(crate) mod machine;
/// Python: pytest, ruff, black and mypy.
mod python;
/// Formatters and edits at the same time.
mod writers;

use carrel_tools::{Session, ToolResponse};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

const MANIFEST: &str =
    "[package]\nname = \"probe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"probe\"\nversion = \"0.1.0\"\n";
const LIBRARY: &str = "//! Probe.\n\n/// Adds.\npub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n\n    #[test]\n    fn adds_nothing() {\n        assert_eq!(add(0, 0), 0);\n    }\n}\n";

fn rust() -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("Cargo.toml", MANIFEST);
    test_env.put("src/lib.rs", LIBRARY);
    test_env
}

fn section(answer: &ToolResponse) -> &Value {
    &answer.structured["sections"][0]
}

fn verdict(answer: &ToolResponse) -> &Value {
    &answer.structured["verdict"]
}

/// How many tests passed, failed, were skipped, broke.
fn counts(answer: &ToolResponse) -> [u64; 4] {
    ["passed", "failed", "skipped", "errors"]
        .map(|name| section(answer)["counts"][name].as_u64().unwrap())
}

/// Returns why nothing can be said about the project.
fn could_not_run(answer: &ToolResponse) -> &str {
    assert_eq!(section(answer)["verdict"], "could_not_run", "{}", answer.text());
    section(answer)["reason"].as_str().unwrap()
}

async fn break_it(test_env: &TestEnvironment) {
    test_env.text("Read", json!({ "file_path": "src/lib.rs" })).await;
    let edit = json!({ "file_path": "src/lib.rs", "old_string": "a + b", "new_string": "a - b" });
    test_env.text("Edit", edit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_tests_pass_fail_are_rerun_and_mended() {
    let test_env = rust();
    let passed = test_env.call("run_tests", json!({})).await;
    assert_eq!(passed.structured["verdict"], "passed", "{}", passed.text());
    assert_eq!(section(&passed)["counts"]["passed"], 2);
    assert!(passed.text().ends_with("exit: 0\n"), "{}", passed.text());
    assert!(
        test_env
            .text("last_test_failures", json!({}))
            .await
            .starts_with("last run_tests had no failures (2 tests passed, rust, ")
    );
    let nothing = test_env.text("run_failing_tests", json!({})).await;
    assert_eq!(nothing, "last run_tests had no failures — nothing to rerun (rust)");

    break_it(&test_env).await;
    let failed = test_env.call("run_tests", json!({})).await;
    assert_eq!(failed.structured["verdict"], "failed", "{}", failed.text());
    assert_eq!(section(&failed)["failures"][0]["name"], "tests::adds");
    assert_eq!(section(&failed)["failures"][0]["file"], "src/lib.rs");
    let last = test_env.text("last_test_failures", json!({})).await;
    assert!(last.contains("1 test failure(s) from last run_tests call (rust, "), "{last}");
    assert!(last.contains("1. tests::adds\n   src/lib.rs:14\n"), "{last}");

    let rerun = test_env.call("run_failing_tests", json!({})).await;
    assert_eq!(
        (&rerun.structured["rerun"], &rerun.structured["verdict"]),
        (&json!(1), &json!("failed")),
        "{}",
        rerun.text()
    );
    assert_eq!(
        section(&rerun)["counts"],
        json!({ "passed": 0, "failed": 1, "skipped": 0, "errors": 0 })
    );
    let mend = json!({ "file_path": "src/lib.rs", "old_string": "a - b", "new_string": "a + b" });
    test_env.text("Edit", mend).await;
    let mended = test_env.call("run_failing_tests", json!({})).await;
    assert_eq!(mended.structured["verdict"], "passed", "{}", mended.text());
    assert_eq!(section(&mended)["counts"]["passed"], 1, "only the one that failed was run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_fails_is_never_no_failures() {
    let test_env = rust();
    test_env.put("src/lib.rs", "pub fn broken( {\n");
    let answer = test_env.call("run_tests", json!({})).await;
    assert_eq!(answer.structured["verdict"], "failed", "{}", answer.text());
    assert!(section(&answer)["build_errors"].as_u64().unwrap() > 0, "{}", answer.text());
    assert!(answer.text().contains("src/lib.rs:1:"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn clippy_findings_have_place_rule_and_severity() {
    let test_env = rust();
    test_env.put("Cargo.lock", LOCK);
    let clean = test_env.call("run_lint", json!({})).await;
    assert_eq!(clean.structured["verdict"], "passed", "{}", clean.text());
    assert!(clean.text().starts_with("0 findings\n"), "{}", clean.text());
    test_env.put("src/lib.rs", format!("{LIBRARY}\n/// Same.\npub fn same(x: bool) -> bool {{\n    if x == true {{ true }} else {{ false }}\n}}\n"));
    let found = test_env.call("run_lint", json!({})).await;
    assert_eq!(found.structured["verdict"], "failed", "{}", found.text());
    let rules: Vec<_> = section(&found)["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["rule"].clone())
        .collect();
    assert!(rules.contains(&json!("clippy::bool_comparison")), "{rules:?}");
    assert!(found.text().contains("src/lib.rs:"), "{}", found.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_followed_by_what_the_formatter_says_about_that_file_and_no_other() {
    let test_env = rust();
    test_env.put("rustfmt.toml", "max_width = 100\n");
    test_env.put("README.md", "# x\n");
    test_env.text("Read", json!({ "file_path": "src/lib.rs" })).await;
    let ugly = json!({ "file_path": "src/lib.rs", "old_string": "    a + b\n", "new_string": "  a   +   b\n" });
    let text = test_env.text("Edit", ugly).await;
    assert!(text.contains("post-edit format: not formatted"), "{text}");
    test_env.text("Read", json!({ "file_path": "README.md" })).await;
    let markdown = json!({ "file_path": "README.md", "old_string": "# x", "new_string": "#  y" });
    assert!(
        !test_env.text("Edit", markdown).await.contains("post-edit"),
        "no tool of the project knows markdown"
    );
    let asynchronous = json!({ "file_path": "src/lib.rs", "old_string": "  a   +   b\n", "new_string": "    a + b\n" });
    assert!(!test_env.text("Edit", asynchronous).await.contains("post-edit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_may_ask_for_formatting_after_each_edit_and_small_steps() {
    let test_env = rust();
    test_env.put("carrel.toml", "[profile]\nformat_on_edit = true\n[edit]\nlimits = \"strict\"\n");
    test_env.text("Read", json!({ "file_path": "src/lib.rs" })).await;
    let ugly = json!({ "file_path": "src/lib.rs", "old_string": "    a + b\n", "new_string": "  a   +   b\n" });
    let answer = test_env.call("Edit", ugly).await;
    assert!(answer.text().contains("formatted:\n"), "{}", answer.text());
    assert_eq!(test_env.get("src/lib.rs"), LIBRARY);
    let again = test_env.call("Read", json!({ "file_path": "src/lib.rs" })).await;
    assert_eq!(
        again.structured["hash"], answer.structured["hash"],
        "the hash is that of the formatted file"
    );
    let large = "x\n".repeat(40);
    let too_large =
        json!({ "file_path": "src/lib.rs", "old_string": "a + b", "new_string": large });
    assert_eq!(test_env.refusal("Edit", too_large).await.0, "E_EDIT_FILE_REPLACE_TOO_LARGE");
    test_env.put("notes.txt", "a\n");
    test_env.text("Read", json!({ "file_path": "notes.txt" })).await;
    let too_large = json!({ "file_path": "notes.txt", "old_string": "a", "new_string": large });
    let (code, _) = test_env.refusal("Edit", too_large).await;
    assert_eq!(code, "E_EDIT_FILE_REPLACE_TOO_LARGE", "also in files that no tool knows");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_missing_is_named_and_never_zero_findings() {
    let test_env = TestEnvironment::new();
    test_env.put("package.json", r#"{"name": "x"}"#);
    test_env.put("eslint.config.js", "export default [];\n");
    test_env.put("a.js", "let x = 1;\n");
    let answer = test_env.call("run_lint", json!({})).await;
    assert_eq!(answer.structured["verdict"], "could_not_run", "{}", answer.text());
    assert!(answer.text().contains("eslint"), "{}", answer.text());
    assert!(!answer.text().contains("findings"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_no_program_could_not_run() {
    let test_env = TestEnvironment::new();
    test_env.put("setup.py", "");
    test_env.put("carrel.toml", "[profile]\ntest = [\"no-such-runner\"]\n");
    let answer = test_env.call("run_tests", json!({})).await;
    assert_eq!(answer.structured["verdict"], "could_not_run", "{}", answer.text());
    assert!(answer.text().contains("no-such-runner"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn node_tests_of_the_runner_that_comes_with_node() {
    let test_env = TestEnvironment::new();
    test_env.put("package.json", r#"{"name": "x", "type": "module", "scripts": {"test": "node --test", "hello": "echo hi from script"}}"#);
    test_env.put("a.test.js", "import test from 'node:test';\nimport assert from 'node:assert';\ntest('good', () => {});\ntest('bad', () => { assert.strictEqual(1, 2); });\n");
    let answer = test_env.call("run_tests", json!({})).await;
    assert_eq!(answer.structured["verdict"], "failed", "{}", answer.text());
    assert_eq!(section(&answer)["failures"][0]["name"], "bad", "{}", answer.text());
    let rerun = test_env.call("run_failing_tests", json!({})).await;
    assert_eq!(section(&rerun)["counts"]["failed"], 1, "{}", rerun.text());
    assert_eq!(section(&rerun)["counts"]["passed"], 0, "{}", rerun.text());
    let script = test_env.text("run_script", json!({ "name": "hello" })).await;
    assert!(script.contains("hi from script\n") && script.ends_with("exit: 0\n"), "{script}");
    let (code, text) = test_env.refusal("run_script", json!({ "name": "nope" })).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        (
            "E_SCRIPT_NOT_FOUND",
            "run_script: no script named \"nope\" in package.json; available: hello, test"
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_test_that_ends_its_process_takes_no_other_test_with_it_unseen() {
    let test_env = TestEnvironment::new();
    test_env.put("package.json", r#"{"name": "x", "scripts": {"test": "node --test"}}"#);
    test_env.put("test/helper.js", "exports.answer = 42;\n");
    test_env.put("test/a.test.js", "require('node:test')('good', () => {});\n");
    let good = test_env.call("run_tests", json!({})).await;
    assert_eq!(good.structured["verdict"], "passed", "a helper has no tests: {}", good.text());
    test_env.put("test/b.test.js", "const test = require('node:test');\ntest('ends', () => { process.exit(0); });\ntest('bad', () => { throw new Error('unseen'); });\n");
    let ended = test_env.call("run_tests", json!({})).await;
    assert_eq!(ended.structured["verdict"], "failed", "{}", ended.text());
    assert_eq!(section(&ended)["counts"]["errors"], 1, "{}", ended.text());
    assert!(
        ended.text().contains("test/b.test.js:error: exited before its tests were reported"),
        "{}",
        ended.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_shown_as_it_was_run() {
    let test_env = TestEnvironment::new();
    test_env.put("package.json", r#"{"name": "x", "scripts": {"test": "node --test"}}"#);
    test_env.put("a.test.js", "require('node:test')('good', () => {});\n");
    let answer = test_env.call("run_tests", json!({})).await;
    let command = section(&answer)["commands"][0].as_array().unwrap();
    let report = command
        .iter()
        .filter_map(|word| word.as_str()?.strip_prefix("--test-reporter-destination="))
        .find(|destination| destination.ends_with("/node.tap"));
    assert!(report.is_some_and(|report| report.starts_with('/')), "{}", answer.text());
    assert!(!answer.text().contains("{artifacts}"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn python_tests_of_the_runner_that_comes_with_python() {
    let test_env = TestEnvironment::new();
    test_env.put("setup.py", "from setuptools import setup\nsetup(name='x')\n");
    test_env.put("tests/__init__.py", "");
    test_env.put("tests/test_a.py", "import unittest\nclass A(unittest.TestCase):\n    def test_good(self):\n        self.assertEqual(1, 1)\n    def test_bad(self):\n        self.assertEqual(1, 2)\n");
    test_env.put("carrel.toml", "[profile]\ntest = [\"python3\", \"-m\", \"unittest\", \"-v\"]\n");
    let answer = test_env.call("run_tests", json!({})).await;
    assert_eq!(answer.structured["verdict"], "failed", "{}", answer.text());
    assert!(
        section(&answer)["failures"][0]["name"].as_str().unwrap().contains("test_bad"),
        "{}",
        answer.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_of_tests_holds_no_secret() {
    let secrets = &[("KEY", "s3cr3t-value")];
    let test_env = TestEnvironment::with(Setting { secrets, ..Setting::default() });
    test_env.put("setup.py", "");
    test_env.put("tests/test_a.py", "import unittest\nclass A(unittest.TestCase):\n    def test_bad(self):\n        self.fail(\"s3cr3t-value\")\n");
    let failed = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&failed), "failed", "{}", failed.text());
    let remembered = test_env.session.remembered(test_env.registry.toolbox());
    assert!(!remembered.to_string().contains("s3cr3t-value"), "{remembered}");
    let resumed = Session::resumed("again", remembered);
    let last = test_env.call_as(&resumed, "last_test_failures", json!({})).await.text();
    assert!(last.contains("AssertionError: [masked secret key]"), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_languages_have_to_be_told_apart() {
    let test_env = rust();
    test_env.put("package.json", r#"{"name": "x", "scripts": {"test": "node --test"}}"#);
    test_env.put("a.test.js", "require('node:test')('good', () => {});\n");
    let (code, text) = test_env.refusal("run_tests", json!({})).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        (
            "E_LANGUAGE_NOT_CHOSEN",
            "polyglot workspace: 2 project types detected (node, rust) — pass `language` to pick one"
        )
    );
    let (_, text) = test_env.refusal("run_tests", json!({ "language": "go" })).await;
    assert_eq!(text, "language \"go\" not detected in workspace; detected: node, rust");
    let one = test_env.call("run_tests", json!({ "language": "  NODE " })).await;
    assert_eq!(one.structured["verdict"], "passed", "{}", one.text());
    let all = test_env.call("run_tests", json!({ "language": "all" })).await;
    assert_eq!(all.structured["sections"].as_array().unwrap().len(), 2, "{}", all.text());
    assert!(
        all.text().contains("=== rust in . ===") && all.text().contains("=== node in . ==="),
        "{}",
        all.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nearest_project_of_a_path_is_used() {
    let test_env = TestEnvironment::new();
    test_env.put("README.md", "x");
    test_env.put("crates/probe/Cargo.toml", MANIFEST);
    test_env.put("crates/probe/src/lib.rs", LIBRARY);
    test_env.put("web/package.json", r#"{"name": "web", "scripts": {"test": "node --test"}}"#);
    let answer = test_env
        .call("run_tests", json!({ "path": "crates/probe/src", "name": "adds_nothing" }))
        .await;
    assert_eq!(answer.structured["verdict"], "passed", "{}", answer.text());
    assert_eq!(section(&answer)["directory"], "crates/probe");
    assert_eq!(section(&answer)["counts"]["passed"], 1, "{}", answer.text());
    let profile = test_env.call("profile", json!({ "path": "crates/probe/src/lib.rs" })).await;
    assert_eq!(profile.structured["profiles"][0]["ecosystem"], "rust", "{}", profile.text());
    let all = test_env.text("profile", json!({})).await;
    assert!(all.contains("rust in crates/probe") && all.contains("node in web"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_without_a_project_says_so() {
    let test_env = TestEnvironment::new();
    let (code, text) = test_env.refusal("run_tests", json!({})).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("E_PROJECT_NOT_DETECTED", "no supported project detected in workspace root")
    );
    assert_eq!(
        test_env.text("run_failing_tests", json!({})).await,
        "no run_tests call yet in this session"
    );
    assert_eq!(
        test_env.text("last_test_failures", json!({})).await,
        "no run_tests call yet in this session"
    );
    assert_eq!(test_env.text("profile", json!({})).await, "no supported project detected\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_is_told_once_and_again_when_it_changes() {
    let test_env = rust();
    let told = || {
        test_env
            .events()
            .iter()
            .filter(|event| event["event"] == "lifecycle.workspace.profile")
            .count()
    };
    test_env.text("profile", json!({})).await;
    assert_eq!(told(), 1);
    test_env.text("profile", json!({})).await;
    assert_eq!(told(), 0);
    test_env.put("carrel.toml", "[profile]\ntest = [\"true\"]\n");
    test_env.text("profile", json!({})).await;
    assert_eq!(told(), 1);
}
