//! Asking each tool for the report that says most and changes least.

use serde::Serialize;

use crate::plan::request::Request;
use crate::plan::{Invocation, hint};
use crate::profile::{Command, Ecosystem, Injection, Membership, PackageManager, Profile, words};
use crate::tool::Tool;

/// How a tool's output is to be read.
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

/// Words that are chosen already, and how options still reach the tool.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) argv: Vec<String>,
    pub(super) injection: Injection,
    pub(super) tool: Tool,
}

impl Line {
    /// The command for the whole project.
    pub(super) fn whole(command: &Command) -> Self {
        Self { argv: command.argv.clone(), injection: command.injection, tool: command.tool }
    }

    /// Words that start the tool itself.
    pub(super) fn direct(tool: Tool, argv: Vec<String>) -> Self {
        Self { argv, injection: Injection::Direct, tool }
    }
}

/// Makes a command line that leaves a readable report.
pub(super) fn invocation(profile: &Profile, command: &Command, line: Line) -> Invocation {
    let Line { argv, injection, tool } = line;
    let request = match injection {
        Injection::Impossible => Request::TEXT,
        Injection::Direct | Injection::Script | Injection::ScriptAfterDashes => Request::of(tool),
    };
    let environment = command
        .environment
        .iter()
        .cloned()
        .chain(
            request
                .environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
        .chain(quiet(profile, tool))
        .collect();
    Invocation {
        argv: inject(argv, injection, tool, request.options),
        directory: command.directory.clone(),
        environment,
        report: request.format,
        artifacts: request.artifact().into_iter().collect(),
        tool,
        base: base(profile, command),
        module: profile.name.clone().filter(|_| profile.ecosystem == Ecosystem::Go),
        install_hint: hint::install(profile, tool),
    }
}

/// Cargo compiles members where their workspace is; everything else names files from where it runs.
fn base(profile: &Profile, command: &Command) -> String {
    match (&profile.membership, profile.ecosystem) {
        (Some(Membership::Member { of }), Ecosystem::Rust) => of.clone(),
        _ => command.directory.clone(),
    }
}

/// Variables that keep colours, questions and downloads away.
fn quiet(profile: &Profile, tool: Tool) -> Vec<(String, String)> {
    let mut all = vec![("NO_COLOR".to_owned(), "1".to_owned())];
    let node = profile.ecosystem == Ecosystem::Node && tool != Tool::Installer;
    let shim = matches!(profile.package_manager, Some(PackageManager::Yarn | PackageManager::Pnpm));
    if node && shim {
        // The shims of these managers fetch the manager itself unless told not to.
        all.push(("COREPACK_ENABLE_NETWORK".to_owned(), "0".to_owned()));
    }
    all
}

fn inject(argv: Vec<String>, injection: Injection, tool: Tool, options: &[&str]) -> Vec<String> {
    let options = words(options);
    let at = match (injection, tool) {
        (Injection::ScriptAfterDashes, _) if !options.is_empty() => {
            return [argv, words(&["--"]), options].concat();
        }
        // What follows `--` belongs to the test binaries or the compiler.
        (_, Tool::CargoTest | Tool::Nextest | Tool::Clippy | Tool::CargoCheck) => {
            argv.iter().position(|word| word == "--").unwrap_or(argv.len())
        }
        // Node takes everything behind the first file for the file's own arguments.
        (_, Tool::NodeTest) => after(&argv, "--test"),
        (_, Tool::GoTest) => after(&argv, "test"),
        _ => argv.len(),
    };
    [&argv[..at], &options, &argv[at..]].concat()
}

fn after(argv: &[String], word: &str) -> usize {
    argv.iter().position(|known| known == word).map_or(argv.len(), |at| at + 1)
}
