//! The JSON report of Jest, which Vitest writes too.
//!
//! A suite that failed without a failed test could not be loaded, and becomes a build error. Runs
//! without tests are recognised by the message of the runner. Without a report, the error with
//! which Node ended is the build error.

use serde_json::Value;

use crate::parse::formats::node_crash;
use crate::parse::{Failure, Finding, ParseContext, Severity, TestResults, text};
use crate::paths;
use crate::tool::ProjectTool;

const CUT_OFF: &str = "the process ended before the results of all tests in this file";

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let mut parsed = TestResults { no_tests: says_no_tests(context), ..TestResults::default() };
    match text::document(context, &context.report()) {
        Some(report) => {
            parsed.unreadable = context.truncated;
            for suite in report["testResults"].as_array().into_iter().flatten() {
                read_suite(context, suite, &mut parsed);
            }
        }
        None => {
            parsed.crashed(node_crash::exit_call(context).or_else(|| node_crash::crash(context)));
        }
    }
    parsed
}

fn says_no_tests(context: &ParseContext<'_>) -> bool {
    let says = |text: &str| text.contains("No tests found") || text.contains("No test files found");
    says(&context.stderr) || says(&context.stdout)
}

fn read_suite(context: &ParseContext<'_>, suite: &Value, parsed: &mut TestResults) {
    let file = context.file(suite["name"].as_str().unwrap_or_default());
    let tests = suite["assertionResults"].as_array().map(Vec::as_slice).unwrap_or_default();
    for test in tests {
        match test["status"].as_str() {
            Some("passed") => parsed.counts.passed += 1,
            Some("failed") => {
                parsed.counts.failed += 1;
                parsed.failures.push(failure(context, &file, test));
            }
            _ => parsed.counts.skipped += 1,
        }
    }
    if is_cut_off(context, tests) {
        parsed.counts.errors += 1;
        parsed.build_errors.push(Finding::error(CUT_OFF).at(file.clone(), None, None));
    }
    let message = suite["message"].as_str().unwrap_or_default();
    let broken = suite["status"] == "failed" && tests.iter().all(|test| test["status"] != "failed");
    if broken {
        parsed.counts.errors += 1;
        parsed.build_errors.push(broken_suite(context, &file, message));
    }
}

/// Returns true if a worker of Vitest ended before the tests of a file had results, which Vitest
/// reports as pending ones of a file that passed.
fn is_cut_off(context: &ParseContext<'_>, tests: &[Value]) -> bool {
    let lost = ["Worker exited unexpectedly", "Worker forks emitted error"];
    context.invocation.tool == ProjectTool::Vitest
        && !context.succeeded()
        && lost.iter().any(|words| context.stderr.contains(words))
        && tests.iter().any(|test| test["status"] == "pending")
}

fn failure(context: &ParseContext<'_>, file: &str, test: &Value) -> Failure {
    let messages =
        test["failureMessages"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let messages: Vec<&str> = messages.collect();
    let message = messages.join("\n\n");
    let line = text::stack_location(context, &message)
        .filter(|(found, _)| found == file)
        .map(|(_, line)| line)
        .or_else(|| test["location"]["line"].as_u64());
    // Vitest writes a space before a name without parents.
    let name = test["fullName"].as_str().unwrap_or_default().trim().to_owned();
    context.failure(name, Some(file.to_owned()), line, &message)
}

fn broken_suite(context: &ParseContext<'_>, file: &str, message: &str) -> Finding {
    let position = node_crash::syntax_location(message).or_else(|| named_location(file, message));
    let (line, column) = position.unzip();
    let thrown = || text::stack_location(context, message).filter(|(found, _)| found == file);
    let line = line.or_else(|| thrown().map(|(_, line)| line));
    let error = message.lines().map(str::trim).find(|line| line.contains("Error: "));
    let description = error.map_or_else(|| text::without_trace(message), text::truncated);
    Finding::new(Severity::Error, description).at(file.to_owned(), line, column)
}

/// Returns the position of `name.js:2:10` anywhere in a message.
fn named_location(file: &str, message: &str) -> Option<(u64, u64)> {
    message.split_whitespace().find_map(|word| {
        let (path, line, column) = text::location(word)?;
        (paths::name(path) == paths::name(file)).then_some((line, column?))
    })
}
