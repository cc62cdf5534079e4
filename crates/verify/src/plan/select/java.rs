//! Selection of classes and methods in Maven and Gradle projects.

use std::collections::BTreeMap;

use crate::paths;
use crate::plan::{CommandScope, PlanError, Selector, Target};
use crate::profile::{ProjectCommand, args};
use crate::tool::ProjectTool;

use super::cannot_narrow;

/// Keeps Maven modules without a matching test from failing.
const SOME_MODULES: &str = "-Dsurefire.failIfNoSpecifiedTests=false";

pub(super) fn narrow_maven(
    command: &ProjectCommand,
    target: &Target<'_>,
) -> Result<Vec<String>, PlanError> {
    let class = class(target.scope, ProjectTool::Maven)?;
    let class = class.unwrap_or_else(|| "*".to_owned());
    let pattern = match target.name {
        Some(name) if name.contains(['#', '.']) => name.to_owned(),
        Some(name) => format!("{class}#{name}"),
        None => class,
    };
    Ok(with_tests(command, &pattern))
}

fn with_tests(command: &ProjectCommand, pattern: &str) -> Vec<String> {
    [command.argv.clone(), args(&[&format!("-Dtest={pattern}"), SOME_MODULES])].concat()
}

pub(super) fn rerun_maven(command: &ProjectCommand, tests: &[&Selector]) -> Vec<String> {
    let mut classes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for test in tests {
        classes.entry(test.target.as_deref().unwrap_or("*")).or_default().push(method(&test.name));
    }
    let one = |(class, methods): (&str, Vec<&str>)| format!("{class}#{}", methods.join("+"));
    let pattern = classes.into_iter().map(one).collect::<Vec<_>>().join(",");
    with_tests(command, &pattern)
}

pub(super) fn narrow_gradle(
    command: &ProjectCommand,
    target: &Target<'_>,
) -> Result<Vec<String>, PlanError> {
    let class = class(target.scope, ProjectTool::Gradle)?;
    let pattern = match (class, target.name) {
        (_, Some(name)) if name.contains('.') => name.to_owned(),
        (Some(class), Some(name)) => format!("*{class}.{name}"),
        (Some(class), None) => format!("*{class}"),
        (None, Some(name)) => format!("*{name}*"),
        (None, None) => "*".to_owned(),
    };
    Ok([command.argv.clone(), args(&["--tests", &pattern])].concat())
}

pub(super) fn rerun_gradle(command: &ProjectCommand, tests: &[&Selector]) -> Vec<String> {
    let pattern = |test: &&Selector| match &test.target {
        Some(class) => format!("{class}.{}", method(&test.name)),
        None => format!("*{}", method(&test.name)),
    };
    let patterns = tests.iter().flat_map(|test| ["--tests".to_owned(), pattern(test)]).collect();
    [command.argv.clone(), patterns].concat()
}

/// Returns the method without the parameters of a parameterised test.
fn method(name: &str) -> &str {
    name.split(['(', '[', '{']).next().unwrap_or(name)
}

/// Returns the class that a file contains by convention.
fn class(scope: CommandScope<'_>, tool: ProjectTool) -> Result<Option<String>, PlanError> {
    match scope {
        CommandScope::Project => Ok(None),
        CommandScope::File(path) => {
            let name = paths::name(path);
            Ok(Some(name.split('.').next().unwrap_or(name).to_owned()))
        }
        CommandScope::Directory(_) => Err(cannot_narrow(tool, "a directory")),
        CommandScope::Package(_) => Err(cannot_narrow(tool, "a package name")),
    }
}
