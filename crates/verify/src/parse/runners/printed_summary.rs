//! The summaries that test runners print, for commands to which no report can be ordered: targets of
//! make, tasks of rake and dune, scripts.
//!
//! Tests may print anything, so the exit status alone decides between passed and failed. A summary adds
//! numbers where it agrees with the status, and the names of failed tests where the command failed.

use crate::parse::formats::node_crash;
use crate::parse::{Counts, Failure, ParseContext, TestResults, text};

/// Bounds the lines of one message.
const MAX_MESSAGE_LINES: usize = 20;

/// The summary of one runner.
struct Summary {
    /// Reads the numbers of one line, or `None` if it is no part of the summary.
    line: fn(&str) -> Option<Counts>,
    /// Start of the line above the numbers, which a log may repeat elsewhere; empty if there is none.
    title: &'static str,
    /// True if the runner prints the total, which `line` then returns as passed.
    total: bool,
}

/// Lines of a summary with a title.
const TITLED_LINES: usize = 9;

const fn by_result(line: fn(&str) -> Option<Counts>) -> Summary {
    Summary { line, title: "", total: false }
}

const fn with_total(line: fn(&str) -> Option<Counts>) -> Summary {
    Summary { line, title: "", total: true }
}

/// All summaries, of which the first that a text has counts. Numbers of several runs are added up.
const SUMMARIES: [Summary; 10] = [
    Summary { line: automake, title: "Testsuite summary for ", total: false },
    by_result(tap),
    with_total(minitest),
    with_total(rspec),
    with_total(ounit),
    with_total(exunit),
    by_result(libtest),
    by_result(pytest),
    by_result(jest),
    by_result(mocha),
];

/// Returns the numbers of all summaries in a text.
pub(super) fn counts(text: &str) -> Option<Counts> {
    SUMMARIES.iter().find_map(|summary| {
        let mut since_title = TITLED_LINES;
        let in_summary = |line: &&str| {
            since_title = if line.starts_with(summary.title) { 0 } else { since_title + 1 };
            since_title < TITLED_LINES
        };
        let mut found = text.lines().filter(in_summary).filter_map(summary.line);
        let mut all = found.next()?;
        found.for_each(|counts| all.add(counts));
        if summary.total {
            all.passed = all.passed.saturating_sub(all.failed + all.errors + all.skipped);
        }
        (all.run() + all.skipped > 0).then_some(all)
    })
}

/// Returns the results of TAP output that ends before its plan: `ok` lines, and the test that was running.
/// `None` for a complete one, and for any other output.
pub(super) fn unfinished_tap(context: &ParseContext<'_>, text: &str) -> Option<TestResults> {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| line.starts_with("TAP version "))?;
    let lines = &lines[start + 1..];
    if lines.iter().any(|line| line.starts_with("1..")) {
        return None;
    }
    let running = lines.iter().rev().find_map(|line| line.strip_prefix("# "));
    let name = running.map_or_else(|| context.invocation.argv.join(" "), str::to_owned);
    let cause = Some("for example by process.exit()");
    let failure = Failure::ended_early(&name, context.selector(&*name), cause);
    let counted = |mark: &str| lines.iter().filter(|line| line.starts_with(mark)).count() as u64;
    let counts = Counts {
        passed: counted("ok "),
        failed: counted("not ok "),
        errors: 1,
        ..Counts::default()
    };
    let failures = vec![Failure { rerun: None, ..failure }];
    Some(TestResults { counts, failures, ..TestResults::default() })
}

