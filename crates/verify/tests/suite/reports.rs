//! Recorded outputs of real tools, read. Each snapshot was checked against the output.

use std::time::Duration;

use carrel_verify::ProjectTool;
use carrel_verify::parse::{
    self, CheckReport, CouldNotRunReason, Outcome, Termination, TestReport, Verdict, check, tests,
};
use carrel_verify::plan::{ReportFormat, TreeAccess};
use pretty_assertions::assert_eq;

use crate::recorded::{WORKSPACE, load};

fn test_report(name: &str, directory: &str, tool: ProjectTool, report: ReportFormat) -> TestReport {
    let recorded = load(name);
    tests(&recorded.invocation(directory, tool, report), &recorded.outcome())
}

fn check_report(
    name: &str,
    directory: &str,
    tool: ProjectTool,
    report: ReportFormat,
) -> CheckReport {
    let recorded = load(name);
    check(&recorded.invocation(directory, tool, report), &recorded.outcome())
}

macro_rules! test_reports {
    ($($test:ident: $name:literal in $directory:literal by $tool:ident as $report:ident;)*) => {
        $(#[test]
        fn $test() {
            insta::assert_json_snapshot!(test_report($name, $directory, ProjectTool::$tool, ReportFormat::$report));
        })*
    };
}

test_reports! {
    cargo_test_fail: "cargo-test/fail" in "rust" by CargoTest as CargoTest;
    cargo_test_pass: "cargo-test/pass" in "rust" by CargoTest as CargoTest;
    cargo_test_build_error: "cargo-test/build-error" in "rust/broken" by CargoTest as CargoTest;
    cargo_test_no_tests: "cargo-test/no-tests" in "rust" by CargoTest as CargoTest;
    nextest_fail: "nextest/fail" in "rust" by Nextest as Nextest;
    nextest_pass: "nextest/pass" in "rust" by Nextest as Nextest;
    nextest_build_error: "nextest/build-error" in "rust/broken" by Nextest as Nextest;
    nextest_no_tests: "nextest/no-tests" in "rust" by Nextest as Nextest;
    jest_fail: "jest/fail" in "node" by Jest as Jest;
    jest_pass: "jest/pass" in "node" by Jest as Jest;
    jest_build_error: "jest/build-error" in "node" by Jest as Jest;
    jest_no_tests: "jest/no-tests" in "node" by Jest as Jest;
    vitest_fail: "vitest/fail" in "node" by Vitest as Jest;
    vitest_pass: "vitest/pass" in "node" by Vitest as Jest;
    vitest_build_error: "vitest/build-error" in "node" by Vitest as Jest;
    vitest_no_tests: "vitest/no-tests" in "node" by Vitest as Jest;
    mocha_fail: "mocha/fail" in "node" by Mocha as Mocha;
    mocha_pass: "mocha/pass" in "node" by Mocha as Mocha;
    mocha_build_error: "mocha/build-error" in "node" by Mocha as Mocha;
    mocha_no_tests: "mocha/no-tests" in "node" by Mocha as Mocha;
    node_test_fail: "node-test/fail" in "node" by NodeTest as Tap;
    node_test_pass: "node-test/pass" in "node" by NodeTest as Tap;
    node_test_build_error: "node-test/build-error" in "node" by NodeTest as Tap;
    node_test_no_tests: "node-test/no-tests" in "node" by NodeTest as Tap;
    pytest_fail: "pytest/fail" in "python" by Pytest as Pytest;
    pytest_pass: "pytest/pass" in "python" by Pytest as Pytest;
    pytest_build_error: "pytest/build-error" in "python" by Pytest as Pytest;
    pytest_no_tests: "pytest/no-tests" in "python" by Pytest as Pytest;
    pytest_missing_file: "pytest/missing-file" in "python" by Pytest as Pytest;
    unittest_fail: "unittest/fail" in "python" by Unittest as Unittest;
    unittest_pass: "unittest/pass" in "python" by Unittest as Unittest;
    unittest_build_error: "unittest/build-error" in "python" by Unittest as Unittest;
    unittest_no_tests: "unittest/no-tests" in "python" by Unittest as Unittest;
    go_test_fail: "go-test/fail" in "go" by GoTest as GoTest;
    go_test_pass: "go-test/pass" in "go" by GoTest as GoTest;
    go_test_build_error: "go-test/build-error" in "go" by GoTest as GoTest;
    go_test_package_failure: "go-test/package-failure" in "go" by GoTest as GoTest;
    go_test_no_tests: "go-test/no-tests" in "go" by GoTest as GoTest;
    bun_test_fail: "bun-test/fail" in "bun" by BunTest as Bun;
    bun_test_pass: "bun-test/pass" in "bun" by BunTest as Bun;
    bun_test_build_error: "bun-test/build-error" in "bun" by BunTest as Bun;
    bun_test_no_tests: "bun-test/no-tests" in "bun" by BunTest as Bun;
    deno_test_fail: "deno-test/fail" in "deno" by DenoTest as Deno;
    deno_test_pass: "deno-test/pass" in "deno" by DenoTest as Deno;
    deno_test_build_error: "deno-test/build-error" in "deno" by DenoTest as Deno;
    deno_test_no_tests: "deno-test/no-tests" in "deno" by DenoTest as Deno;
    maven_offline: "maven/offline" in "java" by Maven as Junit;
    make_automake_fail: "make/automake-fail" in "c" by Make as Lines;
    rake_minitest_fail: "rake/minitest-fail" in "ruby" by Rake as Text;
    dune_ounit_pass: "dune/ounit-pass" in "ocaml" by Dune as Text;
    npm_script_jest_exit: "npm-script/jest-exit" in "node" by Script as Text;
    npm_script_tape_exit: "npm-script/tape-exit" in "node" by Script as Text;
    npm_script_tape_pass: "npm-script/tape-pass" in "node" by Script as Text;
}

