//! Readers for the reports of test runners, one module for each format.
//!
//! A reader only collects what the report contains, and marks a report that is missing or
//! incomplete. The verdict is decided in one function for all of them, in `verdict`.

pub(crate) mod bun;
pub(crate) mod deno;
pub(crate) mod go;
pub(crate) mod jest;
pub(crate) mod junit;
pub(crate) mod libtest;
pub(crate) mod mocha;
pub(crate) mod nextest;
mod printed_summary;
pub(crate) mod pytest;
pub(crate) mod rspec;
pub(crate) mod tap;
pub(crate) mod unittest;

use crate::parse::{Counts, Failure, ParseContext, ReportReader, TestResults, text};

/// Reads the report of a test runner; formats of other tools are judged by exit status.
pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    match context.invocation.report.reader() {
        ReportReader::Tests(read) => read(context),
        ReportReader::Document(_) | ReportReader::Text(_) | ReportReader::ExitStatus => {
            read_exit_status(context)
        }
    }
}

/// Judges a runner without a known report by its exit status. The command counts as one test, unless its
/// output has the summary of a runner that agrees with the status.
fn read_exit_status(context: &ParseContext<'_>) -> TestResults {
    let mut parsed = TestResults::default();
    let Some(status) = context.exit() else { return parsed };
    let printed = format!("{}\n{}", context.stdout, context.stderr);
    let unfinished = printed_summary::unfinished_tap(context, &printed)
        .or_else(|| printed_summary::unfinished_jest(context, &printed));
    if let Some(unfinished) = unfinished {
        return unfinished;
    }
    let counts = printed_summary::counts(&printed);
    let bad = |counts: &Counts| counts.failed + counts.errors > 0;
    if status == 0 {
        let one = Counts { passed: 1, ..Counts::default() };
        parsed.counts = counts.filter(|counts| !bad(counts)).unwrap_or(one);
        return parsed;
    }
    let message = text::tail(context).unwrap_or_else(|| format!("exit status {status}"));
    parsed.counts = counts.unwrap_or_default();
    if bad(&parsed.counts) {
        parsed.failures = printed_summary::failures(context, &printed);
    } else {
        parsed.counts.failed = 1;
    }
    match parsed.failures.first_mut() {
        Some(first) if first.message.is_empty() => first.message = message,
        Some(_) => {}
        None => parsed.failures.push(Failure {
            name: context.invocation.argv.join(" "),
            file: None,
            line: None,
            message,
            diff: None,
            rerun: None,
        }),
    }
    parsed
}
