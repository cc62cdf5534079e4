//! The programs that test, check and format projects.

use serde::{Deserialize, Serialize};

macro_rules! tools {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// A program whose output is understood, or one of the three stand-ins at the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Tool { $($(#[$doc])* $variant,)* }

        impl Tool {
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

impl Tool {
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

fn by_subcommand(program: &str, rest: &[&str]) -> Option<Tool> {
    let sub = rest.iter().find(|word| !word.starts_with(['-', '+'])).copied().unwrap_or_default();
    match (program, sub) {
        ("cargo", "test" | "t") => Some(Tool::CargoTest),
        ("cargo", "nextest") => Some(Tool::Nextest),
        ("cargo", "clippy") => Some(Tool::Clippy),
        ("cargo", "check" | "c" | "build" | "b") => Some(Tool::CargoCheck),
        ("cargo", "fmt") => Some(Tool::Rustfmt),
        ("node" | "tsx", _) if rest.contains(&"--test") => Some(Tool::NodeTest),
        ("bun", "test") => Some(Tool::BunTest),
        ("ruff", "format") => Some(Tool::RuffFormat),
        ("go", "test") => Some(Tool::GoTest),
        ("go", "vet" | "build") => Some(Tool::GoVet),
        ("deno", "test") => Some(Tool::DenoTest),
        ("deno", "lint") => Some(Tool::DenoLint),
        ("deno", "fmt") => Some(Tool::DenoFmt),
        ("deno", "check") => Some(Tool::DenoCheck),
        ("dotnet", "test") => Some(Tool::DotnetTest),
        ("dotnet", "build") => Some(Tool::DotnetBuild),
        ("dotnet", "format") => Some(Tool::DotnetFormat),
        _ => None,
    }
}

fn by_program(program: &str) -> Option<Tool> {
    Some(match program {
        "rustfmt" => Tool::Rustfmt,
        "jest" => Tool::Jest,
        "vitest" => Tool::Vitest,
        "mocha" => Tool::Mocha,
        "eslint" => Tool::Eslint,
        "biome" => Tool::Biome,
        "oxlint" => Tool::Oxlint,
        "prettier" => Tool::Prettier,
        "tsc" => Tool::Tsc,
        "pytest" | "py.test" => Tool::Pytest,
        "unittest" => Tool::Unittest,
        "ruff" => Tool::Ruff,
        "black" => Tool::Black,
        "flake8" => Tool::Flake8,
        "pylint" => Tool::Pylint,
        "mypy" => Tool::Mypy,
        "pyright" | "basedpyright" => Tool::Pyright,
        "golangci-lint" => Tool::Golangci,
        "gofmt" => Tool::Gofmt,
        "mvn" | "mvnw" => Tool::Maven,
        "gradle" | "gradlew" => Tool::Gradle,
        "rspec" => Tool::Rspec,
        "rake" => Tool::Rake,
        "rubocop" => Tool::Rubocop,
        "phpunit" => Tool::Phpunit,
        "phpstan" => Tool::Phpstan,
        "php-cs-fixer" => Tool::PhpCsFixer,
        "ctest" => Tool::Ctest,
        "cmake" => Tool::Cmake,
        "make" => Tool::Make,
        "clang-format" => Tool::ClangFormat,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_recognised_through_whatever_starts_it() {
        let cases = [
            ("cargo +nightly test --all", Some(Tool::CargoTest)),
            ("node_modules/.bin/jest --ci", Some(Tool::Jest)),
            ("npx --no-install --offline eslint .", Some(Tool::Eslint)),
            ("uv run --no-sync pytest -x", Some(Tool::Pytest)),
            ("python -m unittest discover", Some(Tool::Unittest)),
            ("node --import tsx --test", Some(Tool::NodeTest)),
            (".venv/bin/ruff format .", Some(Tool::RuffFormat)),
            ("ruff check .", Some(Tool::Ruff)),
            ("make check", Some(Tool::Make)),
            ("./run-tests.sh", None),
        ];
        for (line, expected) in cases {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(Tool::recognise(&words), expected, "{line}");
        }
    }
}
