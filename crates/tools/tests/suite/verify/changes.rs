//! Checks that change nothing, and test runs that say which files they changed.

use carrel_config::TierChoice;
use carrel_domain::Tier;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::machine::with_python_tools;
use super::{LOCK, MANIFEST, could_not_run, rust, section, verdict};
use crate::test_environment::{Setting, TestEnvironment};

#[tokio::test(flavor = "multi_thread")]
async fn a_linter_that_the_project_tells_to_fix_changes_no_file() {
    let test_env = with_python_tools();
    test_env.put("pyproject.toml", "[project]\nname = \"a\"\n[tool.ruff]\nfix = true\n");
    test_env.put("a.py", "import os\n");
    let answer = test_env.call("run_lint", json!({})).await;
    assert_eq!(verdict(&answer), "failed", "{}", answer.text());
    assert_eq!(section(&answer)["findings"][0]["rule"], "F401", "{}", answer.text());
    assert_eq!(test_env.get("a.py"), "import os\n");
    assert!(!test_env.has(".ruff_cache"));
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_change_no_file_in_any_tier() {
    for tier in [TierChoice::Auto, TierChoice::Only(Tier::Landlock)] {
        let test_env = TestEnvironment::with(Setting { tier, ..Setting::default() });
        test_env.put("package.json", r#"{"name": "x", "scripts": {"lint": "echo a > touched"}}"#);
        test_env.open_to_others(tier);
        let answer = test_env.call("run_lint", json!({})).await;
        let reason = could_not_run(&answer);
        assert!(reason.starts_with("the command writes files"), "{tier:?}: {reason}");
        assert!(!test_env.has("touched"), "{tier:?}: {}", answer.text());
        assert_eq!(section(&answer)["command"], json!(["npm", "run", "lint"]), "{tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_run_in_a_read_only_tree_and_leave_no_caches() {
    let test_env = with_python_tools();
    test_env.put("pyproject.toml", "[project]\nname = \"a\"\n[tool.mypy]\n");
    test_env.put("a.py", "x: int = 'a'\n");
    let answer = test_env.call("run_typecheck", json!({})).await;
    assert_eq!(verdict(&answer), "failed", "{}", answer.text());
    assert!(!test_env.has(".mypy_cache"));

    let test_env = TestEnvironment::new();
    test_env.put("Cargo.toml", MANIFEST);
    test_env.put("src/lib.rs", "");
    let missing = test_env.call("run_typecheck", json!({})).await;
    assert!(could_not_run(&missing).starts_with("Cargo.lock is missing"), "{}", missing.text());
    assert!(!test_env.has("Cargo.lock"));
    test_env.put("Cargo.lock", LOCK);
    let checked = test_env.call("run_typecheck", json!({})).await;
    assert_eq!(verdict(&checked), "passed", "{}", checked.text());
    assert!(!test_env.has("target"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_writes_as_a_check_is_named() {
    let test_env = TestEnvironment::new();
    let scripts = r#"{"name": "x", "scripts": {"lint": "touch touched && echo done"}}"#;
    test_env.put("package.json", scripts);
    let answer = test_env.call("run_lint", json!({})).await;
    assert!(could_not_run(&answer).starts_with("the command writes files"), "{}", answer.text());
    assert!(!test_env.has("touched"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_run_lists_the_files_that_it_changed() {
    let test_env = rust();
    test_env.put(".gitignore", "/target\n/out\n");
    test_env.put("golden.txt", "old\n");
    let writes = "#[test]\nfn writes() {\n    std::fs::write(\"golden.txt\", \"new\\n\").unwrap();\n    \
        std::fs::write(\"fresh.txt\", \"\").unwrap();\n    std::fs::write(\"out\", \"\").unwrap();\n    \
        std::fs::remove_file(\"rustfmt.toml\").unwrap();\n    assert_eq!(std::env::var(\"INSTA_UPDATE\").unwrap(), \"no\");\n}\n";
    test_env.put("tests/writes.rs", writes);
    test_env.put("rustfmt.toml", "");
    let answer = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&answer), "passed", "{}", answer.text());
    assert_eq!(
        section(&answer)["changed_files"],
        json!(["Cargo.lock", "fresh.txt", "golden.txt", "rustfmt.toml"]),
        "{}",
        answer.text()
    );
    assert!(answer.text().contains("changed files: Cargo.lock, fresh.txt, "), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_in_build_directories_are_not_listed_as_changed() {
    let test_env = TestEnvironment::new();
    test_env.put("build/CMakeCache.txt", "");
    test_env.put(
        "Makefile",
        "test:\n\techo a > build/x.o; mkdir _build; echo b > _build/y; echo c > z\n",
    );
    let answer = test_env.call("run_tests", json!({})).await;
    assert_eq!(verdict(&answer), "passed", "{}", answer.text());
    assert_eq!(section(&answer)["changed_files"], json!(["z"]), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_with_a_broken_first_line_is_not_missing() {
    let test_env = TestEnvironment::new();
    test_env.put("pyproject.toml", "[project]\nname = \"a\"\n[tool.ruff]\n");
    test_env.put_program(".venv/bin/python", "#!/bin/sh\n");
    test_env.put_program(".venv/bin/ruff", "#!/moved/.venv/bin/python\n");
    let answer = test_env.call("run_lint", json!({})).await;
    assert_eq!(
        could_not_run(&answer),
        ".venv/bin/ruff could not be started: its first line names /moved/.venv/bin/python, which does not \
         exist here; install the dependencies again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_report_is_cut_and_counted() {
    let test_env = with_python_tools();
    test_env.put("pyproject.toml", "[project]\nname = \"a\"\n[tool.ruff]\n");
    let many = "import os as some_rather_long_name_to_fill_the_report\n".repeat(12_000);
    test_env.put("a.py", many);
    let answer = test_env.call("run_lint", json!({})).await;
    assert_eq!(verdict(&answer), "failed", "{}", &answer.text()[..2_000]);
    assert_eq!(section(&answer)["incomplete"], true);
    assert!(answer.text().contains(" findings and more: the report exceeded its limit"));
}
