//! Readers for the output of compilers, linters, type checkers and formatters, by report format.
//!
//! A reader of a JSON report returns `None` if the output does not contain one, which excludes the
//! verdict `passed`. A reader of text cannot distinguish an empty report from a missing one; for
//! such tools the exit status decides.

pub(crate) mod cargo;
pub(crate) mod compiler_lines;
pub(crate) mod deno;
mod formatters;
mod golangci;
mod javascript_linters;
mod jvm_compilers;
pub(crate) mod node_crash;
mod phpstan;
mod python_linters;
mod rubocop;
pub(crate) mod rustc;

use serde_json::Value;

use crate::parse::finding::{Finding, Severity};
use crate::parse::outcome::ParseContext;
use crate::plan::ReportFormat;

/// Reads the findings; `None` if a report that the tool should have written cannot be parsed.
pub(crate) fn read(context: &ParseContext<'_>) -> Option<Vec<Finding>> {
    match context.invocation.report {
        ReportFormat::CargoMessages => Some(cargo::read(context).all(context)),
        ReportFormat::Eslint => javascript_linters::eslint(context),
        ReportFormat::Biome => javascript_linters::biome(context),
        ReportFormat::Oxlint => javascript_linters::oxlint(context),
        ReportFormat::DenoLint => javascript_linters::deno(context),
        ReportFormat::DenoCheck => Some(deno::check(context)),
        ReportFormat::DenoFmt => Some(deno::format(context)),
        ReportFormat::Ruff => python_linters::ruff(context),
        ReportFormat::Pylint => python_linters::pylint(context),
        ReportFormat::Pyright => python_linters::pyright(context),
        ReportFormat::Mypy => Some(python_linters::mypy(context)),
        ReportFormat::Flake8 => Some(python_linters::flake8(context)),
        ReportFormat::Tsc => Some(compiler_lines::read_parenthesised(context)),
        ReportFormat::Golangci => Some(golangci::read(context)),
        ReportFormat::Rubocop => rubocop::read(context),
        ReportFormat::Phpstan => phpstan::read(context),
        ReportFormat::Rustfmt => Some(formatters::rustfmt(context)),
        ReportFormat::Prettier => Some(formatters::prettier(context)),
        ReportFormat::Black => Some(formatters::black(context)),
        ReportFormat::RuffFormat => Some(formatters::ruff_format(context)),
        ReportFormat::FileList => Some(formatters::file_list(context)),
        ReportFormat::Lines => Some(compiler_lines::read(context)),
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

/// Reads compiler errors from the output of a build tool.
pub(crate) fn compiler_errors(context: &ParseContext<'_>) -> Vec<Finding> {
    let found = compiler_lines::read(context).into_iter().chain(jvm_compilers::maven(context));
    let found = found.chain(jvm_compilers::kotlin(context));
    found.filter(|finding| finding.severity == Severity::Error).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
