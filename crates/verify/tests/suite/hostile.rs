//! Hostile project files and outputs.

use std::path::Path;
use std::time::{Duration, SystemTime};

use carrel_verify::parse::{
    self, ArtifactFile, CouldNotRunReason, MAX_FINDINGS, MAX_MESSAGE_BYTES, Outcome, Termination,
    Verdict,
};
use carrel_verify::plan::{CommandScope, Invocation, ReportFormat, Target, plan_check, plan_tests};
use carrel_verify::{ProfileField, ProjectTool, detect, detect_all};
use proptest::prelude::*;

use crate::fixture::{lay_out, load, write};

#[test]
fn a_marker_that_is_no_file_too_large_or_no_text_is_reported() {
    let workspace = lay_out("-- package.json/inner.txt --\n");
    assert_eq!(detect(&workspace.root, Path::new(".")).profiles, []);
    let directory = workspace.directory.path();
    write(directory, "Cargo.toml", vec![b' '; 2 * 1024 * 1024]);
    write(directory, "pyproject.toml", b"[project]\nname = \"\xff\"\n");
    let found = detect(&workspace.root, Path::new("."));
    let problems: Vec<String> =
        found.profiles.iter().flat_map(|p| &p.problems).map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "Cargo.toml: could not be read: file has 2097152 bytes, more than the limit of 1048576",
            "pyproject.toml: is not UTF-8 text",
        ]
    );
}

#[test]
fn a_link_that_leads_outside_is_no_marker() {
    let outside = lay_out("-- Cargo.toml --\n[package]\nname = \"outside\"\n");
    let workspace = lay_out("-- README.md --\n");
    let target = outside.directory.path().join("Cargo.toml");
    std::os::unix::fs::symlink(target, workspace.directory.path().join("Cargo.toml")).unwrap();
    assert_eq!(detect_all(&workspace.root).profiles, []);
}

#[test]
fn a_script_never_becomes_more_than_words() {
    let text = "-- package.json --\n{\"name\": \"a\", \"scripts\": {\"test\": \"jest --config '$(rm -rf /)' `x`\"}}\n";
    let workspace = lay_out(text);
    let command =
        detect(&workspace.root, Path::new(".")).profiles[0].commands[&ProfileField::Test].clone();
    assert_eq!(
        (command.tool, command.argv.join(" ").as_str()),
        (ProjectTool::Script, "npm run test")
    );
}

fn invocation(report: ReportFormat) -> Invocation {
    Invocation {
        argv: vec!["tool".to_owned()],
        directory: "project".to_owned(),
        environment: Vec::new(),
        report,
        artifacts: Vec::new(),
        tool: ProjectTool::Other,
        base: "project".to_owned(),
        module: Some("example.com/x".to_owned()),
        install_hint: String::new(),
        access: carrel_verify::plan::TreeAccess::ReadWrite,
    }
}

#[test]
fn a_report_of_node_without_its_end_is_no_report() {
    let judged = |tap: &str| {
        let file = ArtifactFile { name: "node.tap".to_owned(), contents: tap.into() };
        let outcome = Outcome {
            termination: Termination::Exited(0),
            stdout: b"",
            stderr: b"",
            truncated: false,
            artifacts: &[file],
            workspace: "/w",
        };
        parse::tests(&invocation(ReportFormat::Tap), &outcome).verdict
    };
    let whole = "TAP version 13\n# Subtest: a\nok 1 - a\n1..1\n# tests 1\n";
    assert_eq!(judged(whole), Verdict::Passed);
    let (broken_off, _) = whole.split_once("1..1").unwrap();
    assert_eq!(judged(broken_off), Verdict::CouldNotRun { reason: CouldNotRunReason::NoReport });
}

const FORMATS: [ReportFormat; 35] = [
    ReportFormat::CargoTest,
    ReportFormat::Nextest,
    ReportFormat::CargoMessages,
    ReportFormat::Rustfmt,
    ReportFormat::Jest,
    ReportFormat::Mocha,
    ReportFormat::Tap,
    ReportFormat::Pytest,
    ReportFormat::Unittest,
    ReportFormat::Junit,
    ReportFormat::Rspec,
    ReportFormat::Eslint,
    ReportFormat::Biome,
    ReportFormat::Oxlint,
    ReportFormat::Prettier,
    ReportFormat::Tsc,
    ReportFormat::Ruff,
    ReportFormat::RuffFormat,
    ReportFormat::Black,
    ReportFormat::Flake8,
    ReportFormat::Pylint,
    ReportFormat::Mypy,
    ReportFormat::Pyright,
    ReportFormat::GoTest,
    ReportFormat::Golangci,
    ReportFormat::FileList,
    ReportFormat::DenoLint,
    ReportFormat::Rubocop,
    ReportFormat::Phpstan,
    ReportFormat::Lines,
    ReportFormat::Text,
    ReportFormat::Bun,
    ReportFormat::Deno,
    ReportFormat::DenoCheck,
    ReportFormat::DenoFmt,
];

