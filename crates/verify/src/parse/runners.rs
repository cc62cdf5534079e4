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
pub(crate) mod pytest;
pub(crate) mod rspec;
pub(crate) mod tap;
pub(crate) mod unittest;

use crate::parse::{Failure, ParseContext, ReportReader, TestResults, text};

/// Reads the report of a test runner; formats of other tools are judged by exit status.
pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    match context.invocation.report.reader() {
        ReportReader::Tests(read) => read(context),
        ReportReader::Document(_) | ReportReader::Text(_) | ReportReader::ExitStatus => {
            read_exit_status(context)
        }
    }
}

/// Judges a runner without a known report by its exit status. The command counts as one test, since
/// it is unknown whether it ran any.
fn read_exit_status(context: &ParseContext<'_>) -> TestResults {
    let mut parsed = TestResults::default();
    match context.exit() {
        None => {}
        Some(0) => parsed.counts.passed = 1,
        Some(status) => {
            parsed.counts.failed = 1;
            parsed.failures.push(Failure {
                name: context.invocation.argv.join(" "),
                file: None,
                line: None,
                message: text::tail(context).unwrap_or_else(|| format!("exit status {status}")),
                diff: None,
                rerun: None,
            });
        }
    }
    parsed
}