/// Returns the results of jest's output that ends before its summary: a test ended the runner, and only the
/// files with a result are known. `None` for a complete one, and for any other output.
pub(super) fn unfinished_jest(context: &ParseContext<'_>, text: &str) -> Option<TestResults> {
    let is_file = |line: &&str| {
        let file = line.strip_prefix("PASS ").or_else(|| line.strip_prefix("FAIL "));
        file.is_some_and(|file| file.contains(".test.") || file.contains(".spec."))
    };
    let files = text.lines().filter(is_file).count();
    if files == 0 || text.lines().any(|line| jest(line).is_some()) {
        return None;
    }
    let mut results = TestResults::default();
    results.counts.errors = 1;
    if let Some(call) = node_crash::exit_call(context) {
        results.build_errors.push(call);
        return Some(results);
    }
    let name = context.invocation.argv.join(" ");
    let cause = format!("{files} files have a result, and there is no summary");
    let failure = Failure::ended_early(&name, context.selector(&*name), Some(&cause));
    results.failures.push(Failure { rerun: None, ..failure });
    Some(results)
}

/// Returns the tests that a text names as failed.
pub(super) fn failures(context: &ParseContext<'_>, text: &str) -> Vec<Failure> {
    let lines: Vec<&str> = text.lines().collect();
    let found = (0..lines.len()).filter_map(|at| failure(context, &lines[at..]));
    let mut all: Vec<Failure> = Vec::new();
    for failure in found {
        match all.iter_mut().find(|known| known.name == failure.name) {
            Some(known) if known.message.is_empty() => *known = failure,
            Some(_) => {}
            None => all.push(failure),
        }
    }
    all
}

fn failure(context: &ParseContext<'_>, lines: &[&str]) -> Option<Failure> {
    let line = lines[0];
    let named = |name: &str, message: &str| {
        let failure = context.failure(name.trim().to_owned(), None, None, message);
        Failure { rerun: None, ..failure }
    };
    if let Some(name) = ["FAIL: ", "ERROR: "].iter().find_map(|mark| line.strip_prefix(mark)) {
        // Python's unittest has the same mark, and a class in parentheses.
        return (!name.contains([' ', '('])).then(|| named(name, &logged(lines)));
    }
    if let Some(rest) = line.strip_prefix("not ok ") {
        let name = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let name = name.strip_prefix("- ").unwrap_or(name);
        let expected = [" # TODO", " # SKIP"].iter().any(|mark| name.contains(mark));
        return (!expected && !name.is_empty()).then(|| named(name, ""));
    }
    minitest_failure(context, lines)
}

/// Returns the log of a test below its underlined name, up to the next such name.
fn logged(lines: &[&str]) -> String {
    let is_line = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("==="));
    if !is_line(1) {
        return String::new();
    }
    let end = (2..lines.len()).find(|at| is_line(*at) || is_line(at + 1)).unwrap_or(lines.len());
    let log = lines[2..end].iter().take(MAX_MESSAGE_LINES);
    log.copied().collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Reads `  1) Failure:`, then `Class#test [file:line]:` and the message up to an empty line.
fn minitest_failure(context: &ParseContext<'_>, lines: &[&str]) -> Option<Failure> {
    let (number, kind) = lines[0].trim_start().split_once(") ")?;
    number.parse::<u64>().ok()?;
    if !matches!(kind, "Failure:" | "Error:") {
        return None;
    }
    let title = lines.get(1)?.trim_end_matches(':');
    let (name, place) = match title.split_once(" [") {
        Some((name, place)) => (name, text::location(place.trim_end_matches(']'))),
        None => (title, None),
    };
    let file = place.map(|(path, ..)| context.file(path));
    let message = lines[2..].iter().take_while(|line| !line.trim().is_empty());
    let message: Vec<&str> = message.take(MAX_MESSAGE_LINES).copied().collect();
    let line = place.map(|(_, line, _)| line);
    let failure = context.failure(name.to_owned(), file, line, &message.join("\n"));
    Some(Failure { rerun: None, ..failure })
}

/// `# PASS:  4`, one line for each result.
fn automake(line: &str) -> Option<Counts> {
    let (name, number) = line.strip_prefix("# ")?.split_once(':')?;
    let number = number.trim().parse().ok()?;
    let none = Counts::default();
    match name {
        "PASS" => Some(Counts { passed: number, ..none }),
        "FAIL" | "XPASS" => Some(Counts { failed: number, ..none }),
        "SKIP" | "XFAIL" => Some(Counts { skipped: number, ..none }),
        "ERROR" => Some(Counts { errors: number, ..none }),
        _ => None,
    }
}

