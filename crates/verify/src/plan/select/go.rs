//! Selection in Go modules: always packages, since single files do not compile alone.

use std::collections::BTreeMap;

use crate::paths;
use crate::plan::{CommandScope, Selector, Target};
use crate::profile::{ProjectCommand, args};

use super::{escape, exactly};

pub(super) fn narrow(command: &ProjectCommand, target: &Target<'_>) -> Vec<String> {
    let packages = match target.scope {
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
    [base(&command.argv), name, packages].concat()
}

/// Returns one command line for each package, since packages may have tests of the same name.
pub(super) fn rerun(tests: &[&Selector]) -> Vec<Vec<String>> {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for test in tests {
        // A pattern cannot select subtests of two parents exactly, so the parents are run.
        let parent = test.name.split('/').next().unwrap_or(&test.name);
        let names = packages.entry(test.package.as_deref().unwrap_or("./...")).or_default();
        if !names.contains(&parent) {
            names.push(parent);
        }
    }
    let line = |(package, mut names): (&str, Vec<&str>)| {
        if names.contains(&"") {
            return args(&["go", "test", package]);
        }
        names.sort_unstable();
        args(&["go", "test", "-run", &exactly(&names), package])
    };
    packages.into_iter().map(line).collect()
}

pub(super) fn check(command: &ProjectCommand, directory: &str, below: bool) -> Vec<String> {
    [base(&command.argv), vec![package(command, directory, below)]].concat()
}

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

/// Escapes each level of `Test/subtest`, which go matches separately.
fn escape_levels(name: &str) -> String {
    name.split('/').map(escape).collect::<Vec<_>>().join("/")
}
