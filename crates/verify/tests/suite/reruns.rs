//! From a recorded failure back to the words that run exactly it.
//!
//! The lines in the snapshots were run by hand in the workspace that the outputs come from,
//! and each ran the failed tests and no other. Two runners cannot be that exact: Go runs the
//! parent of a failed subtest, and rustdoc may run a neighbour of a failed example.

use std::fmt::Write;
use std::path::Path;

use carrel_verify::parse::tests;
use carrel_verify::plan::{PlanError, ReportFormat, Selector, Target, plan_tests};
use carrel_verify::{Profile, ProjectTool, detect};

use crate::fixture::lay_out;
use crate::recorded::load;

/// The projects in which the outputs were recorded, reduced to what names their runners.
fn profile(files: &str, directory: &str) -> Profile {
    let workspace = lay_out(files);
    detect(&workspace.root, Path::new(directory)).profiles[0].clone()
}

fn failed(name: &str, directory: &str, tool: ProjectTool, report: ReportFormat) -> Vec<Selector> {
    let recorded = load(name);
    let report = tests(&recorded.invocation(directory, tool, report), &recorded.outcome());
    report.failures.into_iter().filter_map(|failure| failure.rerun).collect()
}

fn rerun(
    files: &str,
    directory: &str,
    name: &str,
    tool: ProjectTool,
    report: ReportFormat,
) -> String {
    let profile = profile(files, directory);
    let selectors = failed(name, directory, tool, report);
    let target = Target { rerun: &selectors, ..Target::default() };
    let mut text = String::new();
    for invocation in plan_tests(&profile, &target).unwrap() {
        assert_eq!((invocation.tool, invocation.report), (tool, report));
        writeln!(text, "{:?}", invocation.argv).unwrap();
    }
    text
}

const NODE: &str = "-- node/node_modules/.bin/jest --\n-- node/node_modules/.bin/vitest --\n-- node/node_modules/.bin/mocha --\n";

fn node(script: &str) -> String {
    format!(
        "{NODE}-- node/package.json --\n{{\"name\": \"sample\", \"scripts\": {{\"test\": \"{script}\"}}}}\n"
    )
}

#[test]
fn cargo_reruns_each_failed_target_by_exact_names() {
    let files = "-- rust/Cargo.toml --\n[workspace]\nmembers = [\"one\", \"two\"]\n";
    insta::assert_snapshot!(rerun(
        files,
        "rust",
        "cargo-test/fail",
        ProjectTool::CargoTest,
        ReportFormat::CargoTest
    ));
}

#[test]
fn nextest_reruns_by_package_binary_and_exact_name() {
    let files = "-- rust/Cargo.toml --\n[workspace]\n-- rust/.config/nextest.toml --\n";
    insta::assert_snapshot!(rerun(
        files,
        "rust",
        "nextest/fail",
        ProjectTool::Nextest,
        ReportFormat::Nextest
    ));
}

#[test]
fn jest_reruns_by_file_and_anchored_names() {
    insta::assert_snapshot!(rerun(
        &node("jest --rootDir=jest"),
        "node",
        "jest/fail",
        ProjectTool::Jest,
        ReportFormat::Jest
    ));
}

#[test]
fn vitest_reruns_by_file_and_anchored_names() {
    insta::assert_snapshot!(rerun(
        &node("vitest --dir vitest"),
        "node",
        "vitest/fail",
        ProjectTool::Vitest,
        ReportFormat::Jest
    ));
}

#[test]
fn mocha_reruns_by_file_and_anchored_names() {
    insta::assert_snapshot!(rerun(
        &node("mocha mocha/*.js"),
        "node",
        "mocha/fail",
        ProjectTool::Mocha,
        ReportFormat::Mocha
    ));
}

#[test]
fn node_reruns_by_file_and_anchored_names() {
    insta::assert_snapshot!(rerun(
        &node("node --test"),
        "node",
        "node-test/fail",
        ProjectTool::NodeTest,
        ReportFormat::Tap
    ));
}

#[test]
fn pytest_reruns_by_node_identifiers() {
    let files = "-- python/pyproject.toml --\n[tool.pytest.ini_options]\n-- python/.venv/bin/python --\n-- python/.venv/bin/pytest --\n";
    insta::assert_snapshot!(rerun(
        files,
        "python",
        "pytest/fail",
        ProjectTool::Pytest,
        ReportFormat::Pytest
    ));
}

#[test]
fn unittest_reruns_by_patterns_that_match_whole_names() {
    let files = "-- python/setup.py --\n-- python/tests/test_unit.py --\nimport unittest\n";
    insta::assert_snapshot!(rerun(
        files,
        "python",
        "unittest/fail",
        ProjectTool::Unittest,
        ReportFormat::Unittest
    ));
}

#[test]
fn go_reruns_each_package_by_anchored_names_of_parents() {
    let files = "-- go/go.mod --\nmodule example.com/sample\n";
    insta::assert_snapshot!(rerun(
        files,
        "go",
        "go-test/fail",
        ProjectTool::GoTest,
        ReportFormat::GoTest
    ));
}

#[test]
fn tests_of_another_project_are_not_rerun_here() {
    let profile = profile("-- rust/Cargo.toml --\n[package]\nname = \"x\"\n", "rust");
    let other = Selector {
        tool: ProjectTool::CargoTest,
        directory: "elsewhere".to_owned(),
        package: None,
        target: None,
        file: None,
        name: "tests::a".to_owned(),
    };
    let target = Target { rerun: &[other], ..Target::default() };
    assert_eq!(
        plan_tests(&profile, &target).unwrap_err(),
        PlanError::NothingToRerun { root: "rust".to_owned() }
    );
}

#[test]
fn the_same_test_is_named_once() {
    let profile = profile("-- go.mod --\nmodule example.com/x\n", ".");
    let selector = |name: &str| Selector {
        tool: ProjectTool::GoTest,
        directory: ".".to_owned(),
        package: Some("example.com/x".to_owned()),
        target: None,
        file: None,
        name: name.to_owned(),
    };
    let tests =
        [selector("TestB"), selector("TestA/one"), selector("TestA/two"), selector("TestB")];
    let target = Target { rerun: &tests, ..Target::default() };
    let plan = plan_tests(&profile, &target).unwrap();
    let argv: Vec<&str> = plan[0].argv.iter().map(String::as_str).collect();
    assert_eq!(
        argv,
        ["go", "test", "-json", "-count=1", "-run", "^(TestA|TestB)$", "example.com/x"]
    );
}