/// `# pass 4`, one line for each result, as producers of TAP end their output.
fn tap(line: &str) -> Option<Counts> {
    let mut words = line.strip_prefix("# ")?.split_whitespace();
    let (name, number) = (words.next()?, words.next()?.parse().ok()?);
    let none = Counts::default();
    match (name, words.next()) {
        ("pass", None) => Some(Counts { passed: number, ..none }),
        ("fail" | "cancelled", None) => Some(Counts { failed: number, ..none }),
        ("skip" | "skipped" | "todo", None) => Some(Counts { skipped: number, ..none }),
        _ => None,
    }
}

/// `113 runs, 214 assertions, 1 failures, 0 errors, 0 skips`, and `tests` of test-unit.
fn minitest(line: &str) -> Option<Counts> {
    let all = Numbers::after_commas(line);
    let total = all.number("runs").or_else(|| all.number("tests"))?;
    all.has("assertions").then(|| Counts {
        passed: total,
        failed: all.sum(&["failures"]),
        skipped: all.sum(&["skips", "pendings", "omissions"]),
        errors: all.sum(&["errors"]),
    })
}

/// `12 examples, 1 failure, 2 pending`.
fn rspec(line: &str) -> Option<Counts> {
    let all = Numbers::after_commas(line);
    let total = all.number("examples").or_else(|| all.number("example"))?;
    let failed = all.sum(&["failure", "failures"]);
    Some(Counts { passed: total, failed, skipped: all.sum(&["pending"]), errors: 0 })
}

/// `Ran: 58 tests in: 0.22 seconds.`, and for a failed run `FAILED: Cases: 58 Tried: 58 Errors: 0 Failures: 1 …`.
fn ounit(line: &str) -> Option<Counts> {
    let none = Counts::default();
    if let Some(rest) = line.strip_prefix("Ran: ") {
        let passed = rest.split_once(" tests in:")?.0.parse().ok()?;
        return Some(Counts { passed, ..none });
    }
    let words: Vec<&str> = line.strip_prefix("FAILED: Cases: ")?.split([' ', ':']).collect();
    let number = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words[at + 1..].iter().find_map(|word| word.parse::<u64>().ok())
    };
    let (failed, errors) = (number("Failures")?, number("Errors")?);
    Some(Counts { failed, errors, ..none })
}

/// `3 doctests, 12 tests, 1 failure, 2 skipped`.
fn exunit(line: &str) -> Option<Counts> {
    let all = Numbers::after_commas(line);
    let is_whole = all.0.len() > 1 && (all.has("failures") || all.has("failure"));
    let total = all.sum(&["doctest", "doctests", "test", "tests", "property", "properties"]);
    let skipped = all.sum(&["skipped", "excluded"]);
    let failed = all.sum(&["failure", "failures", "invalid"]);
    (is_whole && total > 0).then_some(Counts { passed: total, failed, skipped, errors: 0 })
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn libtest(line: &str) -> Option<Counts> {
    let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let all = Numbers::in_parts(rest, ';');
    let (passed, failed) = (all.number("passed")?, all.number("failed")?);
    Some(Counts { passed, failed, skipped: all.sum(&["ignored"]), errors: 0 })
}

/// `==== 1 failed, 3 passed in 0.12s ====`, with or without the frame.
fn pytest(line: &str) -> Option<Counts> {
    let (rest, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    time.split(' ').next()?.strip_suffix('s')?.parse::<f64>().ok()?;
    let all = Numbers::after_commas(rest);
    let counts = Counts {
        passed: all.sum(&["passed", "xpassed"]),
        failed: all.sum(&["failed"]),
        skipped: all.sum(&["skipped", "xfailed"]),
        errors: all.sum(&["error", "errors"]),
    };
    (counts.run() + counts.skipped > 0).then_some(counts)
}

/// `Tests:       1 failed, 2 skipped, 99 passed, 102 total`.
fn jest(line: &str) -> Option<Counts> {
    let all = Numbers::after_commas(line.trim_start().strip_prefix("Tests:")?);
    all.has("total").then(|| Counts {
        passed: all.sum(&["passed"]),
        failed: all.sum(&["failed"]),
        skipped: all.sum(&["skipped", "todo"]),
        errors: 0,
    })
}

/// `  12 passing (3s)`, `  2 pending`, `  1 failing`, one line for each result.
fn mocha(line: &str) -> Option<Counts> {
    let mut words = line.strip_prefix("  ")?.split(' ');
    let number = words.next()?.parse().ok()?;
    let none = Counts::default();
    match (words.next()?, words.next()) {
        ("passing", Some(time)) if time.starts_with('(') => Some(Counts { passed: number, ..none }),
        ("failing", None) => Some(Counts { failed: number, ..none }),
        ("pending", None) => Some(Counts { skipped: number, ..none }),
        _ => None,
    }
}

/// Numbers with their words, as in `12 tests, 1 failure`; empty if a part is anything else.
struct Numbers<'a>(Vec<(u64, &'a str)>);

