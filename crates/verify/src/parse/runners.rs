//! Readers for the reports of test runners, one module for each format.
//!
//! A reader only collects what the report contains, and marks a report that is missing or
//! incomplete. The verdict is decided in one function for all of them, in `test_verdict`.

pub(crate) mod bun;
pub(crate) mod deno;
mod exit_status;
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

use crate::parse::{ParseContext, ReportReader, TestResults};

/// Reads the report of a test runner; formats of other tools are judged by exit status.
pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    match context.invocation.report.reader() {
        ReportReader::Tests(read) => read(context),
        ReportReader::Document(_) | ReportReader::Text(_) | ReportReader::ExitStatus => {
            exit_status::read(context)
        }
    }
}
