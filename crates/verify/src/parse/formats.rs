//! The output of compilers, linters, type checkers and formatters.

pub(crate) mod cargo;
pub(crate) mod deno;
mod eslint;
pub(crate) mod javascript;
pub(crate) mod lines;
mod python;
mod rest;
pub(crate) mod rustc;
mod style;

use crate::parse::context::Context;
use crate::parse::finding::{Finding, Severity};
use crate::plan::ReportFormat;

/// Reads what was found; `None` when a report that ought to be there cannot be read.
pub(crate) fn read(context: &Context<'_>) -> Option<Vec<Finding>> {
    match context.invocation.report {
        ReportFormat::CargoMessages => Some(cargo::read(context).all(context)),
        ReportFormat::Eslint => eslint::eslint(context),
        ReportFormat::Biome => eslint::biome(context),
        ReportFormat::Oxlint => eslint::oxlint(context),
        ReportFormat::DenoLint => eslint::deno(context),
        ReportFormat::DenoCheck => Some(deno::check(context)),
        ReportFormat::DenoFmt => Some(deno::format(context)),
        ReportFormat::Ruff => python::ruff(context),
        ReportFormat::Pylint => python::pylint(context),
        ReportFormat::Pyright => python::pyright(context),
        ReportFormat::Mypy => Some(python::mypy(context)),
        ReportFormat::Flake8 => Some(python::flake8(context)),
        ReportFormat::Tsc => Some(lines::read_parenthesised(context)),
        ReportFormat::Golangci => Some(rest::golangci(context)),
        ReportFormat::Rubocop => rest::rubocop(context),
        ReportFormat::Phpstan => rest::phpstan(context),
        ReportFormat::Rustfmt => Some(style::rustfmt(context)),
        ReportFormat::Prettier => Some(style::prettier(context)),
        ReportFormat::Black => Some(style::black(context)),
        ReportFormat::RuffFormat => Some(style::ruff_format(context)),
        ReportFormat::FileList => Some(style::file_list(context)),
        ReportFormat::Lines => Some(lines::read(context)),
        ReportFormat::CargoTest
        | ReportFormat::Nextest
        | ReportFormat::Jest
        | ReportFormat::Mocha
        | ReportFormat::Tap
        | ReportFormat::Pytest
        | ReportFormat::Unittest
        | ReportFormat::Junit
        | ReportFormat::Bun
        | ReportFormat::Deno
        | ReportFormat::Rspec
        | ReportFormat::GoTest => Some(compiler_errors(context)),
        ReportFormat::Text => Some(Vec::new()),
    }
}

/// Finds the errors of a compiler in what a build tool printed.
pub(crate) fn compiler_errors(context: &Context<'_>) -> Vec<Finding> {
    let found = lines::read(context).into_iter().chain(rest::maven(context));
    let found = found.chain(rest::kotlin(context));
    found.filter(|finding| finding.severity == Severity::Error).collect()
}
