//! The report of Deno, in the manner of `JUnit`.

use crate::parse::context::Context;
use crate::parse::formats::{deno, javascript};
use crate::parse::report::Failure;
use crate::parse::test::TestResults;
use crate::parse::text;
use crate::plan::{ANCESTOR, Selector};

use super::junit::{Case, Ending, cases, count};

pub(super) fn read(context: &Context<'_>) -> TestResults {
    let mut parsed = TestResults { unreadable: !context.has_files(), ..TestResults::default() };
    parsed.no_tests = context.stderr.contains("No test modules found");
    for (_, document) in context.files() {
        let all = cases(&document);
        for case in &all {
            let step_failed = |other: &Case| {
                other.class == case.class
                    && other.ending == Ending::Failed
                    && other
                        .name
                        .strip_prefix(&case.name)
                        .is_some_and(|rest| rest.starts_with(ANCESTOR))
            };
            // A test fails with its steps.
            if case.ending == Ending::Failed && all.iter().any(step_failed) {
                continue;
            }
            count(&mut parsed.counts, case.ending);
            match case.ending {
                Ending::Failed | Ending::Error => parsed.failures.push(failure(context, case)),
                Ending::Passed | Ending::Skipped => {}
            }
        }
    }
    if parsed.unreadable && !context.succeeded() {
        parsed.build_errors = deno::check(context);
        if parsed.build_errors.is_empty() {
            parsed.build_errors.extend(javascript::crash(context));
        }
    }
    parsed
}

fn failure(context: &Context<'_>, case: &Case) -> Failure {
    let file = context.file(&case.class);
    let place = text::stack_place(context, &case.text).filter(|(found, _)| *found == file);
    // Steps cannot be chosen, only the test around them.
    let test = case.name.split(ANCESTOR).next().unwrap_or(&case.name);
    Failure {
        name: case.name.clone(),
        line: place.map(|(_, line)| line).or(case.line),
        message: text::without_trace(&case.message),
        diff: text::diff(&case.message),
        rerun: Some(Selector { file: Some(file.clone()), ..context.selector(test) }),
        file: Some(file),
    }
}
