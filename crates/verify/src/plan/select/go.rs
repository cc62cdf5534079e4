//! Parts of Go modules: always packages, since single files compile without their neighbours.

use std::collections::BTreeMap;

use crate::paths;
use crate::plan::{CommandScope, Selector, Target};
use crate::profile::{ProjectCommand, args};

use super::{escape, exactly};

pub(super) fn narrow(command: &ProjectCommand, target: &Target<'_>) -> Vec<String> {
    let place = match target.scope {
        CommandScope::Project => {
            command.argv.iter().filter(|word| is_package(word)).cloned().collect()
        }
        CommandScope::Package(name) => vec![name.to_owned()],
        CommandScope::Directory(path) => vec![package(command, path, true)],
        CommandScope::File(path) => {
            vec![package(command, paths::parent(path).unwrap_or(paths::TOP), false)]
        }
    };
    let name = target.name.map(|name| args(&["-run", &escape_levels(name)])).unwrap_or_default();
    [base(&command.argv), name, place].concat()
}

/// One line for each package: the same name may stand in several.
pub(super) fn rerun(tests: &[&Selector]) -> Vec<Vec<String>> {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for test in tests {
        // A pattern cannot name subtests of two parents exactly, so the parents are run.
        let parent = test.name.split('/').next().unwrap_or(&test.name);
        let names = packages.entry(test.package.as_deref().unwrap_or("./...")).or_default();
        if !names.contains(&parent) {
            names.push(parent);
        }
    }
    let line = |(package, mut names): (&str, Vec<&str>)| {
        names.sort_unstable();
        args(&["go", "test", "-run", &exactly(&names), package])
    };
    packages.into_iter().map(line).collect()
}

/// Returns the words that check a directory.
pub(super) fn check(command: &ProjectCommand, directory: &str, below: bool) -> Vec<String> {
    [base(&command.argv), vec![package(command, directory, below)]].concat()
}

/// Returns the words without the packages.
pub(super) fn base(argv: &[String]) -> Vec<String> {
    argv.iter().filter(|word| !is_package(word)).cloned().collect()
}

fn is_package(word: &str) -> bool {
    word.ends_with("...")
}

fn package(command: &ProjectCommand, directory: &str, below: bool) -> String {
    let path = paths::relative(&command.directory, directory);
    let path = if path == paths::TOP { ".".to_owned() } else { format!("./{path}") };
    if below { format!("{path}/...") } else { path }
}

/// A slash separates the names of a test and its subtests, each with a pattern of its own.
fn escape_levels(name: &str) -> String {
    name.split('/').map(escape).collect::<Vec<_>>().join("/")
}
