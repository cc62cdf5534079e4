//! The programs that test, check and format projects.

use serde::{Deserialize, Serialize};

macro_rules! tools {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// A program whose output is understood, or one of the three stand-ins at the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum ProjectTool { $($(#[$doc])* $variant,)* }

        impl ProjectTool {
            /// Returns the name people know it by.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

tools! {
    /// `cargo test` with the standard harness.
    CargoTest = "cargo test",
    /// `cargo nextest run`.
    Nextest = "cargo nextest",
    /// `cargo clippy`.
    Clippy = "cargo clippy",
    /// `cargo check`.
    CargoCheck = "cargo check",
    /// `rustfmt` and `cargo fmt`.
    Rustfmt = "rustfmt",
    /// Jest.
    Jest = "jest",
    /// Vitest.
    Vitest = "vitest",
    /// Mocha.
    Mocha = "mocha",
    /// Node's own runner.
    NodeTest = "node --test",
    /// `bun test`.
    BunTest = "bun test",
    /// `ESLint`.
    Eslint = "eslint",
    /// Biome.
    Biome = "biome",
    /// Oxlint.
    Oxlint = "oxlint",
    /// Prettier.
    Prettier = "prettier",
    /// The TypeScript compiler.
    Tsc = "tsc",
    /// Pytest.
    Pytest = "pytest",
    /// Python's own runner.
    Unittest = "python -m unittest",
    /// `ruff check`.
    Ruff = "ruff",
    /// `ruff format`.
    RuffFormat = "ruff format",
    /// Black.
    Black = "black",
    /// Flake8.
    Flake8 = "flake8",
    /// Pylint.
    Pylint = "pylint",
    /// Mypy.
    Mypy = "mypy",
    /// Pyright.
    Pyright = "pyright",
    /// `go test`.
    GoTest = "go test",
    /// `go vet`.
    GoVet = "go vet",
    /// golangci-lint.
    Golangci = "golangci-lint",
    /// `gofmt`.
    Gofmt = "gofmt",
    /// Maven.
    Maven = "mvn",
    /// Gradle.
    Gradle = "gradle",
    /// `deno test`.
    DenoTest = "deno test",
    /// `deno lint`.
    DenoLint = "deno lint",
    /// `deno fmt`.
    DenoFmt = "deno fmt",
    /// `deno check`.
    DenoCheck = "deno check",
    /// `RSpec`.
    Rspec = "rspec",
    /// `rake test`.
    Rake = "rake",
    /// `RuboCop`.
    Rubocop = "rubocop",
    /// `PHPUnit`.
    Phpunit = "phpunit",
    /// `PHPStan`.
    Phpstan = "phpstan",
    /// PHP CS Fixer.
    PhpCsFixer = "php-cs-fixer",
    /// `dotnet test`.
    DotnetTest = "dotnet test",
    /// `dotnet build`.
    DotnetBuild = "dotnet build",
    /// `dotnet format`.
    DotnetFormat = "dotnet format",
    /// `CTest`.
    Ctest = "ctest",
    /// `cmake --build`.
    Cmake = "cmake",
    /// Make.
    Make = "make",
    /// clang-format.
    ClangFormat = "clang-format",
    /// A package manager that installs.
    Installer = "package manager",
    /// A script of the project whose last command is not known.
    Script = "script",
    /// A command that a person wrote down and that is none of the above.
    Other = "command",
}

/// Words that run another program and have no say in what it prints.
const RUNNERS: [&[&str]; 13] = [
    &["npx", "--no-install"],
    &["npx", "--no-install", "--offline"],
    &["npx"],
    &["bunx"],
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
    /// Recognises the program that a command line starts, whatever starts it.
    pub fn recognise(words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let words = strip_runner(&words);
        let program = crate::paths::name(words.first()?);
        let rest = &words[1..];
        by_subcommand(program, rest).or_else(|| by_program(program))
    }
}

fn strip_runner<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let matching = RUNNERS.iter().filter(|runner| words.starts_with(runner));
    let longest = matching.map(|runner| runner.len()).max().unwrap_or(0);
    let rest = &words[longest..];
    // Options of the runner stand between it and the program.
    let options =
        if longest == 0 { 0 } else { rest.iter().take_while(|w| w.starts_with("--")).count() };
    &rest[options..]
}

fn by_subcommand(program: &str, rest: &[&str]) -> Option<ProjectTool> {
    let sub = rest.iter().find(|word| !word.starts_with(['-', '+'])).copied().unwrap_or_default();
    match (program, sub) {
        ("cargo", "test" | "t") => Some(ProjectTool::CargoTest),
        ("cargo", "nextest") => Some(ProjectTool::Nextest),
        ("cargo", "clippy") => Some(ProjectTool::Clippy),
        ("cargo", "check" | "c" | "build" | "b") => Some(ProjectTool::CargoCheck),
        ("cargo", "fmt") => Some(ProjectTool::Rustfmt),
        ("node" | "tsx", _) if rest.contains(&"--test") => Some(ProjectTool::NodeTest),
        ("bun", "test") => Some(ProjectTool::BunTest),
        ("ruff", "format") => Some(ProjectTool::RuffFormat),
        ("go", "test") => Some(ProjectTool::GoTest),
        ("go", "vet" | "build") => Some(ProjectTool::GoVet),
        ("deno", "test") => Some(ProjectTool::DenoTest),
        ("deno", "lint") => Some(ProjectTool::DenoLint),
        ("deno", "fmt") => Some(ProjectTool::DenoFmt),
        ("deno", "check") => Some(ProjectTool::DenoCheck),
        ("dotnet", "test") => Some(ProjectTool::DotnetTest),
        ("dotnet", "build") => Some(ProjectTool::DotnetBuild),
        ("dotnet", "format") => Some(ProjectTool::DotnetFormat),
        _ => None,
    }
}

fn by_program(program: &str) -> Option<ProjectTool> {
    Some(match program {
        "rustfmt" => ProjectTool::Rustfmt,
        "jest" => ProjectTool::Jest,
        "vitest" => ProjectTool::Vitest,
        "mocha" => ProjectTool::Mocha,
        "eslint" => ProjectTool::Eslint,
        "biome" => ProjectTool::Biome,
        "oxlint" => ProjectTool::Oxlint,
        "prettier" => ProjectTool::Prettier,
        "tsc" => ProjectTool::Tsc,
        "pytest" | "py.test" => ProjectTool::Pytest,
        "unittest" => ProjectTool::Unittest,
        "ruff" => ProjectTool::Ruff,
        "black" => ProjectTool::Black,
        "flake8" => ProjectTool::Flake8,
        "pylint" => ProjectTool::Pylint,
        "mypy" => ProjectTool::Mypy,
        "pyright" | "basedpyright" => ProjectTool::Pyright,
        "golangci-lint" => ProjectTool::Golangci,
        "gofmt" => ProjectTool::Gofmt,
        "mvn" | "mvnw" => ProjectTool::Maven,
        "gradle" | "gradlew" => ProjectTool::Gradle,
        "rspec" => ProjectTool::Rspec,
        "rake" => ProjectTool::Rake,
        "rubocop" => ProjectTool::Rubocop,
        "phpunit" => ProjectTool::Phpunit,
        "phpstan" => ProjectTool::Phpstan,
        "php-cs-fixer" => ProjectTool::PhpCsFixer,
        "ctest" => ProjectTool::Ctest,
        "cmake" => ProjectTool::Cmake,
        "make" => ProjectTool::Make,
        "clang-format" => ProjectTool::ClangFormat,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_recognised_through_whatever_starts_it() {
        let cases = [
            ("cargo +nightly test --all", Some(ProjectTool::CargoTest)),
            ("node_modules/.bin/jest --ci", Some(ProjectTool::Jest)),
            ("npx --no-install --offline eslint .", Some(ProjectTool::Eslint)),
            ("uv run --no-sync pytest -x", Some(ProjectTool::Pytest)),
            ("python -m unittest discover", Some(ProjectTool::Unittest)),
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
