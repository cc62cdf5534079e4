//! The `JUnit` report of Bun.
//!
//! Errors outside of tests are missing in the report and are read from standard error, where each
//! follows a fixed line.

use crate::parse::{Failure, Finding, ParseContext, TestResults, text};

use super::junit::{TestCase, failed_cases};

/// Line above an error outside of tests, such as a syntax error.
const OUTSIDE: &str = "# Unhandled error between tests";

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let (mut parsed, failed) = failed_cases(context);
    parsed.no_tests =
        context.stderr.contains("matched 0 tests") || context.stderr.contains("No tests found");
    parsed.failures = failed.iter().map(|(_, case)| failure(context, case)).collect();
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
    context.failure(name, file, line, &case.message)
}

fn broken(context: &ParseContext<'_>, rest: &str) -> Finding {
    let message = rest.lines().find_map(|line| line.trim().strip_prefix("error: "));
    Finding::error(message.unwrap_or("error outside of tests"))
        .at_line(text::stack_location(context, rest))
}
