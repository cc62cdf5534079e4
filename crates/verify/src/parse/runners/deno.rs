//! The `JUnit` report of Deno.
//!
//! Steps are listed beside their test, with names joined by ` > `. Without a report, errors of the
//! type checker or the error with which Deno ended are build errors.

use crate::parse::formats::{compiler_lines, node_crash};
use crate::parse::{Failure, ParseContext, TestResults, text};
use crate::plan::{ANCESTOR, Selector};

use super::junit::{CaseStatus, TestCase, failed_cases};

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let (mut parsed, failed) = failed_cases(context);
    parsed.no_tests = context.stderr.contains("No test modules found");
    for (_, case) in &failed {
        let is_step = |(_, other): &(&str, TestCase)| {
            let step = other.name.strip_prefix(&case.name);
            other.class == case.class
                && other.status == CaseStatus::Failed
                && step.is_some_and(|rest| rest.starts_with(ANCESTOR))
        };
        // A test with a failed step is counted by the step alone.
        if case.status == CaseStatus::Failed && failed.iter().any(is_step) {
            parsed.counts.failed -= 1;
        } else {
            parsed.failures.push(failure(context, case));
        }
    }
    if !context.has_files() && !context.succeeded() {
        parsed.build_errors = compiler_lines::deno(context);
        if parsed.build_errors.is_empty() {
            parsed.build_errors.extend(node_crash::crash(context));
        }
    }
    parsed
}

fn failure(context: &ParseContext<'_>, case: &TestCase) -> Failure {
    let file = context.file(&case.class);
    let location = text::stack_location(context, &case.text).filter(|(found, _)| *found == file);
    let line = location.map(|(_, line)| line).or(case.line);
    // Steps cannot be selected, only the test that contains them.
    let test = case.name.split(ANCESTOR).next().unwrap_or(&case.name);
    let rerun = Selector { file: Some(file.clone()), ..context.selector(test) };
    let failure = context.failure(case.name.clone(), Some(file), line, &case.message);
    Failure { rerun: Some(rerun), ..failure }
}
