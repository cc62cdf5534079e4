//! The options that make each tool write a machine-readable report.
//!
//! The table prefers reports in files of the artifact directory, where the output of tests cannot
//! be mixed with them; then reports on standard output; and text only for tools that have nothing
//! else. Tools that are not listed are judged by exit status.

use crate::plan::{Artifact, ReportFormat};
use crate::tool::ProjectTool;

#[derive(Clone, Copy, Debug)]
enum ReportDestination {
    Printed,
    File(&'static str),
    Project(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ReportOptions {
    pub(super) format: ReportFormat,
    pub(super) options: &'static [&'static str],
    pub(super) environment: &'static [(&'static str, &'static str)],
    destination: ReportDestination,
}

impl ReportOptions {
    pub(super) const TEXT: Self = printed(ReportFormat::Text, &[]);

    pub(super) fn of(tool: ProjectTool) -> Self {
        let known = OPTIONS.iter().find(|(of, _)| *of == tool);
        known.map_or(Self::TEXT, |(_, options)| *options)
    }

    pub(super) fn artifact(self) -> Option<Artifact> {
        match self.destination {
            ReportDestination::Printed => None,
            ReportDestination::File(name) => Some(Artifact::Private { name: name.to_owned() }),
            ReportDestination::Project(pattern) => {
                Some(Artifact::Project { pattern: pattern.to_owned() })
            }
        }
    }
}

const fn printed(format: ReportFormat, options: &'static [&'static str]) -> ReportOptions {
    ReportOptions { format, options, environment: &[], destination: ReportDestination::Printed }
}

const fn file(
    format: ReportFormat,
    name: &'static str,
    options: &'static [&'static str],
) -> ReportOptions {
    ReportOptions { format, options, environment: &[], destination: ReportDestination::File(name) }
}