impl<'a> Numbers<'a> {
    fn after_commas(line: &'a str) -> Self {
        Self::in_parts(line, ',')
    }

    fn in_parts(line: &'a str, separator: char) -> Self {
        let parts = line.trim().split(separator).map(str::trim);
        let read = |part: &'a str| {
            let (number, word) = part.split_once(' ')?;
            Some((number.parse().ok()?, word))
        };
        Self(parts.map_while(read).collect())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(_, word)| *word == name).map(|(number, _)| *number)
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(_, word)| *word == name)
    }

    fn sum(&self, names: &[&str]) -> u64 {
        let chosen = self.0.iter().filter(|(_, word)| names.contains(word));
        chosen.map(|(number, _)| number).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(passed: u64, failed: u64, skipped: u64, errors: u64) -> Counts {
        Counts { passed, failed, skipped, errors }
    }

    #[test]
    fn summaries_of_runners_are_read() {
        let cases = [
            (
                "# FAIL:  1\n\nTestsuite summary for x\n===\n# TOTAL: 5\n# PASS:  3\n# SKIP:  1\n# XFAIL: 0\n# FAIL:  1\n# ERROR: 0",
                counted(3, 1, 1, 0),
            ),
            ("ok 1 a\n1..2\n# tests 2\n# pass  1\n# fail  1\n", counted(1, 1, 0, 0)),
            ("113 runs, 214 assertions, 1 failures, 0 errors, 2 skips", counted(110, 1, 2, 0)),
            (
                "9 tests, 9 assertions, 1 failures, 1 errors, 0 pendings, 1 omissions, 0 notifications",
                counted(6, 1, 1, 1),
            ),
            ("12 examples, 1 failure, 2 pending", counted(9, 1, 2, 0)),
            (
                "Ran: 58 tests in: 0.22 seconds.\nOK\nRan: 2 tests in: 0.1 seconds.",
                counted(60, 0, 0, 0),
            ),
            (
                "Ran: 58 tests in: 0.22 seconds.\nFAILED: Cases: 58 Tried: 58 Errors: 1 Failures: 2 Skip:0",
                counted(55, 2, 0, 1),
            ),
            ("3 doctests, 12 tests, 1 failure, 2 skipped", counted(12, 1, 2, 0)),
            ("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured", counted(3, 0, 1, 0)),
            ("==== 1 failed, 3 passed, 1 warning in 0.12s ====", counted(3, 1, 0, 0)),
            ("Tests:       1 failed, 2 skipped, 99 passed, 102 total", counted(99, 1, 2, 0)),
            ("  12 passing (3s)\n  2 pending\n  1 failing\n", counted(12, 1, 2, 0)),
        ];
        for (text, expected) in cases {
            assert_eq!(counts(text), Some(expected), "{text}");
        }
        for other in ["2 warnings, 3 errors\n", "# all 3\n1. passed\n", "built in 3s\n"] {
            assert_eq!(counts(other), None, "{other}");
        }
    }
}