macro_rules! check_reports {
    ($($test:ident: $name:literal in $directory:literal by $tool:ident as $report:ident;)*) => {
        $(#[test]
        fn $test() {
            insta::assert_json_snapshot!(check_report($name, $directory, ProjectTool::$tool, ReportFormat::$report));
        })*
    };
}

check_reports! {
    clippy_findings: "cargo-clippy/findings" in "rust" by Clippy as CargoMessages;
    clippy_clean: "cargo-clippy/clean" in "rust" by Clippy as CargoMessages;
    clippy_build_error: "cargo-clippy/build-error" in "rust/broken" by Clippy as CargoMessages;
    cargo_check_build_error: "cargo-check/build-error" in "rust/broken" by CargoCheck as CargoMessages;
    cargo_check_clean: "cargo-check/clean" in "rust" by CargoCheck as CargoMessages;
    rustfmt_unformatted: "rustfmt/unformatted" in "rust" by Rustfmt as Rustfmt;
    rustfmt_clean: "rustfmt/clean" in "rust" by Rustfmt as Rustfmt;
    rustfmt_syntax: "rustfmt/syntax" in "rust" by Rustfmt as Rustfmt;
    eslint_findings: "eslint/findings" in "node" by Eslint as Eslint;
    eslint_clean: "eslint/clean" in "node" by Eslint as Eslint;
    eslint_no_config: "eslint/no-config" in "node" by Eslint as Eslint;
    eslint_script_text: "eslint/script-text" in "node" by Script as Text;
    biome_findings: "biome/findings" in "node" by Biome as Biome;
    biome_clean: "biome/clean" in "node" by Biome as Biome;
    oxlint_findings: "oxlint/findings" in "node" by Oxlint as Oxlint;
    tsc_findings: "tsc/findings" in "node" by Tsc as Tsc;
    tsc_clean: "tsc/clean" in "node" by Tsc as Tsc;
    tsc_bad_config: "tsc/bad-config" in "node" by Tsc as Tsc;
    prettier_unformatted: "prettier/unformatted" in "node" by Prettier as Prettier;
    prettier_clean: "prettier/clean" in "node" by Prettier as Prettier;
    ruff_findings: "ruff/findings" in "python" by Ruff as Ruff;
    ruff_clean: "ruff/clean" in "python" by Ruff as Ruff;
    ruff_bad_option: "ruff/bad-option" in "python" by Ruff as Ruff;
    ruff_format_unformatted: "ruff-format/unformatted" in "python" by RuffFormat as RuffFormat;
    black_unformatted: "black/unformatted" in "python" by Black as Black;
    flake8_findings: "flake8/findings" in "python" by Flake8 as Flake8;
    mypy_findings: "mypy/findings" in "python" by Mypy as Mypy;
    mypy_notes: "mypy/notes" in "python" by Mypy as Mypy;
    mypy_clean: "mypy/clean" in "python" by Mypy as Mypy;
    mypy_syntax: "mypy/syntax" in "python" by Mypy as Mypy;
    pyright_findings: "pyright/findings" in "python" by Pyright as Pyright;
    deno_lint_findings: "deno-lint/findings" in "deno" by DenoLint as DenoLint;
    deno_lint_clean: "deno-lint/clean" in "deno" by DenoLint as DenoLint;
    deno_check_findings: "deno-check/findings" in "deno" by DenoCheck as DenoCheck;
    deno_fmt_unformatted: "deno-fmt/unformatted" in "deno" by DenoFmt as DenoFmt;
    go_vet_findings: "go-vet/findings" in "go" by GoVet as Lines;
    go_vet_clean: "go-vet/clean" in "go" by GoVet as Lines;
    gofmt_unformatted: "gofmt/unformatted" in "go" by Gofmt as FileList;
    gofmt_clean: "gofmt/clean" in "go" by Gofmt as FileList;
}

