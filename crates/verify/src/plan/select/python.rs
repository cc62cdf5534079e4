//! Selection of files and tests for pytest and unittest.

use crate::plan::{CommandScope, PlanError, Selector, Target};
use crate::profile::{ProjectCommand, args, words};
use crate::tool::ProjectTool;

use super::{cannot_narrow, local, single};

pub(super) fn narrow_pytest(
    command: &ProjectCommand,
    target: &Target<'_>,
) -> Result<Vec<String>, PlanError> {
    let path = path(command, target.scope, ProjectTool::Pytest)?;
    let base = if path.is_some() { single(command) } else { command.argv.clone() };
    let selection = match (path, target.name) {
        (path, None) => path.into_iter().collect(),
        // A node identifier is passed on; any other name is a keyword expression.
        (Some(path), Some(name)) if name.contains("::") || name.contains('[') => {
            vec![format!("{path}::{}", name.trim_start_matches("::"))]
        }
        (None, Some(name)) if name.contains("::") => vec![name.to_owned()],
        (path, Some(name)) => {
            let keyword = args(&["-k", keyword(name)]);
            [keyword, path.into_iter().collect()].concat()
        }
    };
    Ok([base, selection].concat())
}

/// Returns the name without parameters, whose brackets are not allowed in keyword expressions.
fn keyword(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

pub(super) fn rerun_pytest(command: &ProjectCommand, tests: &[&Selector]) -> Vec<String> {
    if tests.iter().any(|test| test.name.is_empty()) {
        return command.argv.clone();
    }
    let nodes = tests.iter().map(|test| test.name.clone()).collect();
    [single(command), nodes].concat()
}

pub(super) fn narrow_unittest(
    command: &ProjectCommand,
    target: &Target<'_>,
) -> Result<Vec<String>, PlanError> {
    let name = target.name.map(|name| args(&["-k", name])).unwrap_or_default();
    match target.scope {
        CommandScope::Directory(directory) => {
            let python = command.argv.iter().take_while(|word| *word != "-m").cloned().collect();
            let discover = words("-m unittest discover -v -s");
            Ok([python, discover, vec![local(command, directory)], name].concat())
        }
        scope => Ok(match path(command, scope, ProjectTool::Unittest)? {
            Some(path) => [single(command), name, vec![path]].concat(),
            None => [command.argv.clone(), name].concat(),
        }),
    }
}

/// Reruns tests through discovery, which determines their module names.
pub(super) fn rerun_unittest(command: &ProjectCommand, tests: &[&Selector]) -> Vec<String> {
    // A pattern with `*` must match the whole name, one without it any part.
    let pattern = |test: &&Selector| format!("*{}", test.name.replace('[', "[[]"));
    let patterns = tests.iter().flat_map(|test| ["-k".to_owned(), pattern(test)]).collect();
    [command.argv.clone(), patterns].concat()
}

fn path(
    command: &ProjectCommand,
    scope: CommandScope<'_>,
    tool: ProjectTool,
) -> Result<Option<String>, PlanError> {
    match scope {
        CommandScope::Project => Ok(None),
        CommandScope::File(path) | CommandScope::Directory(path) => Ok(Some(local(command, path))),
        CommandScope::Package(_) => Err(cannot_narrow(tool, "a package name; give its directory")),
    }
}
