//! The `JUnit` report of Bun.
//!
//! Errors outside of tests are missing in the report and are read from standard error, where each
//! follows a fixed line.

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::parse::report::Failure;
use crate::parse::test_verdict::TestResults;
use crate::parse::text;
use crate::plan::Selector;

use super::junit::{CaseStatus, TestCase, cases, count};

/// Line above an error outside of tests, such as a syntax error.
const OUTSIDE: &str = "# Unhandled error between tests";

pub(super) fn read(context: &ParseContext<'_>) -> TestResults {
    let mut parsed = TestResults { unreadable: !context.has_files(), ..TestResults::default() };
    parsed.no_tests =
        context.stderr.contains("matched 0 tests") || context.stderr.contains("No tests found");
    for (_, document) in context.files() {
        let report = cases(&document);
        parsed.unreadable |= !report.complete;
        for case in report.cases {
            count(&mut parsed.counts, case.status);
            match case.status {
                CaseStatus::Failed | CaseStatus::Error => {
                    parsed.failures.push(failure(context, &case));
                }
                CaseStatus::Passed | CaseStatus::Skipped => {}
            }
        }
    }
    parsed.build_errors =
        context.stderr.split(OUTSIDE).skip(1).map(|rest| broken(context, rest)).collect();
    parsed.counts.errors += parsed.build_errors.len() as u64;
    parsed
}

fn failure(context: &ParseContext<'_>, case: &TestCase) -> Failure {
    let file = case.file.as_deref().map(|file| context.file(file));
    // Suites are joined by ` > ` in the report and by spaces in name patterns.
    let name = format!("{} {}", case.class.replace(" > ", " "), case.name).trim().to_owned();
    let line = text::stack_location(context, &case.text).map(|(_, line)| line).or(case.line);
    Failure {
        rerun: Some(Selector { file: file.clone(), ..context.selector(name.clone()) }),
        name,
        line,
        file,
        message: text::without_trace(&case.message),
        diff: text::diff(&case.message),
    }
}

fn broken(context: &ParseContext<'_>, rest: &str) -> Finding {
    let message = rest.lines().find_map(|line| line.trim().strip_prefix("error: "));
    let finding =
        Finding::new(Severity::Error, text::truncated(message.unwrap_or("error outside of tests")));
    match text::stack_location(context, rest) {
        Some((file, line)) => finding.at(file, Some(line), None),
        None => finding,
    }
}
