//! Text output of Python's unittest, which has no machine-readable report.
//!
//! Failures are separated by lines of `=`, and the last lines contain the counts. Output without
//! `Ran N tests` is unreadable: the process ended before its summary, and the last line names the
//! test that ended it. A module that could not be imported appears as a test of the class
//! `_FailedTest` and becomes a build error.

use crate::parse::{Counts, Failure, Finding, ParseContext, TestResults, text};

use super::pytest::traceback_location;

const DOUBLE: &str = "======================================================================";

const SINGLE: &str = "----------------------------------------------------------------------";

/// Class under which the loader reports a module that it could not import.
const NOT_LOADED: &str = "unittest.loader._FailedTest";

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let output = &context.stderr;
    let mut parsed = TestResults { counts: counts(output), ..TestResults::default() };
    parsed.unreadable = !output.contains("\nRan ") && !output.starts_with("Ran ");
    parsed.no_tests = output.contains("NO TESTS RAN");
    if parsed.unreadable && context.ended_by_itself() && !context.truncated {
        let running = output.lines().rev().find_map(|line| line.trim_end().strip_suffix(" ..."));
        if let Some(title) = running.filter(|title| title.contains(" (")) {
            let name = identifier(title);
            parsed.counts.errors += 1;
            let ok = output.lines().filter(|line| line.ends_with(" ... ok")).count();
            parsed.counts.passed = ok as u64;
            parsed.failures.push(Failure::ended_early(&name, context.selector(&*name), None));
        }
    }
    for block in output.split(DOUBLE).skip(1) {
        let Some((head, body)) = block.split_once(SINGLE) else { continue };
        let body = body.split(SINGLE).next().unwrap_or(body).trim();
        let head = head.trim().lines().next().unwrap_or_default();
        let Some((_, title)) = head.split_once(": ") else { continue };
        if title.contains(NOT_LOADED) {
            parsed.build_errors.push(not_loaded(context, title, body));
        } else {
            parsed.failures.push(failure(context, title, body));
        }
    }
    parsed
}

/// Reads `Ran 5 tests in 0.001s` and `FAILED (failures=2, errors=1, skipped=1)`.
fn counts(output: &str) -> Counts {
    let ran = output
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse().ok());
    let summary =
        output.lines().rev().find(|line| line.starts_with("FAILED") || line.starts_with("OK"));
    let number = |name: &str| -> u64 {
        let inner = summary
            .and_then(|line| line.split_once('('))
            .map_or("", |(_, inner)| inner.trim_end_matches(')'));
        let value = inner.split(", ").find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    let failed = number("failures");
    let errors = number("errors");
    let skipped = number("skipped");
    let ran: u64 = ran.unwrap_or(0);
    // Each failed subtest counts as a failure, so there may be more failures than tests.
    Counts { passed: ran.saturating_sub(failed + errors + skipped), failed, skipped, errors }
}

fn failure(context: &ParseContext<'_>, title: &str, body: &str) -> Failure {
    let (file, line) = traceback_location(context, body).unzip();
    let failure = context.failure(identifier(title), file, line, message(body));
    Failure { message: text::truncated(message(body)), ..failure }
}

/// Reads `test_a (module.Class.test_a)`, or `test_a (module.Class)` before Python 3.11; the
/// parameters of a subtest may follow.
fn identifier(title: &str) -> String {
    let Some((method, rest)) = title.split_once(" (") else { return title.to_owned() };
    let inner = rest.split(')').next().unwrap_or(rest);
    if inner.rsplit('.').next() == Some(method) {
        inner.to_owned()
    } else {
        format!("{inner}.{method}")
    }
}

/// Returns the message after the last frame of a traceback.
fn message(body: &str) -> &str {
    let is_frame = |line: &str| line.starts_with(' ') || line.starts_with("Traceback ");
    let mut offset = 0;
    let mut start = 0;
    for line in body.split_inclusive('\n') {
        let frame = line.starts_with("  File \"") || line.starts_with("Traceback ");
        offset += line.len();
        if frame {
            start = offset;
        }
    }
    let code = body[start..].split_inclusive('\n').take_while(|line| is_frame(line)).map(str::len);
    &body[start + code.sum::<usize>()..]
}

fn not_loaded(context: &ParseContext<'_>, title: &str, body: &str) -> Finding {
    let error = body.lines().rev().find(|line| line.contains("Error"));
    Finding::error(error.unwrap_or(title)).at_line(traceback_location(context, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_old_and_new_versions_are_the_same() {
        assert_eq!(identifier("test_a (m.C.test_a)"), "m.C.test_a");
        assert_eq!(identifier("test_a (m.C)"), "m.C.test_a");
        assert_eq!(identifier("test_a (m.C.test_a) (n=1)"), "m.C.test_a");
    }
}
