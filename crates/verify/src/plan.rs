//! Plans: command lines for a part of a project, with options for a machine-readable report.
//!
//! A plan follows from a [`Profile`] alone; nothing here reads the disk. Planning has two steps:
//! `select` narrows the arguments to a file, a directory, a package or tests, and `command_line` adds
//! the options with which the tool writes a report. The test `adds` in `web/src/sum.test.ts` of a Vitest
//! project becomes
//!
//! ```text
//! web$ node_modules/.bin/vitest run -t adds src/sum.test.ts \
//!        --reporter=default --reporter=json --outputFile.json={artifacts}/vitest.json
//! ```
//!
//! Tools differ in the smallest unit they can check ([`Granularity`](crate::Granularity)). A
//! request that a tool cannot fulfil exactly is an error instead of a larger run, except where the
//! unit is the package by nature, as in cargo and Go. Names and paths are passed as single
//! arguments, escaped for the pattern syntax of the runner, and never through a shell.

mod check_rules;
mod command_line;
mod coverage;
mod edit_check;
mod excluded;
mod install;
mod install_hint;
mod invocation;
mod line;
mod one_at_a_time;
mod report_options;
mod script;
mod select;

pub use check_rules::{CACHE, TreeAccess};
pub use coverage::{COVERAGE_PIECES, CoverageLimits, CoveragePlan, NoCoverage, plan_coverage};
pub use edit_check::{EDIT_CHECK_OUTPUT, KEPT_CACHE, plan_edit_check};
pub use install::{needs_network, plan_install};
pub(crate) use install_hint::InstallHint;
pub use invocation::{ARTIFACTS, Artifact, Invocation};
pub use line::plan_test_line;
pub use one_at_a_time::plan_one_at_a_time;
pub(crate) use report_options::ReportOptions;
pub use script::{ScriptError, plan_script};

pub use crate::parse::ReportFormat;

use serde::{Deserialize, Serialize};

use crate::paths;
use crate::profile::{OptionPassing, Profile, ProfileField, ProjectCommand};
use crate::tool::ProjectTool;

/// The part of a project that a command is limited to. Paths are relative to the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other variants are what their names say")]
pub enum CommandScope<'a> {
    #[default]
    Project,
    /// A package by its name, for tools that have named packages.
    Package(&'a str),
    Directory(&'a str),
    File(&'a str),
}

/// The tests to run: a part of the project, a name, or exactly the tests of an earlier report.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the type defines the scope")]
pub struct Target<'a> {
    pub scope: CommandScope<'a>,
    /// Substring of the test names.
    pub name: Option<&'a str>,
    /// Exactly these tests; `scope` and `name` are then ignored.
    pub rerun: &'a [Selector],
}

/// The identity of one test, from a report, with which it can be run again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Selector {
    /// Runner that reported it.
    pub tool: ProjectTool,
    /// Working directory of the runner, relative to the workspace.
    pub directory: String,
    /// Package: its name for cargo, its import path for Go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Part of the package: `--lib` or `--test it` for cargo, the class for Java.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Path relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Name in the syntax of the runner. An empty name stands for all tests of the part, of which
    /// one brought its process down and is not known.
    pub name: String,
}

/// Separator between the names of nested tests in a [`Selector`].
pub(crate) const ANCESTOR: &str = " > ";

/// The reason why a request cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum PlanError {
    #[error("no {} command is known for the {ecosystem} project in {root}; set `{}` in {root}/carrel.toml", fact.as_str(), fact.as_str())]
    NoCommand { fact: ProfileField, ecosystem: &'static str, root: String },
    #[error("{path} is not inside the project in {root}")]
    Outside { path: String, root: String },
    #[error("{} does not check {path}", tool.name())]
    NotUnderstood { tool: ProjectTool, path: String },
    #[error("{} needs a file; give a path", tool.name())]
    NeedsFile { tool: ProjectTool },
    #[error("{} cannot be limited to {what}; run it for the whole project", tool.name())]
    CannotNarrow { tool: ProjectTool, what: &'static str },
    #[error(
        "the script `{script}` changes files ({flag}), and {} never does; set `{}` in \
         {root}/carrel.toml to a command that only checks, or run it with run_script",
        fact.as_str(), fact.as_str()
    )]
    WritingScript { fact: ProfileField, script: String, flag: String, root: String },
    #[error("none of the failed tests belongs to the project in {root}")]
    NothingToRerun { root: String },
}

/// Variables of test runs, which keep runners from watching and from rewriting snapshots.
const TEST_VARIABLES: [(&str, &str); 2] = [("CI", "1"), ("INSTA_UPDATE", "no")];

/// Plans a test run. Reruns of single tests may need several commands, to be run in order.
pub fn plan_tests(profile: &Profile, target: &Target<'_>) -> Result<Vec<Invocation>, PlanError> {
    let command = command(profile, ProfileField::Test)?;
    check_inside(profile, target.scope)?;
    let lines = select::lines(profile, command, target)?;
    let mut planned: Vec<Invocation> =
        lines.into_iter().map(|line| command_line::invocation(profile, command, line)).collect();
    for invocation in &mut planned {
        for (name, value) in TEST_VARIABLES {
            if invocation.environment.iter().all(|(known, _)| known != name) {
                invocation.environment.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    Ok(planned)
}

/// Plans a run of the linter, the type checker or the formatter in either mode.
pub fn plan_check(
    profile: &Profile,
    fact: ProfileField,
    scope: CommandScope<'_>,
) -> Result<Invocation, PlanError> {
    let command = command(profile, fact)?;
    check_inside(profile, scope)?;
    check_rules::refuse_writing_script(profile, fact, command)?;
    let line = match scope {
        CommandScope::Project if command.argv.is_empty() => {
            return Err(PlanError::NeedsFile { tool: command.tool });
        }
        CommandScope::Project => command_line::CommandLine::for_project(command),
        CommandScope::Package(name) => select::package(command, name)?,
        CommandScope::File(path) if !command.understands(path) => {
            return Err(PlanError::NotUnderstood { tool: command.tool, path: path.to_owned() });
        }
        CommandScope::File(path) => select::check_file(command, path)?,
        CommandScope::Directory(path) => select::check_directory(command, path)?,
    };
    let injection = line.injection;
    let whole = command.leave_out && scope == CommandScope::Project;
    let mut invocation = command_line::invocation(profile, command, line);
    if whole && injection == OptionPassing::Direct {
        invocation.argv.extend(excluded::options(invocation.tool));
    }
    Ok(check_rules::only_check(invocation, fact, injection))
}

fn command(profile: &Profile, fact: ProfileField) -> Result<&ProjectCommand, PlanError> {
    profile.command(fact).ok_or_else(|| PlanError::NoCommand {
        fact,
        ecosystem: profile.ecosystem.as_str(),
        root: profile.root.clone(),
    })
}

fn check_inside(profile: &Profile, scope: CommandScope<'_>) -> Result<(), PlanError> {
    match scope {
        CommandScope::Project | CommandScope::Package(_) => Ok(()),
        CommandScope::Directory(path) | CommandScope::File(path)
            if paths::is_within(path, &profile.root) =>
        {
            Ok(())
        }
        CommandScope::Directory(path) | CommandScope::File(path) => {
            Err(PlanError::Outside { path: path.to_owned(), root: profile.root.clone() })
        }
    }
}
