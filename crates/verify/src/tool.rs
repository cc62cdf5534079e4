//! The programs that test, check and format projects, and their recognition in command lines.
//!
//! Scripts and settings name a program in many ways: by path, behind launchers such as `npx` or `uv
//! run`, or as a module of Python. Recognition strips these, so that a configured command gets the
//! same report options as a detected one. A program that is not in the table is run as it is and
//! judged by its exit status.

use serde::{Deserialize, Serialize};

macro_rules! tools {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// A program with a known report, or one of the three placeholders at the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "the names of most variants are those of the programs")]
        pub enum ProjectTool { $($(#[$doc])* $variant,)* }

        impl ProjectTool {
            /// Returns the usual name, such as `cargo test`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

tools! {
    /// `cargo test` with the standard harness.
    CargoTest = "cargo test",
    Nextest = "cargo nextest",
    Clippy = "cargo clippy",
    CargoCheck = "cargo check",
    /// `rustfmt` and `cargo fmt`.
    Rustfmt = "rustfmt",
    Jest = "jest",
    Vitest = "vitest",
    Mocha = "mocha",
    NodeTest = "node --test",
    BunTest = "bun test",
    Eslint = "eslint",
    Biome = "biome",
    Oxlint = "oxlint",
    Prettier = "prettier",
    Tsc = "tsc",
    Pytest = "pytest",
    Unittest = "python -m unittest",
    Ruff = "ruff",
    RuffFormat = "ruff format",
    Black = "black",
    Flake8 = "flake8",
    Pylint = "pylint",
    Mypy = "mypy",
    Pyright = "pyright",
    GoTest = "go test",
    GoVet = "go vet",
    Golangci = "golangci-lint",
    Gofmt = "gofmt",
    Maven = "mvn",
    Gradle = "gradle",
    DenoTest = "deno test",
    DenoLint = "deno lint",
    DenoFmt = "deno fmt",
    DenoCheck = "deno check",
    Rspec = "rspec",
    Rake = "rake",
    Rubocop = "rubocop",
    Phpunit = "phpunit",
    Phpstan = "phpstan",
    PhpCsFixer = "php-cs-fixer",
    DotnetTest = "dotnet test",
    DotnetBuild = "dotnet build",
    DotnetFormat = "dotnet format",
    Ctest = "ctest",
    Cmake = "cmake",
    Make = "make",
    ClangFormat = "clang-format",
    Installer = "package manager",
    /// A script of the project whose last command is unknown.
    Script = "script",
    /// A command from `carrel.toml` that is none of the above.
    Other = "command",
}

/// Launchers, which start another program and do not change its output.
const LAUNCHERS: [&[&str]; 13] = [
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
    /// Recognises the tool of a command line, behind launchers and paths.
    pub fn recognise(words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let words = strip_launcher(&words);
        let program = crate::paths::name(words.first()?);
        let rest = &words[1..];
        by_subcommand(program, rest).or_else(|| by_program(program))
    }
}

fn strip_launcher<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let matching = LAUNCHERS.iter().filter(|launcher| words.starts_with(launcher));
    let longest = matching.map(|launcher| launcher.len()).max().unwrap_or(0);
    let rest = &words[longest..];
    // Options of the launcher precede the program.
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
    fn a_tool_is_recognised_behind_launchers() {
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