fn reason(verdict: &Verdict) -> String {
    match verdict {
        Verdict::CouldNotRun { reason } => reason.to_string(),
        Verdict::Passed | Verdict::Failed => panic!("{verdict:?}"),
    }
}

#[test]
fn a_missing_tool_is_named_and_never_zero_findings() {
    let cases = [
        ("missing/npx", ProjectTool::Eslint, ReportFormat::Eslint, "eslint"),
        ("missing/npm-exec", ProjectTool::Eslint, ReportFormat::Eslint, "eslint"),
        ("missing/pnpm-exec", ProjectTool::Eslint, ReportFormat::Eslint, "eslint"),
        ("missing/yarn-run", ProjectTool::Eslint, ReportFormat::Eslint, "eslint"),
        ("missing/bunx", ProjectTool::Eslint, ReportFormat::Eslint, "eslint"),
        ("missing/uv-run", ProjectTool::Pytest, ReportFormat::Pytest, "pytest"),
        ("missing/script-127", ProjectTool::Script, ReportFormat::Text, "eslint"),
        ("missing/python-module", ProjectTool::Pytest, ReportFormat::Pytest, "pytest"),
        ("missing/bundler", ProjectTool::Rake, ReportFormat::Text, "rake"),
        ("missing/cargo-nextest", ProjectTool::Nextest, ReportFormat::Nextest, "cargo nextest"),
    ];
    for (name, tool, report, expected) in cases {
        let recorded = load(name);
        let invocation = recorded.invocation("bare", tool, report);
        let expected = format!("{expected} is not installed; install it");
        assert_eq!(reason(&check(&invocation, &recorded.outcome()).verdict), expected, "{name}");
        assert_eq!(reason(&tests(&invocation, &recorded.outcome()).verdict), expected, "{name}");
        assert_eq!(reason(&parse::command(&invocation, &recorded.outcome())), expected, "{name}");
    }
}

#[test]
fn a_program_that_is_not_found_is_a_missing_tool() {
    let recorded = load("tsc/clean");
    let invocation = recorded.invocation("node", ProjectTool::Tsc, ReportFormat::Tsc);
    let report = check(&invocation, &recorded.outcome_after(Termination::NotFound));
    assert_eq!(reason(&report.verdict), "tsc is not installed; install it");
    let recorded = load("go-test/pass");
    let invocation = recorded.invocation("go", ProjectTool::GoTest, ReportFormat::GoTest);
    let report = tests(&invocation, &recorded.outcome_after(Termination::NotFound));
    assert_eq!(reason(&report.verdict), "go is not installed; install it");
}

#[test]
fn what_a_line_for_the_shell_lacks_is_not_the_shell() {
    for (name, expected) in [
        ("missing/python-module", "pytest is not installed"),
        ("go-test/pass", "a program of \"x | y -m\" is not installed"),
    ] {
        let recorded = load(name);
        let mut invocation = recorded.invocation("a", ProjectTool::Other, ReportFormat::Text);
        invocation.argv = ["bash", "-c", "--", "x | y -m"].map(str::to_owned).to_vec();
        let status = if name == "go-test/pass" { 127 } else { 1 };
        let report = tests(&invocation, &recorded.outcome_after(Termination::Exited(status)));
        let reason = reason(&report.verdict);
        assert!(reason.starts_with(expected), "{name}: {reason}");
    }
}

