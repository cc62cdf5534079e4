//! Parts of Node projects.

use crate::plan::{CommandScope, PlanError, Selector, Target};
use crate::profile::{ProjectCommand, args};
use crate::tool::ProjectTool;

use super::{by_file, escape, exactly, local, single};

/// Returns the words for a file, a directory or a name.
pub(super) fn narrow(
    tool: ProjectTool,
    command: &ProjectCommand,
    target: &Target<'_>,
) -> Result<Vec<String>, PlanError> {
    let name = target.name.map(|name| name_args(tool, &escape(name))).unwrap_or_default();
    let place = match target.scope {
        CommandScope::Project => vec![],
        CommandScope::Package(_) => {
            return Err(PlanError::CannotNarrow {
                tool,
                what: "a package name; give its directory",
            });
        }
        CommandScope::File(path) => file_args(tool, &local(command, path)),
        CommandScope::Directory(path) => directory_args(tool, &local(command, path)),
    };
    let base = if place.is_empty() { command_args(command) } else { single(command) };
    Ok(assemble(tool, base, name, place))
}

/// Returns the words for exactly some tests, one line for each file: a name may stand in
/// several files and fail in one.
pub(super) fn rerun(
    tool: ProjectTool,
    command: &ProjectCommand,
    tests: &[&Selector],
) -> Vec<Vec<String>> {
    let line = |(file, names): (&str, Vec<&str>)| {
        let place = if file.is_empty() { vec![] } else { file_args(tool, &local(command, file)) };
        let names = if tool == ProjectTool::NodeTest {
            node_names(&names)
        } else {
            name_args(tool, &exactly(&names))
        };
        assemble(tool, single(command), names, place)
    };
    by_file(tests).into_iter().map(line).collect()
}

/// A script that options cannot be added to is left aside for the runner itself.
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
    place: Vec<String>,
) -> Vec<String> {
    match tool {
        // Node reads its options only in front of the first file.
        ProjectTool::NodeTest => {
            let at = base.iter().position(|word| word == "--test").map_or(base.len(), |at| at + 1);
            [&base[..at], &names, &base[at..], &place].concat()
        }
        _ => [base, names, place].concat(),
    }
}

fn name_args(tool: ProjectTool, pattern: &str) -> Vec<String> {
    match tool {
        ProjectTool::Mocha => args(&["--grep", pattern]),
        ProjectTool::NodeTest => vec![format!("--test-name-pattern={pattern}")],
        _ => args(&["-t", pattern]),
    }
}

/// Node 22 and later match the names of all ancestors, joined by blanks; older ones match
/// a test's own name. A test is asked for in both ways.
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
        // Otherwise the path would be a regular expression.
        ProjectTool::Jest => args(&["--runTestsByPath", path]),
        // Without a slash at the front it would be a filter on names.
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
