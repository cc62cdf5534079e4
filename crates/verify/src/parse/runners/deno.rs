//! The `JUnit` report of Deno.
//!
//! Steps are listed beside their test, with names joined by ` > `. Without a report, errors of the
//! type checker or the error with which Deno ended are build errors.

use crate::parse::formats::{deno, node_crash};
use crate::parse::outcome::ParseContext;
use crate::parse::report::Failure;
use crate::parse::test_verdict::TestResults;
use crate::parse::text;
use crate::plan::{ANCESTOR, Selector};

use super::junit::{CaseStatus, TestCase, TestCases, cases, count};

pub(super) fn read(context: &ParseContext<'_>) -> TestResults {
    let mut parsed = TestResults { unreadable: !context.has_files(), ..TestResults::default() };
    parsed.no_tests = context.stderr.contains("No test modules found");
    for (_, document) in context.files() {
        let TestCases { cases, complete } = cases(&document);
        parsed.unreadable |= !complete;
        for case in &cases {
            let step_failed = |other: &TestCase| {
                other.class == case.class
                    && other.status == CaseStatus::Failed
                    && other
                        .name
                        .strip_prefix(&case.name)
                        .is_some_and(|rest| rest.starts_with(ANCESTOR))
            };
            // A test with a failed step is counted by the step alone.
            if case.status == CaseStatus::Failed && cases.iter().any(step_failed) {
                continue;
            }
            count(&mut parsed.counts, case.status);
            match case.status {
                CaseStatus::Failed | CaseStatus::Error => {
                    parsed.failures.push(failure(context, case));
                }
                CaseStatus::Passed | CaseStatus::Skipped => {}
            }
        }
    }
    if !context.has_files() && !context.succeeded() {
        parsed.build_errors = deno::check(context);
        if parsed.build_errors.is_empty() {
            parsed.build_errors.extend(node_crash::crash(context));
        }
    }
    parsed
}

fn failure(context: &ParseContext<'_>, case: &TestCase) -> Failure {
    let file = context.file(&case.class);
    let location = text::stack_location(context, &case.text).filter(|(found, _)| *found == file);
    // Steps cannot be selected, only the test that contains them.
    let test = case.name.split(ANCESTOR).next().unwrap_or(&case.name);
    Failure {
        name: case.name.clone(),
        line: location.map(|(_, line)| line).or(case.line),
        message: text::without_trace(&case.message),
        diff: text::diff(&case.message),
        rerun: Some(Selector { file: Some(file.clone()), ..context.selector(test) }),
        file: Some(file),
    }
}
