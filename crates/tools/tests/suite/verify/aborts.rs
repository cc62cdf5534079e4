//! Tests that bring their own process down, run for real.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{MANIFEST, counts, section, verdict};
use crate::test_environment::TestEnvironment;

/// Two tests that pass and one that brings the process down after them, with several at once.
fn rust(ending: &str) -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("Cargo.toml", MANIFEST);
    let wait = "std::thread::sleep(std::time::Duration::from_millis(60));";
    test_env.put(
        "src/lib.rs",
        format!(
            "#[cfg(test)]\nmod tests {{\n    #[test]\n    fn adds() {{}}\n    #[test]\n    \
             fn brings_it_down() {{ {wait} {ending} }}\n    #[test]\n    fn subtracts() {{}}\n    \
             #[test]\n    fn waits() {{ {wait} {wait} }}\n}}\n"
        ),
    );
    test_env
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_test_that_aborts_is_named_and_its_rerun_fails_again() {
    for ending in ["std::process::abort();", "std::process::exit(0);"] {
        let test_env = rust(ending);
        let answer = test_env.call("run_tests", json!({})).await;
        assert_eq!(verdict(&answer), "failed", "{ending}: {}", answer.text());
        let failures = section(&answer)["failures"].as_array().unwrap();
        assert_eq!(failures.len(), 1, "{}", answer.text());
        assert_eq!(failures[0]["name"], "tests::brings_it_down", "{}", answer.text());
        assert_eq!(section(&answer)["commands"].as_array().unwrap().len(), 2, "a second run");
        let rerun = test_env.call("run_failing_tests", json!({})).await;
        assert_eq!(verdict(&rerun), "failed", "{ending}: {}", rerun.text());
        assert_eq!(section(&rerun)["failures"][0]["name"], "tests::brings_it_down");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_test_that_exits_is_named() {
    let test_env = TestEnvironment::new();
    test_env.put("setup.py", "");
    test_env.put(
        "test_a.py",
        "import os, unittest\nclass A(unittest.TestCase):\n    def test_good(self):\n        pass\n    \
         def test_leaves(self):\n        os._exit(0)\n",
    );
    let answer = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&answer), "failed", "{}", answer.text());
    assert_eq!(
        section(&answer)["failures"][0]["name"],
        "test_a.A.test_leaves",
        "{}",
        answer.text()
    );
    assert_eq!(counts(&answer), [1, 0, 0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_test_that_exits_fails_with_any_style_of_import() {
    let styles = [
        "import * as runner from 'node:test';\nrunner.test('a', () => process.exit(0));\n",
        "import { test as check } from 'node:test';\ncheck('a', () => process.exit(0));\n",
        "import check from 'node:test';\ncheck.describe('a', () => { check('b', () => process.exit(0)); });\n",
        "import { check } from './helper.mjs';\nimport { it } from './helper.mjs';\nit('a', () => process.exit(0));\n",
    ];
    for style in styles {
        let test_env = TestEnvironment::new();
        test_env.put("package.json", r#"{"name": "x", "scripts": {"test": "node --test"}}"#);
        test_env.put("helper.mjs", "export { test as check, it } from 'node:test';\n");
        test_env.put("a.test.mjs", style);
        let answer = test_env.call("run_tests", json!({})).await;
        assert_eq!(verdict(&answer), "failed", "{style}: {}", answer.text());
    }
}