/// Pieces that parsers look for, to be put together in ways that no tool would.
const PIECES: [&str; 40] = [
    "running 3 tests\n",
    "test a ... ok\n",
    "test a ... FAILED\n",
    "failures:\n",
    "    a\n",
    "---- a stdout ----\n",
    "test result: FAILED. 1 passed; 2 failed;",
    "thread 'a' panicked at x.rs:1:2:\n",
    "TAP version 13\n",
    "not ok 1 - a\n",
    "  ---\n",
    "  ...\n",
    "  error: |-\n",
    "# Subtest: ä\n",
    "<testcase name='a' classname='b.c'>",
    "<failure message='m'>",
    "</failure></testcase>",
    "<![CDATA[",
    "{\"reason\":\"compiler-message\",\"message\":{}}\n",
    "{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"T/é\"}\n",
    "[{\"filePath\":\"/w/a\",\"messages\":[{}]}]\n",
    "{\"diagnostics\":[{}]}",
    "{\"stats\":{},\"failures\":[{}]}",
    "{\"testResults\":[{\"assertionResults\":[{\"status\":\"failed\"}]}]}",
    "FAIL: x (y.Z)\n",
    "======================================================================\n",
    "----------------------------------------------------------------------\n",
    "Ran 9 tests in 1s\n",
    "a.py:1:2: error: m  [c]\n",
    "a.ts(1,2): error TS1: m\n",
    "error[E1]: m\n",
    " --> é.rs:1:2\n",
    "[warn] a.js\n",
    "Diff in é:1:\n",
    "vet: x.go:1:2: m\n",
    "\u{1b}[",
    "\u{0}",
    "é",
    ": ",
    "\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_output_makes_a_parser_panic_or_a_killed_command_pass(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..24),
        noise in "\\PC{0,40}",
        exit in 0..3_i32,
    ) {
        let text = pieces.concat() + &noise;
        let artifacts = [ArtifactFile { name: "a.xml".to_owned(), contents: text.clone().into_bytes() }];
        for format in FORMATS {
            let invocation = invocation(format);
            for (termination, artifacts) in [(Termination::Exited(exit), &artifacts[..]), (Termination::Signal(9), &[])] {
                let outcome = Outcome {
                    termination: termination.clone(),
                    stdout: text.as_bytes(),
                    stderr: text.as_bytes(),
                    truncated: false,
                    artifacts,
                    workspace: "/w",
                };
                let tests = parse::tests(&invocation, &outcome);
                let lint = parse::check(&invocation, &outcome);
                if termination != Termination::Exited(0) {
                    prop_assert_ne!(tests.verdict, parse::Verdict::Passed);
                    prop_assert_ne!(lint.verdict, parse::Verdict::Passed);
                }
            }
        }
    }
}

#[test]
fn a_flood_of_findings_is_bounded_and_counted() {
    let text = "a.c:1:2: error: m\n".repeat(3);
    let line = |n: usize| format!("a.c:{n}:1: error: {}\n", "x".repeat(9_000));
    let many = (0..5_000).map(line).collect::<Vec<_>>().concat();
    let outcome = |text: &'static str| Outcome {
        termination: Termination::Exited(1),
        stdout: text.as_bytes(),
        stderr: b"",
        truncated: false,
        artifacts: &[],
        workspace: "/w",
    };
    let report = parse::check(&invocation(ReportFormat::Lines), &outcome(text.leak()));
    assert_eq!(report.findings.len(), 1, "the same line is one finding");
    let report = parse::check(&invocation(ReportFormat::Lines), &outcome(many.leak()));
    assert_eq!((report.findings.len(), report.omitted), (MAX_FINDINGS, 5_000 - MAX_FINDINGS));
    assert!(report.findings[0].message.len() <= MAX_MESSAGE_BYTES + 3);
}

#[test]
fn only_reports_of_this_run_are_read() {
    let workspace = load("java_kotlin");
    let profile = &detect(&workspace.root, Path::new("maven-app")).profiles[0];
    let plan = plan_tests(profile, &Target::default()).unwrap().remove(0);
    let report = "maven-app/a/target/surefire-reports/TEST-x.xml";
    write(workspace.directory.path(), report, "<testsuite/>");
    write(workspace.directory.path(), "maven-app/a/target/surefire-reports/x.txt", "");
    let now = SystemTime::now();
    let names = |began| -> Vec<String> {
        parse::project_artifacts(&workspace.root, &plan, began)
            .into_iter()
            .map(|file| file.name)
            .collect()
    };
    assert_eq!(names(now - Duration::from_mins(1)), [report]);
    assert_eq!(names(now + Duration::from_mins(1)), Vec::<String>::new());
    let check = plan_check(profile, ProfileField::Typecheck, CommandScope::Project).unwrap();
    assert_eq!(check.report, ReportFormat::Junit);
}
