//! Selection of targets, packages and tests in Rust projects.

use std::collections::BTreeMap;

use crate::paths;
use crate::plan::{CommandScope, Selector, Target};
use crate::profile::{Profile, ProjectCommand, args, has_word, words};
use crate::tool::ProjectTool;

/// Returns the arguments for a file, directory, package or name.
pub(super) fn narrow(
    profile: &Profile,
    command: &ProjectCommand,
    target: &Target<'_>,
) -> Vec<String> {
    let (base, tail) = split(&command.argv);
    let (base, part) = match target.scope {
        CommandScope::Package(name) => (of_package_args(&base, name), TargetPart::default()),
        CommandScope::File(path) => {
            (base, part_of(profile, &paths::relative(&command.directory, path)))
        }
        CommandScope::Directory(path) => {
            (base, part_of(profile, &format!("{}/", paths::relative(&command.directory, path))))
        }
        CommandScope::Project => (base, TargetPart::default()),
    };
    let filter = target.name.map(str::to_owned).or(part.module);
    match (command.tool, filter) {
        (_, None) => [base, part.options, tail].concat(),
        (ProjectTool::Nextest, Some(filter)) => [base, part.options, vec![filter], tail].concat(),
        (_, Some(filter)) => {
            let tail = if tail.is_empty() { words("--") } else { tail };
            [base, part.options, tail, vec![filter]].concat()
        }
    }
}

#[derive(Default)]
struct TargetPart {
    options: Vec<String>,
    /// Prefix of the names of tests in a file.
    module: Option<String>,
}

/// Returns the target of a path relative to the package. A directory ends in a slash.
fn part_of(profile: &Profile, path: &str) -> TargetPart {
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let stem = |name: &str| name.strip_suffix(".rs").unwrap_or(name).to_owned();
    let part = |options: Vec<String>| TargetPart { options, module: None };
    let target = |option: &str, name: &str| part(vec![option.to_owned(), stem(name)]);
    match parts.as_slice() {
        ["tests"] => part(words("--test *")),
        ["tests", name, ..] => target("--test", name),
        ["benches", name, ..] => target("--bench", name),
        ["examples", name, ..] => target("--example", name),
        ["src", "bin", name, ..] => target("--bin", name),
        ["src", "main.rs"] => part(words("--bins")),
        ["src", "lib.rs"] => part(words("--lib")),
        ["src", modules @ ..] => {
            let library = profile.cargo.as_ref().is_some_and(|cargo| cargo.library);
            let options = words(if library { "--lib --bins" } else { "--bins" });
            TargetPart { options, module: module(modules) }
        }
        _ => TargetPart::default(),
    }
}

/// Returns the module path with a trailing `::`, the prefix of its tests.
fn module(parts: &[&str]) -> Option<String> {
    let names = parts.iter().map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let names: Vec<&str> = names.filter(|name| *name != "mod").collect();
    (!names.is_empty()).then(|| format!("{}::", names.join("::")))
}

/// Returns command lines for exactly these tests, one for each target.
pub(super) fn rerun_test(command: &ProjectCommand, tests: &[&Selector]) -> Vec<Vec<String>> {
    let mut groups: BTreeMap<(Option<&str>, Option<&str>), Vec<&str>> = BTreeMap::new();
    for test in tests {
        groups
            .entry((test.package.as_deref(), test.target.as_deref()))
            .or_default()
            .push(&test.name);
    }
    let (base, tail) = split(&command.argv);
    let line = |((package, target), names): ((Option<&str>, Option<&str>), Vec<&str>)| {
        let selection = match target {
            _ if names.contains(&"") => vec![],
            Some("--doc") => doc_args(&names),
            _ => [words("--exact"), args(&names)].concat(),
        };
        let base = package.map_or_else(|| base.clone(), |name| of_package_args(&base, name));
        let target = words(target.unwrap_or_default());
        let dashes = tail.is_empty() && !selection.is_empty();
        let tail = if dashes { words("--") } else { tail.clone() };
        [base, target, tail, selection].concat()
    };
    groups.into_iter().map(line).collect()
}

/// Returns filters for documentation tests.
///
/// Their names, such as `src/lib.rs - Type::method (line 3)`, contain spaces, at which rustdoc
/// splits its filters. The item is the narrowest filter without spaces, or else the file; other
/// examples of the same item may run too.
fn doc_args(names: &[&str]) -> Vec<String> {
    let mut filters: Vec<String> = Vec::new();
    for name in names {
        let (file, rest) = name.split_once(" - ").unwrap_or((name, ""));
        let item = rest.split(" (line ").next().unwrap_or_default().trim();
        let is_item = !item.is_empty() && !item.contains(' ') && !item.starts_with('(');
        let filter = if is_item { item } else { file.split(' ').next().unwrap_or(file) };
        if !filters.iter().any(|known| known == filter) {
            filters.push(filter.to_owned());
        }
    }
    filters
}

/// Returns the arguments for exactly these tests, as a nextest filter expression.
pub(super) fn rerun_nextest(command: &ProjectCommand, tests: &[&Selector]) -> Vec<String> {
    let one = |test: &&Selector| {
        let binary = test.target.as_deref().map(|name| format!("binary(={}) & ", quote(name)));
        let package = test.package.as_deref().map(|name| format!("package(={}) & ", quote(name)));
        let package = package.unwrap_or_default();
        let binary = binary.unwrap_or_default();
        format!("({package}{binary}test(={}))", quote(&test.name))
    };
    let filter = tests.iter().map(one).collect::<Vec<_>>().join(" | ");
    let (base, tail) = split(&command.argv);
    [base, args(&["-E", &filter]), tail].concat()
}

/// Escapes the characters that end a name in a filter expression.
fn quote(name: &str) -> String {
    name.replace('\\', "\\\\").replace(')', "\\)").replace(',', "\\,")
}

pub(super) fn of_package(command: &ProjectCommand, name: &str) -> Vec<String> {
    let (base, tail) = split(&command.argv);
    [of_package_args(&base, name), tail].concat()
}

/// Options that select targets, without and with a value.
const TARGETS: &str = "--lib --bins --tests --benches --examples --all-targets --doc";
const TARGETS_WITH_VALUE: &str = "--test --bin --bench --example";

/// Limits arguments to one target and adds an option for its test binary.
pub(in crate::plan) fn part(argv: &[String], part: &Selector, option: &str) -> Vec<String> {
    let (base, tail) = split(argv);
    let base = match &part.package {
        Some(package) => of_package_args(&base, package),
        None => base,
    };
    let base = match &part.target {
        Some(target) => [without_targets(&base), words(target)].concat(),
        None => base,
    };
    let tail = if tail.is_empty() { words("--") } else { tail };
    [base, tail, vec![option.to_owned()]].concat()
}

fn without_targets(base: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = base.iter();
    while let Some(word) = rest.next() {
        if has_word(TARGETS_WITH_VALUE, word) {
            rest.next();
        } else if !has_word(TARGETS, word) {
            kept.push(word.clone());
        }
    }
    kept
}

/// Replaces the packages in the arguments by one.
fn of_package_args(base: &[String], name: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = base.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--workspace" | "--all" => {}
            "-p" | "--package" => drop(rest.next()),
            _ => kept.push(word.clone()),
        }
    }
    [kept, args(&["-p", name])].concat()
}

/// Splits the arguments at `--`, which belongs to the second half.
fn split(argv: &[String]) -> (Vec<String>, Vec<String>) {
    let at = argv.iter().position(|word| word == "--").unwrap_or(argv.len());
    (argv[..at].to_vec(), argv[at..].to_vec())
}
