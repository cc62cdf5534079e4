//! What to add to a command line so that the tool leaves a readable report.

use crate::plan::{Artifact, ReportFormat};
use crate::tool::Tool;

/// Where a tool leaves its report.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    /// Among what it prints.
    Printed,
    /// In a file of the private directory, where it cannot be mixed up with what tests print.
    File(&'static str),
    /// In files of the project.
    Project(&'static str),
}

/// What to add for one tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) format: ReportFormat,
    pub(super) options: &'static [&'static str],
    pub(super) environment: &'static [(&'static str, &'static str)],
    leaves: Leaves,
}

impl Request {
    /// Nothing is added and the text is taken as it is.
    pub(super) const TEXT: Self = printed(ReportFormat::Text, &[]);

    /// Returns what to add for a tool.
    pub(super) fn of(tool: Tool) -> Self {
        let known = REQUESTS.iter().find(|(of, _)| *of == tool);
        known.map_or(Self::TEXT, |(_, request)| *request)
    }

    pub(super) fn artifact(self) -> Option<Artifact> {
        match self.leaves {
            Leaves::Printed => None,
            Leaves::File(name) => Some(Artifact::Private { name: name.to_owned() }),
            Leaves::Project(pattern) => Some(Artifact::Project { pattern: pattern.to_owned() }),
        }
    }
}

const fn printed(format: ReportFormat, options: &'static [&'static str]) -> Request {
    Request { format, options, environment: &[], leaves: Leaves::Printed }
}

const fn file(
    format: ReportFormat,
    name: &'static str,
    options: &'static [&'static str],
) -> Request {
    Request { format, options, environment: &[], leaves: Leaves::File(name) }
}

const fn project(pattern: &'static str, options: &'static [&'static str]) -> Request {
    let format = ReportFormat::Junit;
    Request { format, options, environment: &[], leaves: Leaves::Project(pattern) }
}

use ReportFormat as F;

/// The tools that are understood. Every other one is judged by its exit status and its text.
const REQUESTS: &[(Tool, Request)] = &[
    (Tool::CargoTest, printed(F::CargoTest, &["--no-fail-fast", "--message-format=json"])),
    (
        Tool::Nextest,
        Request {
            environment: &[("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1")],
            ..printed(F::Nextest, &["--no-fail-fast", "--message-format", "libtest-json-plus"])
        },
    ),
    (Tool::Clippy, printed(F::CargoMessages, &["--message-format=json"])),
    (Tool::CargoCheck, printed(F::CargoMessages, &["--message-format=json"])),
    (Tool::Rustfmt, printed(F::Rustfmt, &[])),
    (
        Tool::Jest,
        file(
            F::Jest,
            "jest.json",
            // Without the first one, snapshots that are missing would be written.
            &["--ci", "--json", "--outputFile={artifacts}/jest.json", "--testLocationInResults"],
        ),
    ),
    (
        Tool::Vitest,
        file(
            F::Jest,
            "vitest.json",
            &["--reporter=default", "--reporter=json", "--outputFile.json={artifacts}/vitest.json"],
        ),
    ),
    (
        Tool::Mocha,
        file(
            F::Mocha,
            "mocha.json",
            &["--reporter", "json", "--reporter-option", "output={artifacts}/mocha.json"],
        ),
    ),
    (
        Tool::NodeTest,
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
        Tool::BunTest,
        file(F::Bun, "bun.xml", &["--reporter=junit", "--reporter-outfile={artifacts}/bun.xml"]),
    ),
    (
        Tool::Eslint,
        file(
            F::Eslint,
            "eslint.json",
            &["--format", "json", "--output-file", "{artifacts}/eslint.json"],
        ),
    ),
    // Without the second one it stops after twenty.
    (Tool::Biome, printed(F::Biome, &["--reporter=json", "--max-diagnostics=none"])),
    (Tool::Oxlint, printed(F::Oxlint, &["--format", "json"])),
    (Tool::Prettier, printed(F::Prettier, &[])),
    (Tool::Tsc, printed(F::Tsc, &["--pretty", "false"])),
    (
        Tool::Pytest,
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
    (Tool::Unittest, printed(F::Unittest, &[])),
    (
        Tool::Ruff,
        file(
            F::Ruff,
            "ruff.json",
            &["--output-format", "json", "--output-file", "{artifacts}/ruff.json"],
        ),
    ),
    (Tool::RuffFormat, printed(F::RuffFormat, &[])),
    (Tool::Black, printed(F::Black, &[])),
    (Tool::Flake8, printed(F::Flake8, &["--format=default"])),
    (Tool::Pylint, printed(F::Pylint, &["--output-format=json"])),
    (
        Tool::Mypy,
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
    (Tool::Pyright, printed(F::Pyright, &["--outputjson"])),
    (Tool::GoTest, printed(F::GoTest, &["-json", "-count=1"])),
    (Tool::GoVet, printed(F::Lines, &[])),
    // The option for JSON has another name in each major version; the text has not.
    (Tool::Golangci, printed(F::Golangci, &[])),
    (Tool::Gofmt, printed(F::FileList, &[])),
    (Tool::Maven, project("**/target/surefire-reports/TEST-*.xml", &["-fae"])),
    (Tool::Gradle, project("**/build/test-results/**/TEST-*.xml", &["--continue"])),
    (Tool::DenoTest, file(F::Deno, "deno.xml", &["--junit-path={artifacts}/deno.xml"])),
    (Tool::DenoLint, printed(F::DenoLint, &["--json"])),
    (Tool::DenoCheck, printed(F::DenoCheck, &[])),
    (Tool::DenoFmt, printed(F::DenoFmt, &[])),
    (
        Tool::Rspec,
        file(
            F::Rspec,
            "rspec.json",
            &["--format", "progress", "--format", "json", "--out", "{artifacts}/rspec.json"],
        ),
    ),
    (
        Tool::Rubocop,
        file(
            F::Rubocop,
            "rubocop.json",
            &["--format", "json", "--out", "{artifacts}/rubocop.json"],
        ),
    ),
    (Tool::Phpunit, file(F::Junit, "phpunit.xml", &["--log-junit", "{artifacts}/phpunit.xml"])),
    (Tool::Phpstan, printed(F::Phpstan, &["--error-format=json"])),
    (Tool::DotnetBuild, printed(F::Tsc, &[])),
    (Tool::Ctest, file(F::Junit, "ctest.xml", &["--output-junit", "{artifacts}/ctest.xml"])),
    (Tool::Cmake, printed(F::Lines, &[])),
    (Tool::Make, printed(F::Lines, &[])),
    (Tool::ClangFormat, printed(F::Lines, &[])),
];