#[test]
fn tests_that_cannot_be_loaded_at_all_are_build_errors() {
    let conftest = "ImportError while loading conftest '/w/a/conftest.py'.\nconftest.py:1: in <module>\n    import nowhere\nE   ModuleNotFoundError: No module named 'nowhere'\n";
    let package = "lib.go:3:8: no required module provides package example.com/nowhere; to add it:\n\tgo get example.com/nowhere\n";
    let cases = [
        (ProjectTool::Pytest, ReportFormat::Pytest, 4, conftest, "a/conftest.py", 1),
        (ProjectTool::GoTest, ReportFormat::GoTest, 1, package, "a/lib.go", 3),
    ];
    for (tool, format, exit, stderr, file, line) in cases {
        let invocation = load("go-test/pass").invocation("a", tool, format);
        let outcome = Outcome {
            termination: Termination::Exited(exit),
            stdout: b"",
            stderr: stderr.as_bytes(),
            truncated: false,
            artifacts: &[],
            workspace: WORKSPACE,
        };
        let report = tests(&invocation, &outcome);
        assert_eq!(report.verdict, Verdict::Failed, "{tool:?}");
        let place = |finding: &parse::Finding| (finding.file.clone(), finding.line);
        let places: Vec<_> = report.build_errors.iter().map(place).collect();
        assert_eq!(places, [(Some(file.to_owned()), Some(line))]);
    }
}

#[test]
fn a_linter_that_is_killed_is_not_green() {
    let recorded = load("eslint/clean");
    let invocation = recorded.invocation("node", ProjectTool::Eslint, ReportFormat::Eslint);
    let killed = check(&invocation, &recorded.outcome_after(Termination::Signal(9)));
    assert_eq!(reason(&killed.verdict), "killed by signal 9");
    let late =
        check(&invocation, &recorded.outcome_after(Termination::TimedOut(Duration::from_mins(2))));
    assert_eq!(reason(&late.verdict), "timed out after 120s");
}

#[test]
fn a_run_that_is_killed_keeps_the_failures_it_had() {
    let recorded = load("cargo-test/fail");
    let invocation = recorded.invocation("rust", ProjectTool::CargoTest, ReportFormat::CargoTest);
    let report =
        tests(&invocation, &recorded.outcome_after(Termination::TimedOut(Duration::from_mins(5))));
    assert_eq!((report.verdict, report.counts.failed), (Verdict::Failed, 5));
    let recorded = load("cargo-test/pass");
    let report =
        tests(&invocation, &recorded.outcome_after(Termination::TimedOut(Duration::from_mins(5))));
    assert_eq!(reason(&report.verdict), "timed out after 300s");
}

/// Surefire runs `PriceTest`, then `ExitTest`, whose second test ends the virtual machine, and never comes to
/// `CartTest`.
#[test]
fn a_maven_test_that_ends_the_virtual_machine_is_a_failure_of_its_class() {
    for (name, exit) in [("maven/system-exit", "0"), ("maven/halt", "3")] {
        let recorded = String::from_utf8(load(name).stdout).unwrap();
        assert!(recorded.contains(&format!("[ERROR] Process Exit Code: {exit}\n")), "{recorded}");
        let report = test_report(name, "java", ProjectTool::Maven, ReportFormat::Junit);
        assert_eq!(report.verdict, Verdict::Failed, "{name}");
        let counts = report.counts;
        assert_eq!((counts.passed, counts.failed, counts.errors), (1, 0, 1), "{name}");
        assert_eq!((report.build_errors, report.omitted), (vec![], 0), "{name}");
        let [failure] = &report.failures[..] else { panic!("{name}: {:?}", report.failures) };
        assert_eq!(failure.name, "shop.ExitTest", "{name}");
        assert!(
            failure.message.ends_with("the forked virtual machine ended"),
            "{name}: {failure:?}"
        );
        let rerun = failure.rerun.as_ref().unwrap();
        assert_eq!(rerun.target.as_deref(), Some("shop.ExitTest"), "{name}");
    }
}

