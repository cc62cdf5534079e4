//! The report formats, with the reader of each.

use serde::Serialize;

use crate::parse::formats::{cargo, compiler_lines, formatters, json_linters};
use crate::parse::{Finding, ParseContext, TestResults, runners};

use ReportReader::{Document, ExitStatus, Tests, Text};

/// A function that reads the reports of one format.
pub(crate) enum ReportReader {
    Tests(fn(&ParseContext<'_>) -> TestResults),
    /// Findings in a JSON document; `None` if the output does not contain one, which excludes the
    /// verdict `passed`.
    Document(fn(&ParseContext<'_>) -> Option<Vec<Finding>>),
    /// Findings in text, in which an empty report cannot be distinguished from a missing one; the
    /// exit status decides.
    Text(fn(&ParseContext<'_>) -> Vec<Finding>),
    ExitStatus,
}

macro_rules! report_formats {
    ($($format:ident = $reader:expr,)*) => {
        /// The format of a tool's report, of which each planned command has exactly one. `Lines` are
        /// diagnostics of one line each, `FileList` is one path per line, and `Text` is judged by
        /// exit status alone.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "each variant is named after its tool or format")]
        pub enum ReportFormat { $($format,)* }

        impl ReportFormat {
            pub(crate) fn reader(self) -> ReportReader {
                match self { $(Self::$format => $reader,)* }
            }
        }
    };
}

report_formats! {
    CargoTest = Tests(runners::libtest::read),
    Nextest = Tests(runners::nextest::read),
    Jest = Tests(runners::jest::read),
    Mocha = Tests(runners::mocha::read),
    Tap = Tests(runners::tap::read),
    Pytest = Tests(runners::pytest::read),
    Unittest = Tests(runners::unittest::read),
    Junit = Tests(runners::junit::read),
    Bun = Tests(runners::bun::read),
    Deno = Tests(runners::deno::read),
    Rspec = Tests(runners::rspec::read),
    GoTest = Tests(runners::go::read),
    Eslint = Document(json_linters::eslint),
    Biome = Document(json_linters::biome),
    Oxlint = Document(json_linters::oxlint),
    DenoLint = Document(json_linters::deno),
    Ruff = Document(json_linters::ruff),
    Pylint = Document(json_linters::pylint),
    Pyright = Document(json_linters::pyright),
    Rubocop = Document(json_linters::rubocop),
    Phpstan = Document(json_linters::phpstan),
    CargoMessages = Text(cargo::findings),
    Lines = Text(compiler_lines::read),
    Tsc = Text(compiler_lines::parenthesised),
    DenoCheck = Text(compiler_lines::deno),
    Mypy = Text(compiler_lines::mypy),
    Flake8 = Text(compiler_lines::flake8),
    Golangci = Text(json_linters::golangci),
    Rustfmt = Text(formatters::rustfmt),
    Prettier = Text(formatters::prettier),
    Black = Text(formatters::black),
    RuffFormat = Text(formatters::ruff_format),
    DenoFmt = Text(formatters::deno),
    FileList = Text(formatters::file_list),
    Text = ExitStatus,
}
