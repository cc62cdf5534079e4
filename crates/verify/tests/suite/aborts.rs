//! Recorded runs in which a test brought its process down: never green, and never another test's
//! fault.

use carrel_verify::ProjectTool;
use carrel_verify::parse::{
    self, TestReport, Verdict, check_unreported_files, name_running_test, unnamed_parts,
};
use carrel_verify::plan::{Selector, plan_one_at_a_time};
use pretty_assertions::assert_eq;

use crate::fixture::lay_out;
use crate::recorded::load;

const CULPRIT: &str = "brings";

/// Reads a recorded run, with the report format of its tool.
fn report(name: &str, directory: &str, tool: ProjectTool) -> TestReport {
    let recorded = load(name);
    let report = serde_format(tool);
    parse::tests(&recorded.invocation(directory, tool, report), &recorded.outcome())
}

fn serde_format(tool: ProjectTool) -> carrel_verify::plan::ReportFormat {
    use carrel_verify::plan::ReportFormat;
    match tool {
        ProjectTool::CargoTest => ReportFormat::CargoTest,
        ProjectTool::Nextest => ReportFormat::Nextest,
        ProjectTool::Jest | ProjectTool::Vitest => ReportFormat::Jest,
        ProjectTool::Mocha => ReportFormat::Mocha,
        ProjectTool::NodeTest => ReportFormat::Tap,
        ProjectTool::Pytest => ReportFormat::Pytest,
        ProjectTool::Unittest => ReportFormat::Unittest,
        ProjectTool::GoTest => ReportFormat::GoTest,
        other => panic!("{other:?} has no recorded abort"),
    }
}

const RUNS: [(&str, &str, ProjectTool); 20] = [
    ("cargo-test/abort", "rust", ProjectTool::CargoTest),
    ("cargo-test/abort-single", "rust", ProjectTool::CargoTest),
    ("cargo-test/exit-zero", "rust", ProjectTool::CargoTest),
    ("cargo-test/exit-zero-single", "rust", ProjectTool::CargoTest),
    ("cargo-test/stack-overflow", "rust", ProjectTool::CargoTest),
    ("nextest/abort", "rust", ProjectTool::Nextest),
    ("pytest/exit-zero", "python", ProjectTool::Pytest),
    ("pytest/exit-zero-verbose", "python", ProjectTool::Pytest),
    ("pytest/exit-one", "python", ProjectTool::Pytest),
    ("pytest/segfault", "python", ProjectTool::Pytest),
    ("pytest/xdist-crash", "python", ProjectTool::Pytest),
    ("unittest/exit-zero", "python", ProjectTool::Unittest),
    ("go-test/exit-zero", "go", ProjectTool::GoTest),
    ("go-test/exit-one", "go", ProjectTool::GoTest),
    ("go-test/panic", "go", ProjectTool::GoTest),
    ("go-test/parallel-exit", "go", ProjectTool::GoTest),
    ("jest/exit-zero", "node", ProjectTool::Jest),
    ("jest/exit-in-worker", "node", ProjectTool::Jest),
    ("vitest/hard-exit", "node", ProjectTool::Vitest),
    ("mocha/exit-zero", "node", ProjectTool::Mocha),
];

#[test]
fn a_test_that_ends_its_process_fails_the_run_and_no_other_test_is_blamed() {
    for (name, directory, tool) in RUNS {
        let report = report(name, directory, tool);
        assert_eq!(report.verdict, Verdict::Failed, "{name}: {report:?}");
        for failure in &report.failures {
            let rerun = failure.rerun.as_ref().map_or("", |rerun| rerun.name.as_str());
            let fair = rerun.is_empty() || rerun.to_lowercase().contains(CULPRIT);
            assert!(fair, "{name} blames {rerun}");
        }
    }
}

#[test]
fn the_test_at_fault_is_named_where_the_output_tells_it() {
    let expectations = [
        ("cargo-test/abort-single", "tests::brings_the_process_down"),
        ("cargo-test/exit-zero-single", "tests::brings_the_process_down"),
        ("cargo-test/stack-overflow", "tests::brings_the_process_down"),
        ("nextest/abort", "tests::brings_the_process_down"),
        ("pytest/exit-zero-verbose", "exit0/test_sample.py::test_brings_the_process_down"),
        ("pytest/xdist-crash", "xdist/test_sample.py::test_brings_the_process_down"),
        ("unittest/exit-zero", "test_unit.Sample.test_brings_the_process_down"),
        ("go-test/exit-one", "example.com/sample/exit1/TestBringsTheProcessDown"),
        ("go-test/panic", "example.com/sample/pan/TestBringsTheProcessDown"),
        ("go-test/fatal", "example.com/sample/fatal/TestBringsTheProcessDown"),
    ];
    for (name, expected) in expectations {
        let tool = match name.split('/').next().unwrap() {
            "cargo-test" => ProjectTool::CargoTest,
            "nextest" => ProjectTool::Nextest,
            "pytest" => ProjectTool::Pytest,
            "unittest" => ProjectTool::Unittest,
            _ => ProjectTool::GoTest,
        };
        let report = report(name, name.split('/').next().unwrap(), tool);
        let names: Vec<&str> = report.failures.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, [expected], "{name}");
        assert_eq!(unnamed_parts(&report), [], "{name}");
    }
}