#[test]
fn a_report_that_is_not_there_is_no_pass() {
    for (tool, format) in
        [(ProjectTool::Eslint, ReportFormat::Eslint), (ProjectTool::Ruff, ReportFormat::Ruff)]
    {
        let recorded = load("tsc/clean");
        let report = check(&recorded.invocation("node", tool, format), &recorded.outcome());
        assert_eq!(report.verdict, Verdict::CouldNotRun { reason: CouldNotRunReason::NoReport });
    }
    let recorded = load("tsc/clean");
    let report = tests(
        &recorded.invocation("node", ProjectTool::Jest, ReportFormat::Jest),
        &recorded.outcome(),
    );
    assert_eq!(report.verdict, Verdict::CouldNotRun { reason: CouldNotRunReason::NoReport });
}

#[test]
fn a_report_that_was_cut_says_so_and_its_findings_count() {
    let cut = |name: &str, tool, format, exit| {
        let recorded = load(name);
        let half = |bytes: &[u8]| bytes[..bytes.len() * 3 / 4].to_vec();
        let artifacts: Vec<_> = recorded
            .artifacts
            .iter()
            .map(|file| parse::ArtifactFile { contents: half(&file.contents), ..file.clone() })
            .collect();
        let stdout = half(&recorded.stdout);
        let outcome = Outcome {
            stdout: &stdout,
            truncated: true,
            termination: Termination::Exited(exit),
            artifacts: &artifacts,
            ..recorded.outcome()
        };
        check(&recorded.invocation("node", tool, format), &outcome)
    };
    for (name, tool, format) in [
        ("biome/findings", ProjectTool::Biome, ReportFormat::Biome),
        ("ruff/findings", ProjectTool::Ruff, ReportFormat::Ruff),
        ("eslint/findings", ProjectTool::Eslint, ReportFormat::Eslint),
        ("mypy/findings", ProjectTool::Mypy, ReportFormat::Mypy),
    ] {
        let report = cut(name, tool, format, 1);
        assert_eq!(report.verdict, Verdict::Failed, "{name}: {report:?}");
        assert!(report.incomplete && !report.findings.is_empty(), "{name}");
    }
    // Exit status 0 with a part of the report is no verdict.
    let report = cut("ruff/clean", ProjectTool::Ruff, ReportFormat::Ruff, 0);
    assert_eq!(report.verdict, Verdict::CouldNotRun { reason: CouldNotRunReason::Cut });
}

#[test]
fn a_check_that_may_not_write_its_lock_file_names_it() {
    let recorded = load("cargo-clippy/no-lock-file");
    let mut invocation =
        recorded.invocation("rust", ProjectTool::Clippy, ReportFormat::CargoMessages);
    invocation.access = TreeAccess::ReadOnly;
    let report = check(&invocation, &recorded.outcome());
    let Verdict::CouldNotRun { reason } = report.verdict else { panic!("{report:?}") };
    assert_eq!(
        reason.to_string(),
        "Cargo.lock is missing or out of date, and a check may not write it; run `cargo \
         generate-lockfile`, or the tests once"
    );
}

#[test]
fn warnings_fail_a_check_only_for_clippy() {
    let clippy = check_report(
        "cargo-clippy/findings",
        "rust",
        ProjectTool::Clippy,
        ReportFormat::CargoMessages,
    );
    assert_eq!(clippy.verdict, Verdict::Failed);
    let recorded = load("oxlint/findings");
    let outcome = recorded.outcome_after(Termination::Exited(0));
    let report =
        check(&recorded.invocation("node", ProjectTool::Oxlint, ReportFormat::Oxlint), &outcome);
    // One of them is an error of syntax.
    assert_eq!(report.verdict, Verdict::Failed);
}

#[test]
fn a_file_that_is_not_in_style_is_a_finding_of_the_format_check() {
    let recorded = load("rustfmt/unformatted");
    let invocation = recorded.invocation("rust", ProjectTool::Rustfmt, ReportFormat::Rustfmt);
    let report = check(&invocation, &recorded.outcome());
    let files: Vec<_> =
        report.findings.iter().filter_map(|finding| finding.file.as_deref()).collect();
    assert_eq!((report.verdict, files), (Verdict::Failed, vec!["rust/two/src/ugly.rs"]));
}

#[test]
fn an_opaque_script_is_judged_by_its_exit_status_alone() {
    let recorded = load("eslint/script-text");
    let invocation = recorded.invocation("node", ProjectTool::Script, ReportFormat::Text);
    let passed = tests(&invocation, &recorded.outcome_after(Termination::Exited(0)));
    assert_eq!(passed.verdict, Verdict::Passed);
    let failed = tests(&invocation, &recorded.outcome());
    assert_eq!(failed.verdict, Verdict::Failed);
    assert!(failed.failures[0].message.contains("no-debugger"), "{:?}", failed.failures);
}