const fn project(pattern: &'static str, options: &'static [&'static str]) -> ReportOptions {
    let format = ReportFormat::Junit;
    ReportOptions {
        format,
        options,
        environment: &[],
        destination: ReportDestination::Project(pattern),
    }
}

use ReportFormat as F;

const OPTIONS: &[(ProjectTool, ReportOptions)] = &[
    (ProjectTool::CargoTest, printed(F::CargoTest, &["--no-fail-fast", "--message-format=json"])),
    (
        ProjectTool::Nextest,
        ReportOptions {
            environment: &[("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1")],
            ..printed(F::Nextest, &["--no-fail-fast", "--message-format", "libtest-json-plus"])
        },
    ),
    (ProjectTool::Clippy, printed(F::CargoMessages, &["--message-format=json"])),
    (ProjectTool::CargoCheck, printed(F::CargoMessages, &["--message-format=json"])),
    (ProjectTool::Rustfmt, printed(F::Rustfmt, &[])),
    (
        ProjectTool::Jest,
        file(
            F::Jest,
            "jest.json",
            // `--ci` keeps missing snapshots from being written.
            &["--ci", "--json", "--outputFile={artifacts}/jest.json", "--testLocationInResults"],
        ),
    ),
    (
        ProjectTool::Vitest,
        file(
            F::Jest,
            "vitest.json",
            &["--reporter=default", "--reporter=json", "--outputFile.json={artifacts}/vitest.json"],
        ),
    ),
    (
        ProjectTool::Mocha,
        file(
            F::Mocha,
            "mocha.json",
            &["--reporter", "json", "--reporter-option", "output={artifacts}/mocha.json"],
        ),
    ),
    (
        ProjectTool::NodeTest,
        file(
            F::Tap,
            "node.tap",
            &[
                "--test-reporter=spec",
                "--test-reporter-destination=stdout",
                "--test-reporter=tap",
                "--test-reporter-destination={artifacts}/node.tap",
            ],
        ),
    ),
    (
        ProjectTool::BunTest,
        file(F::Bun, "bun.xml", &["--reporter=junit", "--reporter-outfile={artifacts}/bun.xml"]),
    ),
    (
        ProjectTool::Eslint,
        file(
            F::Eslint,
            "eslint.json",
            &["--format", "json", "--output-file", "{artifacts}/eslint.json"],
        ),
    ),
    // The default is to stop after twenty diagnostics.
    (ProjectTool::Biome, printed(F::Biome, &["--reporter=json", "--max-diagnostics=none"])),
    (ProjectTool::Oxlint, printed(F::Oxlint, &["--format", "json"])),
    (ProjectTool::Prettier, printed(F::Prettier, &[])),
    (ProjectTool::Tsc, printed(F::Tsc, &["--pretty", "false"])),
    (
        ProjectTool::Pytest,
        file(
            F::Pytest,
            "pytest.xml",
            // Only the older `xunit1` family contains file names.
            &[
                "--color=no",
                "--rootdir=.",
                "-o",
                "junit_family=xunit1",
                "--junitxml={artifacts}/pytest.xml",
            ],
        ),
    ),
    (ProjectTool::Unittest, printed(F::Unittest, &[])),
    (
        ProjectTool::Ruff,
        file(
            F::Ruff,
            "ruff.json",
            &["--output-format", "json", "--output-file", "{artifacts}/ruff.json"],
        ),
    ),
    (ProjectTool::RuffFormat, printed(F::RuffFormat, &[])),
    (ProjectTool::Black, printed(F::Black, &[])),
    (ProjectTool::Flake8, printed(F::Flake8, &["--format=default"])),
    (ProjectTool::Pylint, printed(F::Pylint, &["--output-format=json"])),
    (
        ProjectTool::Mypy,
        printed(
            F::Mypy,
            &[
                "--no-color-output",
                "--no-pretty",
                "--show-column-numbers",
                "--show-error-end",
                "--show-error-codes",
                "--no-error-summary",
            ],
        ),
    ),
    (ProjectTool::Pyright, printed(F::Pyright, &["--outputjson"])),
    (ProjectTool::GoTest, printed(F::GoTest, &["-json", "-count=1"])),
    (ProjectTool::GoVet, printed(F::Lines, &[])),
    // The option for JSON differs between major versions; the text format does not.
    (ProjectTool::Golangci, printed(F::Golangci, &[])),
    (ProjectTool::Gofmt, printed(F::FileList, &[])),
    (ProjectTool::Maven, project("**/target/surefire-reports/TEST-*.xml", &["-fae"])),
    (ProjectTool::Gradle, project("**/build/test-results/**/TEST-*.xml", &["--continue"])),
    (ProjectTool::DenoTest, file(F::Deno, "deno.xml", &["--junit-path={artifacts}/deno.xml"])),
    (ProjectTool::DenoLint, printed(F::DenoLint, &["--json"])),
    (ProjectTool::DenoCheck, printed(F::DenoCheck, &[])),
    (ProjectTool::DenoFmt, printed(F::DenoFmt, &[])),
    (
        ProjectTool::Rspec,
        file(
            F::Rspec,
            "rspec.json",
            &["--format", "progress", "--format", "json", "--out", "{artifacts}/rspec.json"],
        ),
    ),
    (
        ProjectTool::Rubocop,
        file(
            F::Rubocop,
            "rubocop.json",
            &["--format", "json", "--out", "{artifacts}/rubocop.json"],
        ),
    ),
    (
        ProjectTool::Phpunit,
        file(F::Junit, "phpunit.xml", &["--log-junit", "{artifacts}/phpunit.xml"]),
    ),
    (ProjectTool::Phpstan, printed(F::Phpstan, &["--error-format=json"])),
    (ProjectTool::DotnetBuild, printed(F::Tsc, &[])),
    (ProjectTool::Ctest, file(F::Junit, "ctest.xml", &["--output-junit", "{artifacts}/ctest.xml"])),
    (ProjectTool::Cmake, printed(F::Lines, &[])),
    (ProjectTool::Make, printed(F::Lines, &[])),
    (ProjectTool::ClangFormat, printed(F::Lines, &[])),
];
