//! The report formats that `parse` can read. Each planned command has exactly one, chosen with its
//! options.

use serde::Serialize;

/// The format of a tool's report. `Lines` are diagnostics of one line each, `FileList` is one path
/// per line, and `Text` is judged by exit status alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant is named after the tool or format that it reads")]
pub enum ReportFormat {
    CargoTest,
    Nextest,
    CargoMessages,
    Rustfmt,
    Jest,
    Mocha,
    Tap,
    Pytest,
    Unittest,
    Junit,
    Bun,
    Deno,
    Rspec,
    Eslint,
    Biome,
    Oxlint,
    Prettier,
    Tsc,
    Ruff,
    RuffFormat,
    Black,
    Flake8,
    Pylint,
    Mypy,
    Pyright,
    GoTest,
    Golangci,
    FileList,
    DenoLint,
    DenoCheck,
    DenoFmt,
    Rubocop,
    Phpstan,
    Lines,
    Text,
}