/// Written by hand after the documented form, for want of a repository to install maven's plugins from.
const SUREFIRE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="com.example.SumTest" tests="3" errors="1" skipped="1" failures="1">
  <testcase name="adds" classname="com.example.SumTest" time="0.01"/>
  <testcase name="addsWrongly" classname="com.example.SumTest" time="0.01">
    <failure message="one and two ==&gt; expected: &lt;4&gt; but was: &lt;3&gt;" type="org.opentest4j.AssertionFailedError"><![CDATA[org.opentest4j.AssertionFailedError: one and two ==> expected: <4> but was: <3>
	at org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:39)
	at com.example.SumTest.addsWrongly(SumTest.java:6)
]]></failure>
  </testcase>
  <testcase name="skipped" classname="com.example.SumTest"><skipped message="needs a network"/></testcase>
</testsuite>"#;

#[test]
fn reports_of_maven_are_read_from_the_module_they_lie_in() {
    let artifacts = [parse::ArtifactFile {
        name: "java/core/target/surefire-reports/TEST-com.example.SumTest.xml".to_owned(),
        contents: SUREFIRE.as_bytes().to_vec(),
    }];
    let recorded = load("maven/offline");
    let outcome = Outcome { artifacts: &artifacts, workspace: WORKSPACE, ..recorded.outcome() };
    let report =
        tests(&recorded.invocation("java", ProjectTool::Maven, ReportFormat::Junit), &outcome);
    insta::assert_json_snapshot!(report);
}

#[test]
fn reports_of_several_commands_are_put_together() {
    let pass = test_report("pytest/pass", "python", ProjectTool::Pytest, ReportFormat::Pytest);
    let none = test_report("pytest/no-tests", "python", ProjectTool::Pytest, ReportFormat::Pytest);
    let fail = test_report("pytest/fail", "python", ProjectTool::Pytest, ReportFormat::Pytest);
    let merged = TestReport::merge([pass.clone(), none]).unwrap();
    assert_eq!(merged.verdict, Verdict::CouldNotRun { reason: CouldNotRunReason::NoTests });
    let merged = TestReport::merge([pass, fail.clone()]).unwrap();
    assert_eq!((merged.verdict, merged.failures), (Verdict::Failed, fail.failures));
    assert_eq!(merged.counts.passed, fail.counts.passed + 1);
    assert_eq!(TestReport::merge([]), None);
}

/// Lines after the documented form of the linter, which is not installed where outputs are recorded.
const GOLANGCI: &str = "main.go:3:2: Error return value of `f.Close` is not checked (errcheck)
\tf.Close()
\t       ^
a/b.go:7: call (of a kind (that nests)) is bad (govet)
2 issues:
* errcheck: 1
";

#[test]
fn the_last_word_in_brackets_is_the_linter() {
    let recorded = load("go-vet/clean");
    let outcome =
        Outcome { stdout: GOLANGCI.as_bytes(), ..recorded.outcome_after(Termination::Exited(1)) };
    let report =
        check(&recorded.invocation("go", ProjectTool::Golangci, ReportFormat::Golangci), &outcome);
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|f| {
            (
                f.file.as_deref().unwrap(),
                f.line,
                f.column,
                f.rule.as_deref().unwrap(),
                f.message.as_str(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("go/a/b.go", Some(7), None, "govet", "call (of a kind (that nests)) is bad"),
            (
                "go/main.go",
                Some(3),
                Some(2),
                "errcheck",
                "Error return value of `f.Close` is not checked"
            ),
        ]
    );
}

#[test]
fn a_linter_whose_output_is_not_understood_is_not_green() {
    let recorded = load("go-vet/clean");
    let outcome =
        Outcome { stdout: b"something else\n", ..recorded.outcome_after(Termination::Exited(3)) };
    for format in
        [ReportFormat::Golangci, ReportFormat::Flake8, ReportFormat::Mypy, ReportFormat::Tsc]
    {
        let report = check(&recorded.invocation("go", ProjectTool::Golangci, format), &outcome);
        assert_eq!(reason(&report.verdict), "exit status 3: something else", "{format:?}");
    }
}
