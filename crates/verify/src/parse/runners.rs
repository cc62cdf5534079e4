//! Readers for the reports of test runners, one module for each format.
//!
//! A reader only collects what the report contains, and marks a report that is missing or
//! incomplete. The verdict is decided in one function for all of them, in `test_verdict`.

mod bun;
mod deno;
mod exit_status;
mod go;
mod jest;
mod junit;
mod libtest;
mod mocha;
mod nextest;
mod pytest;
mod rspec;
mod tap;
mod unittest;

use crate::parse::outcome::ParseContext;
use crate::parse::test_verdict::TestResults;
use crate::plan::ReportFormat;

/// Reads the report of a test runner; formats of other tools are judged by exit status.
pub(crate) fn read(context: &ParseContext<'_>) -> TestResults {
    match context.invocation.report {
        ReportFormat::CargoTest => libtest::read(context),
        ReportFormat::Nextest => nextest::read(context),
        ReportFormat::Jest => jest::read(context),
        ReportFormat::Mocha => mocha::read(context),
        ReportFormat::Tap => tap::read(context),
        ReportFormat::Pytest => pytest::read(context),
        ReportFormat::Unittest => unittest::read(context),
        ReportFormat::Junit => junit::read(context),
        ReportFormat::Bun => bun::read(context),
        ReportFormat::Deno => deno::read(context),
        ReportFormat::Rspec => rspec::read(context),
        ReportFormat::GoTest => go::read(context),
        ReportFormat::CargoMessages
        | ReportFormat::Rustfmt
        | ReportFormat::Eslint
        | ReportFormat::Biome
        | ReportFormat::Oxlint
        | ReportFormat::Prettier
        | ReportFormat::Tsc
        | ReportFormat::Ruff
        | ReportFormat::RuffFormat
        | ReportFormat::Black
        | ReportFormat::Flake8
        | ReportFormat::Pylint
        | ReportFormat::Mypy
        | ReportFormat::Pyright
        | ReportFormat::Golangci
        | ReportFormat::FileList
        | ReportFormat::DenoLint
        | ReportFormat::DenoCheck
        | ReportFormat::DenoFmt
        | ReportFormat::Rubocop
        | ReportFormat::Phpstan
        | ReportFormat::Lines
        | ReportFormat::Text => exit_status::read(context),
    }
}
