//! Selection: the arguments that run a part of a project, one module for each family of tools.

mod cargo;
mod generic;
mod go;
mod java;
mod node;
mod python;

pub(super) use cargo::part as cargo_part;

use std::collections::BTreeMap;

use crate::paths;
use crate::plan::command_line::CommandLine;
use crate::plan::{CommandScope, PlanError, Selector, Target};
use crate::profile::{OptionPassing, Profile, ProjectCommand};
use crate::tool::ProjectTool;

pub(super) fn lines(
    profile: &Profile,
    command: &ProjectCommand,
    target: &Target<'_>,
) -> Result<Vec<CommandLine>, PlanError> {
    if !target.rerun.is_empty() {
        return rerun(profile, command, target.rerun);
    }
    if target.scope == CommandScope::Project && target.name.is_none() {
        return Ok(vec![CommandLine::for_project(command)]);
    }
    let tool = runner(command);
    let argv = match tool {
        ProjectTool::CargoTest | ProjectTool::Nextest => cargo::narrow(profile, command, target),
        _ if tool.is_node_runner() => node::narrow(tool, command, target)?,
        ProjectTool::Pytest => python::narrow_pytest(command, target)?,
        ProjectTool::Unittest => python::narrow_unittest(command, target)?,
        ProjectTool::GoTest => go::narrow(command, target),
        ProjectTool::Maven => java::narrow_maven(command, target)?,
        ProjectTool::Gradle => java::narrow_gradle(command, target)?,
        _ => generic::narrow(tool, command, target)?,
    };
    Ok(vec![CommandLine::direct(tool, argv)])
}

fn rerun(
    profile: &Profile,
    command: &ProjectCommand,
    tests: &[Selector],
) -> Result<Vec<CommandLine>, PlanError> {
    let tool = runner(command);
    let mut mine: Vec<&Selector> = tests
        .iter()
        .filter(|test| test.directory == command.directory && test.tool == tool)
        .collect();
    mine.sort();
    mine.dedup();
    if mine.is_empty() {
        return Err(PlanError::NothingToRerun { root: profile.root.clone() });
    }
    let lines = match tool {
        ProjectTool::CargoTest => cargo::rerun_test(command, &mine),
        ProjectTool::Nextest => vec![cargo::rerun_nextest(command, &mine)],
        _ if tool.is_node_runner() => node::rerun(tool, command, &mine),
        ProjectTool::Pytest => vec![python::rerun_pytest(command, &mine)],
        ProjectTool::Unittest => vec![python::rerun_unittest(command, &mine)],
        ProjectTool::GoTest => go::rerun(&mine),
        ProjectTool::Maven => vec![java::rerun_maven(command, &mine)],
        ProjectTool::Gradle => vec![java::rerun_gradle(command, &mine)],
        _ => generic::rerun(tool, command, &mine)?,
    };
    Ok(lines.into_iter().map(|argv| CommandLine::direct(tool, argv)).collect())
}

/// Returns the runner for single tests, which an opaque script may have as well.
fn runner(command: &ProjectCommand) -> ProjectTool {
    match (command.injection, &command.file_argv) {
        (OptionPassing::Impossible, Some(argv)) => {
            ProjectTool::recognise(argv).unwrap_or(command.tool)
        }
        _ => command.tool,
    }
}

/// Limits a linter, type checker or formatter to a file.
pub(super) fn check_file(command: &ProjectCommand, path: &str) -> Result<CommandLine, PlanError> {
    match (&command.file_argv, command.tool) {
        (Some(argv), _) => {
            let argv = [argv.clone(), vec![local(command, path)]].concat();
            let tool = ProjectTool::recognise(&argv).unwrap_or(command.tool);
            Ok(CommandLine::direct(tool, argv))
        }
        (None, ProjectTool::GoVet | ProjectTool::Golangci) => {
            let directory = paths::parent(path).unwrap_or(paths::TOP);
            Ok(CommandLine::direct(command.tool, go::check(command, directory, false)))
        }
        // Cargo, Maven and Gradle check the package of their working directory; the TypeScript
        // compiler needs the whole project to check one file.
        (
            None,
            ProjectTool::Clippy
            | ProjectTool::CargoCheck
            | ProjectTool::Maven
            | ProjectTool::Gradle
            | ProjectTool::Tsc,
        ) => Ok(CommandLine::for_project(command)),
        (None, tool) => Err(cannot_narrow(tool, "a file")),
    }
}

/// Limits a linter, type checker or formatter to a directory.
pub(super) fn check_directory(
    command: &ProjectCommand,
    path: &str,
) -> Result<CommandLine, PlanError> {
    if path == command.directory {
        return Ok(CommandLine::for_project(command));
    }
    match command.tool {
        ProjectTool::GoVet | ProjectTool::Golangci => {
            Ok(CommandLine::direct(command.tool, go::check(command, path, true)))
        }
        // rustfmt accepts files only.
        ProjectTool::Rustfmt => Ok(CommandLine::for_project(command)),
        _ => check_file(command, path),
    }
}

/// Limits a command to a package by its name.
pub(super) fn package(command: &ProjectCommand, name: &str) -> Result<CommandLine, PlanError> {
    match command.tool {
        ProjectTool::Clippy | ProjectTool::CargoCheck => {
            Ok(CommandLine::direct(command.tool, cargo::of_package(command, name)))
        }
        ProjectTool::GoVet | ProjectTool::Golangci => {
            let argv = [go::base(&command.argv), vec![name.to_owned()]].concat();
            Ok(CommandLine::direct(command.tool, argv))
        }
        tool => Err(cannot_narrow(tool, "a package name; give its directory")),
    }
}

fn cannot_narrow(tool: ProjectTool, what: &'static str) -> PlanError {
    PlanError::CannotNarrow { tool, what }
}

/// Returns a path relative to the working directory, with `./` in front if it would be taken for an
/// option.
fn local(command: &ProjectCommand, path: &str) -> String {
    let path = paths::relative(&command.directory, path);
    if path.starts_with('-') { format!("./{path}") } else { path }
}

/// Returns the arguments to which files can be appended.
fn single(command: &ProjectCommand) -> Vec<String> {
    command.file_argv.clone().unwrap_or_else(|| command.argv.clone())
}

fn by_file<'a>(tests: &[&'a Selector]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for test in tests {
        files.entry(test.file.as_deref().unwrap_or_default()).or_default().push(&test.name);
    }
    files
}

/// Returns a regular expression that matches exactly these names.
fn exactly(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| escape(name)).collect();
    match names.as_slice() {
        [one] => format!("^{one}$"),
        many => format!("^({})$", many.join("|")),
    }
}

/// Escapes the characters that are special in any dialect of regular expressions.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\^$.|?*+()[]{}/".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_names_and_nothing_else() {
        assert_eq!(exactly(&["a (b) [1+2]"]), r"^a \(b\) \[1\+2\]$");
        assert_eq!(exactly(&["TestA", "TestB"]), "^(TestA|TestB)$");
    }
}
