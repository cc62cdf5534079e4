//! Recognition of tools that are not installed.
//!
//! Shells exit with 127 for a missing program, but launchers, package managers and interpreters
//! have messages of their own. They count only if the command failed and left no report: tests may
//! print the same text.

use crate::parse::{CouldNotRunReason, ParseContext, Termination};
use crate::plan::ReportFormat;
use crate::tool::ProjectTool;

/// Exit status of a shell for a missing program.
const NOT_FOUND: i32 = 127;

/// Starts of lines in which launchers report a missing program.
const STARTS: [&str; 11] = [
    "npm error npx canceled due to missing packages",
    "npm ERR! npx canceled due to missing packages",
    "npm error code ENOTCACHED",
    "npm error could not determine executable to run",
    "error: no such command: `",
    "error: Failed to spawn: ",
    "error: Could not find an existing '",
    "ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL",
    "Command not found: ",
    "bundler: command not found: ",
    "Usage Error: Couldn't find a script named ",
];

const PARTS: [&str; 4] = [
    "(Bundler::GemNotFound)",
    "' is not installed for the toolchain",
    "Error: the command ",
    "error: could not determine executable to run for package",
];

/// Returns the reason if a command failed because its tool is missing.
pub(crate) fn reason(context: &ParseContext<'_>) -> Option<CouldNotRunReason> {
    let missing = |tool: String| {
        Some(CouldNotRunReason::ToolMissing { tool, hint: context.invocation.install_hint.clone() })
    };
    match context.termination {
        Termination::NotFound => missing(program(context).unwrap_or_else(|| named(context))),
        Termination::Exited(NOT_FOUND) => {
            missing(shell_name(context).unwrap_or_else(|| named(context)))
        }
        Termination::Exited(0)
        | Termination::Signal(_)
        | Termination::TimedOut(_)
        | Termination::NotStarted(_) => None,
        // A tool that wrote a report is installed, even if the tests print such a line.
        Termination::Exited(_)
            if context.has_files() || context.stdout.contains("test result: ") =>
        {
            None
        }
        Termination::Exited(_) if says_missing(context) => missing(named(context)),
        Termination::Exited(_) => None,
    }
}

fn named(context: &ParseContext<'_>) -> String {
    match context.invocation.tool {
        ProjectTool::Script | ProjectTool::Other | ProjectTool::Installer => {
            match context.invocation.argv.as_slice() {
                // bash is there; what its line runs is not.
                [shell, option, .., line] if shell == "bash" && option == "-c" => {
                    module(context).unwrap_or_else(|| format!("a program of {line:?}"))
                }
                argv => argv.first().cloned().unwrap_or_default(),
            }
        }
        tool => tool.name().to_owned(),
    }
}

/// Returns the program of a tool that is a subcommand: `go` for `go test`.
fn program(context: &ParseContext<'_>) -> Option<String> {
    let (program, _) = context.invocation.tool.name().split_once(' ')?;
    (context.invocation.argv.first()? == program).then(|| program.to_owned())
}

/// Returns the program in `sh: 1: eslint: not found`.
fn shell_name(context: &ParseContext<'_>) -> Option<String> {
    let lines = context.stderr.lines().chain(context.stdout.lines());
    let endings = [": not found", ": command not found", ": No such file or directory"];
    lines.into_iter().find_map(|line| {
        let front = endings.iter().find_map(|status| line.trim_end().strip_suffix(status))?;
        let name = front.rsplit(':').next()?.trim();
        (!name.is_empty()).then(|| name.to_owned())
    })
}

fn says_missing(context: &ParseContext<'_>) -> bool {
    let starts = |line: &str| STARTS.iter().any(|start| line.trim_start().starts_with(start));
    let says = |line: &str| starts(line) || PARTS.iter().any(|part| line.contains(part));
    // Some package managers print it to standard output.
    let printed = context.stdout.lines().any(starts);
    printed || context.stderr.lines().any(says) || yarn_says(context) || python_says(context)
}

/// Recognises `error Command "eslint" not found.`
fn yarn_says(context: &ParseContext<'_>) -> bool {
    let says = |line: &str| line.starts_with("error Command \"") && line.contains("\" not found");
    context.stderr.lines().any(says)
}

/// Returns the missing module in the only line of output; in a test it would come with a traceback.
fn module(context: &ParseContext<'_>) -> Option<String> {
    let mut lines = context.stderr.lines().filter(|line| !line.trim().is_empty());
    let only = lines.next().filter(|_| lines.next().is_none());
    Some(only?.split_once(": No module named ")?.1.trim().to_owned())
}

fn python_says(context: &ParseContext<'_>) -> bool {
    module(context).is_some()
        && matches!(
            context.invocation.report,
            ReportFormat::Pytest | ReportFormat::Unittest | ReportFormat::Text | ReportFormat::Mypy
        )
}
