//! What to add to a command line so that the tool leaves a readable report.

use crate::plan::{Artifact, ReportFormat};
use crate::tool::ProjectTool;

/// Where a tool leaves its report.
#[derive(Clone, Copy, Debug)]
enum ReportDestination {
    /// Among what it prints.
    Printed,
    /// In a file of the private directory, where it cannot be mixed up with what tests print.
    File(&'static str),
    /// In files of the project.
    Project(&'static str),
}

/// What to add for one tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportOptions {
    pub(super) format: ReportFormat,
    pub(super) options: &'static [&'static str],
    pub(super) environment: &'static [(&'static str, &'static str)],
    destination: ReportDestination,
}

impl ReportOptions {
    /// Nothing is added and the text is taken as it is.
    pub(super) const TEXT: Self = printed(ReportFormat::Text, &[]);

    /// Returns what to add for a tool.
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

/// The tools that are understood. Every other one is judged by its exit status and its text.
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
            // Without the first one, snapshots that are missing would be written.
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
    // Without the second one it stops after twenty.
    (ProjectTool::Biome, printed(F::Biome, &["--reporter=json", "--max-diagnostics=none"])),
    (ProjectTool::Oxlint, printed(F::Oxlint, &["--format", "json"])),
    (ProjectTool::Prettier, printed(F::Prettier, &[])),
    (ProjectTool::Tsc, printed(F::Tsc, &["--pretty", "false"])),
    (
        ProjectTool::Pytest,
        file(
            F::Pytest,
            "pytest.xml",
            // The older of the two families says in which file a test is.
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
    // The option for JSON has another name in each major version; the text has not.
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
