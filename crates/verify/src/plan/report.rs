//! Asking each tool for the report that says most and changes least.

use serde::Serialize;

use crate::plan::request::Request;
use crate::plan::{Invocation, hint};
use crate::profile::{
    Ecosystem, Membership, OptionPassing, PackageManager, Profile, ProjectCommand, words,
};
use crate::tool::ProjectTool;

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
    pub(super) injection: OptionPassing,
    pub(super) tool: ProjectTool,
}

impl Line {
    /// The command for the whole project.
    pub(super) fn whole(command: &ProjectCommand) -> Self {
        Self { argv: command.argv.clone(), injection: command.injection, tool: command.tool }
    }

    /// Words that start the tool itself.
    pub(super) fn direct(tool: ProjectTool, argv: Vec<String>) -> Self {
        Self { argv, injection: OptionPassing::Direct, tool }
    }
}

/// Makes a command line that leaves a readable report.
pub(super) fn invocation(profile: &Profile, command: &ProjectCommand, line: Line) -> Invocation {
    let Line { argv, injection, tool } = line;
    let request = match injection {
        OptionPassing::Impossible => Request::TEXT,
        OptionPassing::Direct | OptionPassing::Script | OptionPassing::ScriptAfterDashes => {
            Request::of(tool)
        }
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
fn base(profile: &Profile, command: &ProjectCommand) -> String {
    match (&profile.membership, profile.ecosystem) {
        (Some(Membership::Member { of }), Ecosystem::Rust) => of.clone(),
        _ => command.directory.clone(),
    }
}

/// Variables that keep colours, questions and downloads away.
fn quiet(profile: &Profile, tool: ProjectTool) -> Vec<(String, String)> {
    let mut all = vec![("NO_COLOR".to_owned(), "1".to_owned())];
    let node = profile.ecosystem == Ecosystem::Node && tool != ProjectTool::Installer;
    let shim = matches!(profile.package_manager, Some(PackageManager::Yarn | PackageManager::Pnpm));
    if node && shim {
        // The shims of these managers fetch the manager itself unless told not to.
        all.push(("COREPACK_ENABLE_NETWORK".to_owned(), "0".to_owned()));
    }
    all
}

fn inject(
    argv: Vec<String>,
    injection: OptionPassing,
    tool: ProjectTool,
    options: &[&str],
) -> Vec<String> {
    let options = words(options);
    let at = match (injection, tool) {
        (OptionPassing::ScriptAfterDashes, _) if !options.is_empty() => {
            return [argv, words(&["--"]), options].concat();
        }
        // What follows `--` belongs to the test binaries or the compiler.
        (
            _,
            ProjectTool::CargoTest
            | ProjectTool::Nextest
            | ProjectTool::Clippy
            | ProjectTool::CargoCheck,
        ) => argv.iter().position(|word| word == "--").unwrap_or(argv.len()),
        // Node takes everything behind the first file for the file's own arguments.
        (_, ProjectTool::NodeTest) => after(&argv, "--test"),
        (_, ProjectTool::GoTest) => after(&argv, "test"),
        _ => argv.len(),
    };
    [&argv[..at], &options, &argv[at..]].concat()
}

fn after(argv: &[String], word: &str) -> usize {
    argv.iter().position(|known| known == word).map_or(argv.len(), |at| at + 1)
}
