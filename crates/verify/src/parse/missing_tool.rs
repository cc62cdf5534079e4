//! Telling a tool that is not there from one that is not content.

use crate::parse::outcome::{ParseContext, Termination};
use crate::parse::report::CouldNotRunReason;
use crate::plan::ReportFormat;
use crate::tool::ProjectTool;

/// What a shell answers when there is no such program.
const NOT_FOUND: i32 = 127;

/// What starters of programs say when there is no such program, at the start of a line.
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

/// The same as a part of a line.
const PARTS: [&str; 3] = [
    "' is not installed for the toolchain",
    "Error: the command ",
    "error: could not determine executable to run for package",
];

/// Says why a command could not run because something is missing.
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
        // A tool that left a report was there, whatever the tests printed.
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
            context.invocation.argv.first().cloned().unwrap_or_default()
        }
        tool => tool.name().to_owned(),
    }
}

/// Returns the program of a tool that is a part of it: `go` of `go test`.
fn program(context: &ParseContext<'_>) -> Option<String> {
    let (program, _) = context.invocation.tool.name().split_once(' ')?;
    (context.invocation.argv.first()? == program).then(|| program.to_owned())
}

/// Returns the name in `sh: 1: eslint: not found`.
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
    // One of the package managers says it in the wrong place.
    let printed = context.stdout.lines().any(starts);
    printed || context.stderr.lines().any(says) || yarn_says(context) || python_says(context)
}

/// `error ProjectCommand "eslint" not found.`
fn yarn_says(context: &ParseContext<'_>) -> bool {
    let says = |line: &str| line.starts_with("error Command \"") && line.contains("\" not found");
    context.stderr.lines().any(says)
}

/// Python names the missing module in the only line it prints; a test that misses one has a traceback.
fn python_says(context: &ParseContext<'_>) -> bool {
    let mut lines = context.stderr.lines().filter(|line| !line.trim().is_empty());
    let only = lines.next().filter(|_| lines.next().is_none());
    only.is_some_and(|line| line.contains(": No module named "))
        && matches!(
            context.invocation.report,
            ReportFormat::Pytest | ReportFormat::Unittest | ReportFormat::Text | ReportFormat::Mypy
        )
}
