//! The rules that keep a check from changing files.
//!
//! Linters, type checkers and formatters in check mode never change the tree: options forbid fixes,
//! caches go to the directory that [`CACHE`] stands for, and the caller runs the command with a
//! read-only tree. Compilers of other languages write their output into the tree by nature; they
//! keep a writable one, and the caller lists the files that they changed.

use serde::Serialize;

use crate::plan::{Invocation, PlanError};
use crate::profile::{OptionPassing, Profile, ProfileField, ProjectCommand, has_word, words};
use crate::tool::ProjectTool;

/// Placeholder in arguments and variables for a directory of caches, outside of the tree, that may
/// stay for later commands.
pub const CACHE: &str = "{cache}";

/// The access of a command to the files of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the accesses")]
pub enum TreeAccess {
    ReadOnly,
    ReadWrite,
}

/// Arguments with which tools change files.
const WRITING: &str = "--fix --write --apply --apply-unsafe --autofix --autocorrect \
    --autocorrect-all --fix-only --add-noqa --in-place --update-snapshot --updateSnapshot";

/// Variables that move the caches of tools out of the tree.
const CACHES: [(&str, &str); 12] = [
    ("CARGO_TARGET_DIR", "cargo"),
    ("MYPY_CACHE_DIR", "mypy"),
    ("RUFF_CACHE_DIR", "ruff"),
    ("PYTHONPYCACHEPREFIX", "pycache"),
    ("PYLINTHOME", "pylint"),
    ("BLACK_CACHE_DIR", "black"),
    ("GOCACHE", "go"),
    ("GOLANGCI_LINT_CACHE", "golangci"),
    ("RUBOCOP_CACHE_ROOT", "rubocop"),
    ("npm_config_cache", "npm"),
    ("XDG_CACHE_HOME", "cache"),
    ("DOTNET_CLI_HOME", "dotnet"),
];

/// Returns the options with which a tool only checks.
fn check_options(tool: ProjectTool, argv: &[String]) -> &'static str {
    match tool {
        ProjectTool::Ruff => "--no-fix --no-fix-only",
        // A lock file that is missing or out of date would be written.
        ProjectTool::Clippy | ProjectTool::CargoCheck
            if !argv.iter().any(|word| has_word("--locked --frozen", word)) =>
        {
            "--locked"
        }
        // The compiler may have to write its state even if it emits nothing.
        ProjectTool::Tsc if !argv.iter().any(|word| has_word("-b --build", word)) => {
            "--incremental --tsBuildInfoFile {cache}/tsc.tsbuildinfo"
        }
        _ => "",
    }
}

/// Returns true for tools that write build output into the tree.
fn builds_in_tree(tool: ProjectTool, fact: ProfileField) -> bool {
    use ProjectTool as T;
    match tool {
        T::Maven
        | T::Gradle
        | T::DotnetBuild
        | T::DotnetFormat
        | T::Cmake
        | T::Meson
        | T::Mix
        | T::Zig
        | T::Swift
        | T::Dart
        | T::Flutter
        | T::Sbt
        | T::Dune
        | T::Cabal
        | T::Stack
        | T::Bazel => true,
        // `make` compiles, `make lint` does not.
        T::Make | T::Just | T::Task => fact == ProfileField::Typecheck,
        _ => false,
    }
}

/// Returns an error for a check whose script changes files and cannot be taken apart.
pub(super) fn refuse_writing_script(
    profile: &Profile,
    fact: ProfileField,
    command: &ProjectCommand,
) -> Result<(), PlanError> {
    if !is_check(fact) || command.injection == OptionPassing::Direct {
        return Ok(());
    }
    let script = profile.scripts.iter().find(|script| script.argv == command.argv);
    let Some(script) = script else { return Ok(()) };
    let is_flag = |word: &&str| has_word(WRITING, word.trim_matches(['"', '\'']));
    match script.text.split_whitespace().find(is_flag) {
        Some(flag) => Err(PlanError::WritingScript {
            fact,
            script: script.name.clone(),
            flag: flag.to_owned(),
            root: profile.root.clone(),
        }),
        None => Ok(()),
    }
}

fn is_check(fact: ProfileField) -> bool {
    matches!(fact, ProfileField::Lint | ProfileField::Typecheck | ProfileField::FormatCheck)
}

/// Turns a planned command into one that only checks.
pub(super) fn only_check(
    mut invocation: Invocation,
    fact: ProfileField,
    injection: OptionPassing,
) -> Invocation {
    if !is_check(fact) {
        return invocation;
    }
    if injection == OptionPassing::Direct {
        invocation.argv.retain(|word| !has_word(WRITING, word));
        let options = words(check_options(invocation.tool, &invocation.argv));
        let dashes = invocation.argv.iter().position(|word| word == "--");
        let at = dashes.unwrap_or(invocation.argv.len());
        invocation.argv.splice(at..at, options);
    }
    if !builds_in_tree(invocation.tool, fact) {
        invocation.access = TreeAccess::ReadOnly;
        let caches = CACHES
            .iter()
            .map(|(name, directory)| ((*name).to_owned(), format!("{CACHE}/{directory}")));
        invocation.environment.extend(caches);
    }
    invocation
}
