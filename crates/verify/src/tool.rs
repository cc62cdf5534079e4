//! The programs that test, check and format projects, and their recognition in command lines.
//!
//! Each tool is one row of a table: its name, the way to install it, and the options that make it
//! write a machine-readable report. Reports in files of the artifact directory are preferred, where
//! the output of tests cannot be mixed with them; then reports on standard output; and text only
//! for tools that have nothing else. A tool without a report is judged by its exit status.
//!
//! Scripts and settings name a program in many ways: by path, behind launchers such as `npx` or `uv
//! run`, or as a module of Python. Recognition strips these, so that a configured command gets the
//! same report options as a detected one. A program that is not in the table is run as it is and
//! judged by its exit status.

use serde::{Deserialize, Serialize};

use crate::plan::{InstallHint, ReportFormat as F, ReportOptions};
use crate::profile::has_word;

use InstallHint::{Bundler, Machine, Npm, Pip, Text};
use ReportOptions as R;

/// A row of the table of tools.
#[derive(Debug)]
pub(crate) struct ToolFacts {
    name: &'static str,
    pub(crate) install: InstallHint,
    pub(crate) report: ReportOptions,
}

macro_rules! tools {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $install:expr, $report:expr;)*) => {
        /// A program with a known report, or one of the three placeholders at the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "the names of most variants are those of the programs")]
        pub enum ProjectTool { $($(#[$doc])* $variant,)* }

        impl ProjectTool {
            const ALL: &[Self] = &[$(Self::$variant),*];

            pub(crate) fn facts(self) -> ToolFacts {
                match self {
                    $(Self::$variant => {
                        ToolFacts { name: $name, install: $install, report: $report }
                    })*
                }
            }
        }
    };
}

const RUSTUP: InstallHint = Text("install Rust with rustup");
const GO: InstallHint = Text("install Go on this machine");
const ANY_PROGRAM: InstallHint =
    Text("install the program on this machine, or name another in carrel.toml");

tools! {
    /// `cargo test` with the standard harness.
    CargoTest = "cargo test", RUSTUP,
        R::printed(F::CargoTest, "--no-fail-fast --message-format=json");
    Nextest = "cargo nextest", Text("run `cargo install cargo-nextest --locked`"),
        R::printed(F::Nextest, "--no-fail-fast --message-format libtest-json-plus");
    Clippy = "cargo clippy", Text("run `rustup component add clippy`"),
        R::printed(F::CargoMessages, "--message-format=json");
    CargoCheck = "cargo check", RUSTUP, R::printed(F::CargoMessages, "--message-format=json");
    /// `rustfmt` and `cargo fmt`.
    Rustfmt = "rustfmt", Text("run `rustup component add rustfmt`"), R::printed(F::Rustfmt, "");
    // `--ci` keeps missing snapshots from being written.
    Jest = "jest", Npm("jest"), R::file(F::Jest, "jest.json",
        "--ci --json --outputFile={artifacts}/jest.json --testLocationInResults");
    Vitest = "vitest", Npm("vitest"), R::file(F::Jest, "vitest.json",
        "--reporter=default --reporter=json --outputFile.json={artifacts}/vitest.json");
    Mocha = "mocha", Npm("mocha"), R::file(F::Mocha, "mocha.json",
        "--reporter json --reporter-option output={artifacts}/mocha.json");
    NodeTest = "node --test", Machine, R::file(F::Tap, "node.tap",
        "--test-reporter=spec --test-reporter-destination=stdout \
         --test-reporter=tap --test-reporter-destination={artifacts}/node.tap");
    BunTest = "bun test", Machine, R::file(F::Bun, "bun.xml",
        "--reporter=junit --reporter-outfile={artifacts}/bun.xml");
    Eslint = "eslint", Npm("eslint"), R::file(F::Eslint, "eslint.json",
        "--format json --output-file {artifacts}/eslint.json");
    // The default is to stop after twenty diagnostics.
    Biome = "biome", Npm("@biomejs/biome"),
        R::printed(F::Biome, "--reporter=json --max-diagnostics=none");
    Oxlint = "oxlint", Npm("oxlint"), R::printed(F::Oxlint, "--format json");
    Prettier = "prettier", Npm("prettier"), R::printed(F::Prettier, "");
    Oxfmt = "oxfmt", Npm("oxfmt"), R::TEXT;
    Tsc = "tsc", Npm("typescript"), R::printed(F::Tsc, "--pretty false");
    // Only the older `xunit1` family contains file names.
    Pytest = "pytest", Pip("pytest"), R::file(F::Pytest, "pytest.xml",
        "--color=no --rootdir=. -o junit_family=xunit1 --junitxml={artifacts}/pytest.xml");
    Unittest = "python -m unittest", Machine, R::printed(F::Unittest, "");
    Tox = "tox", Pip("tox"), R::TEXT;
    Nox = "nox", Pip("nox"), R::TEXT;
    Ruff = "ruff", Pip("ruff"), R::file(F::Ruff, "ruff.json",
        "--output-format json --output-file {artifacts}/ruff.json");
    RuffFormat = "ruff format", Pip("ruff"), R::printed(F::RuffFormat, "");
    Black = "black", Pip("black"), R::printed(F::Black, "");
    Flake8 = "flake8", Pip("flake8"), R::printed(F::Flake8, "--format=default");
    Pylint = "pylint", Pip("pylint"), R::printed(F::Pylint, "--output-format=json");
    Mypy = "mypy", Pip("mypy"), R::printed(F::Mypy,
        "--no-color-output --no-pretty --show-column-numbers --show-error-end \
         --show-error-codes --no-error-summary");
    Pyright = "pyright", Pip("pyright"), R::printed(F::Pyright, "--outputjson");
    GoTest = "go test", GO, R::printed(F::GoTest, "-json -count=1");
    GoVet = "go vet", GO, R::printed(F::Lines, "");
    // The option for JSON differs between major versions; the text format does not.
    Golangci = "golangci-lint", Text("see https://golangci-lint.run for how to install it"),
        R::printed(F::Golangci, "");
    Gofmt = "gofmt", GO, R::printed(F::FileList, "");
    Maven = "mvn", Machine, R::project("**/target/surefire-reports/TEST-*.xml", "-fae");
    Gradle = "gradle", Machine, R::project("**/build/test-results/**/TEST-*.xml", "--continue");
    DenoTest = "deno test", Machine,
        R::file(F::Deno, "deno.xml", "--junit-path={artifacts}/deno.xml");
    DenoLint = "deno lint", Machine, R::printed(F::DenoLint, "--json");
    DenoFmt = "deno fmt", Machine, R::printed(F::DenoFmt, "");
    DenoCheck = "deno check", Machine, R::printed(F::DenoCheck, "");
    Rspec = "rspec", Bundler("rspec"), R::file(F::Rspec, "rspec.json",
        "--format progress --format json --out {artifacts}/rspec.json");
    Rake = "rake", Bundler("rake"), R::TEXT;
    Rubocop = "rubocop", Bundler("rubocop"),
        R::file(F::Rubocop, "rubocop.json", "--format json --out {artifacts}/rubocop.json");
    Phpunit = "phpunit", Text("run `composer require --dev phpunit/phpunit`"),
        R::file(F::Junit, "phpunit.xml", "--log-junit {artifacts}/phpunit.xml");
    Phpstan = "phpstan", Text("run `composer require --dev phpstan/phpstan`"),
        R::printed(F::Phpstan, "--error-format=json");
    PhpCsFixer = "php-cs-fixer", Text("run `composer require --dev friendsofphp/php-cs-fixer`"),
        R::TEXT;
    DotnetTest = "dotnet test", Machine, R::TEXT;
    DotnetBuild = "dotnet build", Machine, R::printed(F::Tsc, "");
    DotnetFormat = "dotnet format", Machine, R::TEXT;
    Ctest = "ctest", Machine,
        R::file(F::Junit, "ctest.xml", "--output-junit {artifacts}/ctest.xml");
    Cmake = "cmake", Machine, R::printed(F::Lines, "");
    Make = "make", Machine, R::printed(F::Lines, "");
    ClangFormat = "clang-format", Machine, R::printed(F::Lines, "");
    // The report lies in the build directory, which the plan names.
    MesonTest = "meson test", Machine, R::project("**/meson-logs/testlog.junit.xml", "");
    Meson = "meson", Machine, R::printed(F::Lines, "");
    Mix = "mix", Machine, R::TEXT;
    Zig = "zig", Machine, R::printed(F::Lines, "");
    Swift = "swift", Machine, R::printed(F::Lines, "");
    Swiftlint = "swiftlint", Machine, R::printed(F::Lines, "");
    Dart = "dart", Machine, R::TEXT;
    Flutter = "flutter", Machine, R::TEXT;
    Sbt = "sbt", Machine, R::TEXT;
    Dune = "dune", Text("run `opam install dune`"), R::TEXT;
    Cabal = "cabal", Machine, R::printed(F::Lines, "");
    Stack = "stack", Machine, R::printed(F::Lines, "");
    Hlint = "hlint", Machine, R::printed(F::Lines, "");
    Bazel = "bazel", Machine, R::TEXT;
    Just = "just", Machine, R::TEXT;
    Task = "task", Machine, R::TEXT;
    Installer = "package manager", ANY_PROGRAM, R::TEXT;
    /// A script of the project whose last command is unknown.
    Script = "script", ANY_PROGRAM, R::TEXT;
    /// A command from `carrel.toml` that is none of the above.
    Other = "command", ANY_PROGRAM, R::TEXT;
}

/// Other names of tools, and programs that do the same.
const ALIASES: [(&str, ProjectTool); 13] = [
    ("cargo t", ProjectTool::CargoTest),
    ("cargo c", ProjectTool::CargoCheck),
    ("cargo build", ProjectTool::CargoCheck),
    ("cargo b", ProjectTool::CargoCheck),
    ("cargo fmt", ProjectTool::Rustfmt),
    ("go build", ProjectTool::GoVet),
    ("py.test", ProjectTool::Pytest),
    ("unittest", ProjectTool::Unittest),
    ("basedpyright", ProjectTool::Pyright),
    ("mvnw", ProjectTool::Maven),
    ("gradlew", ProjectTool::Gradle),
    ("bazelisk", ProjectTool::Bazel),
    ("go-task", ProjectTool::Task),
];

/// Launchers, which start another program and do not change its output.
const LAUNCHERS: [&[&str]; 13] = [
    &["npx"],
    &["bunx"],
    &["bun", "x"],
    &["npm", "exec"],
    &["pnpm", "exec"],
    &["yarn", "exec"],
    &["yarn", "run"],
    &["uv", "run"],
    &["poetry", "run"],
    &["pipenv", "run"],
    &["bundle", "exec"],
    &["python", "-m"],
    &["python3", "-m"],
];

impl ProjectTool {
    /// Returns the usual name, such as `cargo test`.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns true for a test runner of JavaScript and TypeScript.
    pub(crate) fn is_node_runner(self) -> bool {
        matches!(self, Self::Jest | Self::Vitest | Self::Mocha | Self::NodeTest | Self::BunTest)
    }

    /// Recognises the tool of a command line, behind launchers and paths.
    pub fn recognise(words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (program, rest) = strip_launcher(&words).split_first()?;
        let program = crate::paths::name(program);
        if matches!(program, "node" | "tsx") && rest.contains(&"--test") {
            return Some(Self::NodeTest);
        }
        let sub = rest.iter().find(|word| !word.starts_with(['-', '+']));
        let with_sub = sub.and_then(|sub| by_name(&format!("{program} {sub}")));
        with_sub.or_else(|| by_name(program)).filter(|_| !program.contains(' '))
    }
}

fn by_name(name: &str) -> Option<ProjectTool> {
    let placeholders = [ProjectTool::Installer, ProjectTool::Script, ProjectTool::Other];
    let programs = ProjectTool::ALL.iter().filter(|tool| !placeholders.contains(tool));
    let names = programs.map(|tool| (tool.name(), *tool)).chain(ALIASES);
    names.into_iter().find_map(|(known, tool)| (known == name).then_some(tool))
}

/// Options of launchers whose value is the next word.
const LAUNCHER_VALUES: &str = "-p --package -w --workspace";

/// Returns the words after a launcher and its options; all words if there is no launcher.
pub(crate) fn strip_launcher<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    // The interpreter of a virtual environment has a path.
    let is_word = |(place, launcher): (usize, &&str)| {
        words.get(place).is_some_and(|word| match place {
            0 => crate::paths::name(word) == *launcher,
            _ => word == launcher,
        })
    };
    let is_launched = |launcher: &&&[&str]| launcher.iter().enumerate().all(is_word);
    let longest = LAUNCHERS.iter().filter(is_launched).map(|words| words.len()).max().unwrap_or(0);
    let mut rest = &words[longest..];
    // Options of the launcher precede the program.
    while let Some((option, after)) = rest.split_first()
        && longest > 0
        && option.starts_with('-')
    {
        let values = usize::from(has_word(LAUNCHER_VALUES, option)).min(after.len());
        rest = &after[values..];
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_recognised_behind_launchers() {
        let cases = [
            ("cargo +nightly test --all", Some(ProjectTool::CargoTest)),
            ("node_modules/.bin/jest --ci", Some(ProjectTool::Jest)),
            ("npx --no-install --offline eslint .", Some(ProjectTool::Eslint)),
            ("npx --yes jest", Some(ProjectTool::Jest)),
            ("npx -y -p typescript tsc", Some(ProjectTool::Tsc)),
            ("npm exec -- mocha", Some(ProjectTool::Mocha)),
            ("uv run --no-sync pytest -x", Some(ProjectTool::Pytest)),
            ("python -m unittest discover", Some(ProjectTool::Unittest)),
            (".venv/bin/python -m pytest -q", Some(ProjectTool::Pytest)),
            (".venv/bin/python tests.py -m", None),
            ("node --import tsx --test", Some(ProjectTool::NodeTest)),
            (".venv/bin/ruff format .", Some(ProjectTool::RuffFormat)),
            ("ruff check .", Some(ProjectTool::Ruff)),
            ("make check", Some(ProjectTool::Make)),
            ("./run-tests.sh", None),
        ];
        for (line, expected) in cases {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(ProjectTool::recognise(&words), expected, "{line}");
        }
    }
}
