//! Selection of files and tests for Jest, Vitest, Mocha, Node and Bun.

use crate::plan::{CommandScope, PlanError, Selector, Target};
use crate::profile::{ProjectCommand, args};
use crate::tool::ProjectTool;

use super::{by_file, cannot_narrow, escape, exactly, local, single};

/// Returns the arguments for a file, a directory or a name.
pub(super) fn narrow(
    tool: ProjectTool,
    command: &ProjectCommand,
    target: &Target<'_>,
) -> Result<Vec<String>, PlanError> {
    let name = target.name.map(|name| name_args(tool, &escape(name))).unwrap_or_default();
    let paths = match target.scope {
        CommandScope::Project => vec![],
        CommandScope::Package(_) => {
            return Err(cannot_narrow(tool, "a package name; give its directory"));
        }
        CommandScope::File(path) => file_args(tool, &local(command, path)),
        CommandScope::Directory(path) => directory_args(tool, &local(command, path)),
    };
    let base = if paths.is_empty() { command_args(command) } else { single(command) };
    Ok(assemble(tool, base, name, paths))
}

/// Returns command lines for exactly these tests, one for each file, since files may have tests of
/// the same name.
pub(super) fn rerun(
    tool: ProjectTool,
    command: &ProjectCommand,
    tests: &[&Selector],
) -> Vec<Vec<String>> {
    let line = |(file, names): (&str, Vec<&str>)| {
        let paths = if file.is_empty() { vec![] } else { file_args(tool, &local(command, file)) };
        let names = if tool == ProjectTool::NodeTest {
            node_names(&names)
        } else {
            name_args(tool, &exactly(&names))
        };
        assemble(tool, single(command), names, paths)
    };
    by_file(tests).into_iter().map(line).collect()
}

/// Returns the runner itself for a script that options cannot reach.
fn command_args(command: &ProjectCommand) -> Vec<String> {
    match command.injection {
        crate::profile::OptionPassing::Direct => command.argv.clone(),
        _ => single(command),
    }
}

fn assemble(
    tool: ProjectTool,
    base: Vec<String>,
    names: Vec<String>,
    paths: Vec<String>,
) -> Vec<String> {
    match tool {
        // Node reads options only before the first file.
        ProjectTool::NodeTest => {
            let at = base.iter().position(|word| word == "--test").map_or(base.len(), |at| at + 1);
            [&base[..at], &names, &base[at..], &paths].concat()
        }
        _ => [base, names, paths].concat(),
    }
}

fn name_args(tool: ProjectTool, pattern: &str) -> Vec<String> {
    match tool {
        ProjectTool::Mocha => args(&["--grep", pattern]),
        ProjectTool::NodeTest => vec![format!("--test-name-pattern={pattern}")],
        _ => args(&["-t", pattern]),
    }
}

/// Returns patterns for exactly these tests. Node 22 and later match the names of all enclosing
/// tests joined by spaces, older versions the name of the test alone, so both are given.
fn node_names(names: &[&str]) -> Vec<String> {
    let mut patterns = Vec::new();
    for name in names {
        let own = name.rsplit(super::super::ANCESTOR).next().unwrap_or(name);
        let full = name.replace(super::super::ANCESTOR, " ");
        for text in [full.as_str(), own] {
            let word = format!("--test-name-pattern=^{}$", escape(text));
            if !patterns.contains(&word) {
                patterns.push(word);
            }
        }
    }
    patterns
}

fn file_args(tool: ProjectTool, path: &str) -> Vec<String> {
    match tool {
        // Otherwise Jest treats the path as a regular expression.
        ProjectTool::Jest => args(&["--runTestsByPath", path]),
        // Without a slash Bun treats the path as a filter on names.
        ProjectTool::BunTest if !path.contains('/') => vec![format!("./{path}")],
        _ => vec![path.to_owned()],
    }
}

fn directory_args(tool: ProjectTool, path: &str) -> Vec<String> {
    match tool {
        ProjectTool::Jest => vec![format!("{}/", escape(path))],
        ProjectTool::Mocha => args(&["--recursive", path]),
        ProjectTool::Vitest => vec![format!("{path}/")],
        _ => vec![path.to_owned()],
    }
}