#[test]
fn nextest_itself_calls_a_test_that_exits_with_status_0_passed() {
    let report = report("nextest/exit-zero", "rust", ProjectTool::Nextest);
    assert_eq!((report.verdict, report.counts.passed), (Verdict::Passed, 5));
}

#[test]
fn the_binary_of_an_abort_is_selected_also_after_exit_status_0() {
    for name in ["cargo-test/abort", "cargo-test/exit-zero"] {
        let report = report(name, "rust", ProjectTool::CargoTest);
        let parts = unnamed_parts(&report);
        let part = |part: &Selector| (part.package.clone(), part.target.clone());
        let expected = (Some("aborting".to_owned()), Some("--lib".to_owned()));
        assert_eq!(parts.iter().map(part).collect::<Vec<_>>(), [expected], "{name}");
        assert_eq!((report.counts.passed, report.counts.errors), (3, 1), "{name}");
    }
}

#[test]
fn a_second_run_with_one_test_at_a_time_names_the_test() {
    let cases = [
        ("cargo-test/abort", "cargo-test/abort-single", "rust", ProjectTool::CargoTest),
        ("pytest/exit-zero", "pytest/exit-zero-verbose", "python", ProjectTool::Pytest),
        ("go-test/parallel-exit", "go-test/parallel-exit-single", "go", ProjectTool::GoTest),
    ];
    for (first, second, directory, tool) in cases {
        let mut found = report(first, directory, tool);
        let part = unnamed_parts(&found).remove(0);
        name_running_test(&mut found, &part, &report(second, directory, tool));
        assert_eq!(unnamed_parts(&found), [], "{first}");
        let rerun = found.failures[0].rerun.as_ref().unwrap();
        assert!(rerun.name.to_lowercase().contains(CULPRIT), "{rerun:?}");
    }
}

#[test]
fn a_second_run_that_passes_leaves_the_failure_and_says_so() {
    let mut found = report("cargo-test/abort", "rust", ProjectTool::CargoTest);
    let part = unnamed_parts(&found).remove(0);
    let passed = report("cargo-test/pass", "rust", ProjectTool::CargoTest);
    name_running_test(&mut found, &part, &passed);
    assert_eq!(found.verdict, Verdict::Failed);
    assert!(found.failures[0].message.ends_with("when run again, one at a time"), "{found:?}");
}

#[test]
fn second_runs_keep_the_filters_and_select_the_part() {
    let plan = |name: &str, directory: &str, tool| {
        let recorded = load(name);
        let invocation = recorded.invocation(directory, tool, serde_format(tool));
        let report = parse::tests(&invocation, &recorded.outcome());
        plan_one_at_a_time(&invocation, &unnamed_parts(&report)[0]).unwrap().argv.join(" ")
    };
    assert_eq!(
        plan("cargo-test/abort", "rust", ProjectTool::CargoTest),
        "cargo test --no-fail-fast --message-format=json -p aborting --lib -- --test-threads=1"
    );
    assert!(plan("pytest/exit-zero", "python", ProjectTool::Pytest).ends_with("pytest.xml -vvvv"));
    assert_eq!(
        plan("go-test/parallel-exit", "go", ProjectTool::GoTest),
        "go test -parallel=1 -json -count=1 ./parallel"
    );
}

#[test]
fn a_node_test_that_exits_is_a_failure_with_any_style_of_import() {
    let mut report = report("node-test/exit-zero", "node", ProjectTool::NodeTest);
    // The suite was announced and has no result.
    let names: Vec<&str> = report.failures.iter().map(|failure| failure.name.as_str()).collect();
    assert_eq!(names, ["outer"]);
    let workspace = lay_out(
        "-- node/exit/esm.test.mjs --\nimport * as runner from 'node:test';\n\
         runner.test('adds', () => process.exit(0));\n\
         -- node/exit/first.test.cjs --\nconst { test } = require('./helper');\ntest('a');\n\
         -- node/exit/helper.js --\nexports.test = require('node:test');\n",
    );
    check_unreported_files(&mut report, &workspace.root);
    assert_eq!(report.verdict, Verdict::Failed);
    let files: Vec<_> = report.build_errors.iter().filter_map(|one| one.file.as_deref()).collect();
    assert_eq!(files, ["node/exit/esm.test.mjs", "node/exit/first.test.cjs"]);
    assert_eq!((report.counts.passed, report.counts.errors), (1, 3));
}

#[test]
fn a_call_of_exit_under_jest_is_shown_with_its_place() {
    let report = report("jest/exit-zero", "node", ProjectTool::Jest);
    let found = &report.build_errors[0];
    assert_eq!(found.message, "process.exit called with \"0\"");
    assert_eq!((found.file.as_deref(), found.line), (Some("node/exit/jest.test.js"), Some(4)));
}

#[test]
fn a_crash_of_the_interpreter_is_shown_with_its_place() {
    let report = report("pytest/segfault", "python", ProjectTool::Pytest);
    let found = &report.failures[0];
    assert!(found.message.ends_with("Fatal Python error: Segmentation fault"), "{}", found.message);
    let place = (found.file.as_deref(), found.line);
    assert_eq!(place, (Some("python/segv/test_sample.py"), Some(10)));
}
