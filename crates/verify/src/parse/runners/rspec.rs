//! The JSON report of `RSpec`. Errors outside of examples, such as syntax errors, are counted in
//! the summary and become build errors.

use serde_json::Value;

use crate::parse::{Failure, Finding, ParseContext, TestResults, text};

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let Some(report) = text::json(&context.report()) else {
        return TestResults { unreadable: true, ..TestResults::default() };
    };
    let mut parsed = TestResults::default();
    for example in report["examples"].as_array().into_iter().flatten() {
        match example["status"].as_str() {
            Some("passed") => parsed.counts.passed += 1,
            Some("failed") => {
                parsed.counts.failed += 1;
                parsed.failures.push(failure(context, example));
            }
            _ => parsed.counts.skipped += 1,
        }
    }
    let outside = report["summary"]["errors_outside_of_examples_count"].as_u64().unwrap_or(0);
    if outside > 0 {
        parsed.counts.errors += outside;
        let description =
            report["messages"].as_array().into_iter().flatten().filter_map(Value::as_str);
        parsed.build_errors = description.map(|line| Finding::error(line.trim())).collect();
    }
    parsed
}

fn failure(context: &ParseContext<'_>, example: &Value) -> Failure {
    let file = example["file_path"].as_str().map(|file| context.file(file));
    let message = example["exception"]["message"].as_str().unwrap_or_default().trim();
    let id = example["id"].as_str().unwrap_or_default().to_owned();
    let failure = context.failure(id, file, example["line_number"].as_u64(), message);
    Failure {
        name: example["full_description"].as_str().unwrap_or_default().to_owned(),
        message: text::truncated(message),
        ..failure
    }
}
