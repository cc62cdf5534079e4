//! Assembly of invocations: the selected arguments, the options for the report, and the
//! environment.
//!
//! Options must stand where the tool reads them: before `--` for cargo, after `--test` for Node,
//! behind an extra `--` for npm scripts.

use crate::plan::report_options::ReportOptions;
use crate::plan::{Invocation, TreeAccess, install_hint};
use crate::profile::{
    Ecosystem, Membership, OptionPassing, PackageManager, Profile, ProjectCommand, words,
};
use crate::tool::ProjectTool;

/// Selected arguments, and the way in which further options reach the tool.
#[derive(Clone, Debug)]
pub(super) struct CommandLine {
    pub(super) argv: Vec<String>,
    pub(super) injection: OptionPassing,
    pub(super) tool: ProjectTool,
}

impl CommandLine {
    pub(super) fn for_project(command: &ProjectCommand) -> Self {
        Self { argv: command.argv.clone(), injection: command.injection, tool: command.tool }
    }

    pub(super) fn direct(tool: ProjectTool, argv: Vec<String>) -> Self {
        Self { argv, injection: OptionPassing::Direct, tool }
    }
}

/// Creates the invocation of a command line, with the options for its report.
pub(super) fn invocation(
    profile: &Profile,
    command: &ProjectCommand,
    line: CommandLine,
) -> Invocation {
    let CommandLine { argv, injection, tool } = line;
    let options = match injection {
        OptionPassing::Impossible => ReportOptions::TEXT,
        OptionPassing::Direct | OptionPassing::Script | OptionPassing::ScriptAfterDashes => {
            tool.facts().report
        }
    };
    let mut environment = command.environment.clone();
    environment.extend(environment_defaults(profile, tool));
    Invocation {
        argv: insert_options(argv, injection, tool, options.options),
        directory: command.directory.clone(),
        environment,
        report: options.format,
        artifacts: options.artifact().into_iter().collect(),
        tool,
        base: base(profile, command),
        module: profile.name.clone().filter(|_| profile.ecosystem == Ecosystem::Go),
        install_hint: install_hint::install(profile, tool),
        access: TreeAccess::ReadWrite,
    }
}

/// Returns the directory of relative file names in the report. Cargo prints them relative to the
/// workspace root, other tools relative to their working directory.
fn base(profile: &Profile, command: &ProjectCommand) -> String {
    match (&profile.membership, profile.ecosystem) {
        (Some(Membership::Member { of }), Ecosystem::Rust) => of.clone(),
        _ => command.directory.clone(),
    }
}

/// Returns variables that enable reports, and disable colours and downloads.
fn environment_defaults(profile: &Profile, tool: ProjectTool) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if tool == ProjectTool::Nextest {
        all.push(("NEXTEST_EXPERIMENTAL_LIBTEST_JSON".to_owned(), "1".to_owned()));
    }
    all.push(("NO_COLOR".to_owned(), "1".to_owned()));
    let node = profile.ecosystem == Ecosystem::Node && tool != ProjectTool::Installer;
    let shim = matches!(profile.package_manager, Some(PackageManager::Yarn | PackageManager::Pnpm));
    if node && shim {
        // The corepack shims of these managers would download the manager itself.
        all.push(("COREPACK_ENABLE_NETWORK".to_owned(), "0".to_owned()));
    }
    all
}

fn insert_options(
    argv: Vec<String>,
    injection: OptionPassing,
    tool: ProjectTool,
    options: &str,
) -> Vec<String> {
    let options = words(options);
    let at = match (injection, tool) {
        (OptionPassing::ScriptAfterDashes, _) if !options.is_empty() => {
            return [argv, words("--"), options].concat();
        }
        // Arguments after `--` belong to the test binaries or the compiler.
        (
            _,
            ProjectTool::CargoTest
            | ProjectTool::Nextest
            | ProjectTool::Clippy
            | ProjectTool::CargoCheck,
        ) => argv.iter().position(|word| word == "--").unwrap_or(argv.len()),
        // Node passes everything after the first file to that file.
        (_, ProjectTool::NodeTest) => after(&argv, "--test"),
        (_, ProjectTool::GoTest) => after(&argv, "test"),
        _ => argv.len(),
    };
    [&argv[..at], &options, &argv[at..]].concat()
}

fn after(argv: &[String], word: &str) -> usize {
    argv.iter().position(|known| known == word).map_or(argv.len(), |at| at + 1)
}
