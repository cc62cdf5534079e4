//! The `JUnit` report of pytest, in the `xunit1` family, which contains file names.
//!
//! Modules that could not be collected are errors with a fixed message and become build errors. A
//! broken `conftest.py` ends pytest before it writes a report; its traceback is on standard error.

use crate::parse::{Failure, Finding, ParseContext, TestResults, text};
use crate::plan::Selector;

use super::junit::{CaseStatus, TestCase, failed_cases};

/// Indentation of an explanation after its `E`.
const INDENT: usize = 7;

const NO_TESTS: i32 = 5;

/// Exit statuses of pytest itself: interrupted, an internal error, wrong usage, no tests.
const OWN_STATUSES: [i32; 4] = [2, 3, 4, NO_TESTS];

/// Start of the output if `conftest.py` cannot be imported; no report is written then.
const BROKEN_SETTINGS: &str = "ImportError while loading conftest ";

pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    let (mut parsed, failed) = failed_cases(context);
    parsed.no_tests = context.exit() == Some(NO_TESTS);
    for (_, case) in &failed {
        if case.status == CaseStatus::Error && case.message == "collection failure" {
            parsed.build_errors.push(not_collected(context, case));
        } else {
            parsed.failures.push(failure(context, case));
        }
    }
    if !context.has_files() && context.stderr.starts_with(BROKEN_SETTINGS) {
        let case = TestCase { text: context.stderr.to_string(), ..TestCase::default() };
        parsed.build_errors.push(not_collected(context, &case));
    }
    if !context.has_files() && ended_during_tests(context) {
        parsed.counts.errors += 1;
        parsed.failures.push(ended_early(context));
    }
    parsed
}

/// Returns true if a session has collected tests and ended without its summary: by `os._exit`, a
/// crash of the interpreter, or an abort.
fn ended_during_tests(context: &ParseContext<'_>) -> bool {
    let status = context.exit();
    let own_status = status.is_some_and(|status| OWN_STATUSES.contains(&status));
    let collected = context.stdout.lines().any(|line| {
        let count = line.split_once("collected ").and_then(|(_, rest)| rest.split(' ').next());
        count.and_then(|count| count.parse::<u64>().ok()).is_some_and(|count| count > 0)
    });
    let has_summary = context.stdout.lines().any(|line| {
        line.starts_with('=') && [" passed", " failed", " error"].iter().any(|w| line.contains(w))
    });
    collected && !has_summary && !own_status && context.ended_by_itself() && !context.truncated
}

/// Creates the failure of the running test, which is known if the session is verbose; otherwise the
/// failure stands for the session, and its selector has no name.
fn ended_early(context: &ParseContext<'_>) -> Failure {
    let last = context.stdout.lines().next_back().unwrap_or_default();
    let is_node = |line: &&str| line.contains("::") && line.ends_with(' ');
    let running = Some(last).filter(is_node).map(str::trim);
    let fatal = context.stderr.lines().find(|line| line.starts_with("Fatal Python error: "));
    let place = fatal.and_then(|_| fatal_location(context));
    let file = running.and_then(|node| node.split("::").next()).map(|file| context.file(file));
    let rerun = Selector { file, ..context.selector(running.unwrap_or_default()) };
    let failure = Failure::ended_early(running.unwrap_or("pytest"), rerun, fatal);
    match place {
        Some((file, line)) => Failure { file: Some(file), line: Some(line), ..failure },
        None => failure,
    }
}

/// Returns the innermost frame of user code that a crash of the interpreter lists.
fn fatal_location(context: &ParseContext<'_>) -> Option<(String, u64)> {
    context.stderr.lines().find_map(|line| {
        let (path, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
        let file = context.file(path);
        let row = rest.split(' ').next()?.parse().ok()?;
        ParseContext::is_user_code(&file).then_some((file, row))
    })
}

fn failure(context: &ParseContext<'_>, case: &TestCase) -> Failure {
    let file = case.file.as_deref().map(|file| context.file(file));
    // The report counts lines from 0.
    let line = user_code_locations(context, &case.text)
        .find_map(|(found, line)| (Some(found) == file).then_some(line))
        .or_else(|| case.line.map(|line| line + 1));
    let failure = context.failure(node(case), file, line, &case.message);
    Failure {
        diff: explained(&case.text).or(failure.diff),
        message: text::truncated(&case.message),
        ..failure
    }
}

/// Returns the node identifier: `a.test_b.TestC` and `test_d` in `a/test_b.py` are
/// `a/test_b.py::TestC::test_d`.
fn node(case: &TestCase) -> String {
    let Some(file) = &case.file else { return format!("{}::{}", case.class, case.name) };
    let module = file.strip_suffix(".py").unwrap_or(file).replace('/', ".");
    let classes = case.class.strip_prefix(&module).unwrap_or_default();
    let classes = classes.split('.').filter(|class| !class.is_empty());
    let mut node = file.clone();
    for part in classes.chain([case.name.as_str()]) {
        node.push_str("::");
        node.push_str(part);
    }
    node
}

/// Returns the locations of `file.py:12: Error` lines in user code, the last one first.
fn user_code_locations(
    context: &ParseContext<'_>,
    text: &str,
) -> impl Iterator<Item = (String, u64)> {
    text.lines().rev().filter_map(|line| {
        let (location, _) = line.split_once(": ")?;
        let (path, row, _) = text::location(location)?;
        let file = context.file(path);
        (ParseContext::is_user_code(&file) && !path.contains(' ')).then_some((file, row))
    })
}

/// Returns the lines that pytest marks with `E`, if there are several.
fn explained(text: &str) -> Option<String> {
    let marked = text.lines().filter_map(|line| line.strip_prefix('E'));
    let lines: Vec<&str> = marked.map(|line| line.get(INDENT..).unwrap_or_default()).collect();
    (lines.len() > 1).then(|| text::truncated(&lines.join("\n")))
}

fn not_collected(context: &ParseContext<'_>, case: &TestCase) -> Finding {
    let marked = case.text.lines().rev().filter_map(|line| line.strip_prefix("E "));
    let message = marked.map(str::trim).find(|line| line.contains("Error"));
    let message = message.unwrap_or_else(|| case.text.lines().next_back().unwrap_or_default());
    let file = case.file.as_deref().map(|file| context.file(file));
    let location = traceback_location(context, &case.text)
        .or_else(|| user_code_locations(context, &case.text).next());
    let finding = Finding { file, ..Finding::error(message) };
    finding.at_line(location)
}

/// Returns the last `File "x.py", line 12` in user code.
pub(super) fn traceback_location(context: &ParseContext<'_>, text: &str) -> Option<(String, u64)> {
    text.lines().rev().find_map(|line| {
        let rest = line.split_once("File \"")?.1;
        let (path, rest) = rest.split_once("\", line ")?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        let file = context.file(path);
        ParseContext::is_user_code(&file).then_some((file, digits.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_put_together_from_its_pieces() {
        let case = |class: &str, name: &str| TestCase {
            class: class.to_owned(),
            name: name.to_owned(),
            file: Some("a/test_b.py".to_owned()),
            ..TestCase::default()
        };
        assert_eq!(node(&case("a.test_b", "test_d[x::y]")), "a/test_b.py::test_d[x::y]");
        assert_eq!(node(&case("a.test_b.T.U", "test_d")), "a/test_b.py::T::U::test_d");
    }
}
