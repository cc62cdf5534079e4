//! Pointing a project's commands at something, and asking for a report that can be read.
//!
//! Nothing here looks at the disk: a plan follows from a profile alone.

mod command_line;
mod install_hint;
mod invocation;
mod report_format;
mod report_options;
mod script;
mod select;

pub use invocation::{ARTIFACTS, Artifact, Invocation};
pub use report_format::ReportFormat;
pub use script::{ScriptError, plan_script};

use serde::{Deserialize, Serialize};

use crate::paths;
use crate::profile::{Profile, ProfileField, ProjectCommand};
use crate::tool::ProjectTool;

/// What a command is pointed at. Paths are relative to the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandScope<'a> {
    /// The whole project.
    #[default]
    Project,
    /// A package by its name, where the tool knows names.
    Package(&'a str),
    /// A directory of the project.
    Directory(&'a str),
    /// A file of the project.
    File(&'a str),
}

/// Which tests are run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target<'a> {
    /// Where they are.
    pub scope: CommandScope<'a>,
    /// A part of their names.
    pub name: Option<&'a str>,
    /// Exactly these; then `scope` and `name` do not count.
    pub rerun: &'a [Selector],
}

/// What it takes to run one test again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Selector {
    /// The runner that reported it.
    pub tool: ProjectTool,
    /// Where the runner ran, relative to the workspace.
    pub directory: String,
    /// The package: of cargo by name, of Go by import path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The part of the package: of cargo such as `--lib` or `--test it`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The file, relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The name, as the runner wants it.
    pub name: String,
}

/// Separates the names of nested tests in a [`Selector`] of runners that nest.
pub(crate) const ANCESTOR: &str = " > ";

/// Whether a formatter changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatMode {
    /// It only says which files are not in the project's style.
    Check,
    /// It rewrites them.
    Write,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The project has no such command.
    #[error("no {} command is known for the {ecosystem} project in {root}; set `{}` in {root}/carrel.toml", fact.as_str(), fact.as_str())]
    NoCommand {
        /// The missing command.
        fact: ProfileField,
        /// The ecosystem.
        ecosystem: &'static str,
        /// The project.
        root: String,
    },
    /// The path is not of this project.
    #[error("{path} is not inside the project in {root}")]
    Outside {
        /// The path.
        path: String,
        /// The project.
        root: String,
    },
    /// The tool does not read such files.
    #[error("{} does not check {path}", tool.name())]
    NotUnderstood {
        /// The tool.
        tool: ProjectTool,
        /// The file.
        path: String,
    },
    /// The tool needs to be given files.
    #[error("{} needs a file; give a path", tool.name())]
    NeedsFile {
        /// The tool.
        tool: ProjectTool,
    },
    /// The tool cannot be pointed at less than the project.
    #[error("{} cannot be limited to {what}; run it for the whole project", tool.name())]
    CannotNarrow {
        /// The tool.
        tool: ProjectTool,
        /// What was asked for.
        what: &'static str,
    },
    /// None of the failed tests belongs to this project.
    #[error("none of the failed tests belongs to the project in {root}")]
    NothingToRerun {
        /// The project.
        root: String,
    },
}

/// Plans a run of tests. Exact reruns may need several commands, to be run one after another.
pub fn plan_tests(profile: &Profile, target: &Target<'_>) -> Result<Vec<Invocation>, PlanError> {
    let command = command(profile, ProfileField::Test)?;
    check_inside(profile, target.scope)?;
    let lines = select::lines(profile, command, target)?;
    Ok(lines.into_iter().map(|line| command_line::invocation(profile, command, line)).collect())
}

/// Plans a search for mistakes.
pub fn plan_lint(profile: &Profile, scope: CommandScope<'_>) -> Result<Invocation, PlanError> {
    plan_check(profile, ProfileField::Lint, scope)
}

/// Plans a check of types.
pub fn plan_typecheck(profile: &Profile, scope: CommandScope<'_>) -> Result<Invocation, PlanError> {
    plan_check(profile, ProfileField::Typecheck, scope)
}

/// Plans a run of the formatter.
pub fn plan_format(
    profile: &Profile,
    mode: FormatMode,
    scope: CommandScope<'_>,
) -> Result<Invocation, PlanError> {
    let fact = match mode {
        FormatMode::Check => ProfileField::FormatCheck,
        FormatMode::Write => ProfileField::Format,
    };
    plan_check(profile, fact, scope)
}

/// Plans the installation of dependencies.
pub fn plan_install(profile: &Profile) -> Result<Invocation, PlanError> {
    let command = command(profile, ProfileField::Install)?;
    Ok(command_line::invocation(profile, command, command_line::CommandLine::whole(command)))
}

fn plan_check(
    profile: &Profile,
    fact: ProfileField,
    scope: CommandScope<'_>,
) -> Result<Invocation, PlanError> {
    let command = command(profile, fact)?;
    check_inside(profile, scope)?;
    let line = match scope {
        CommandScope::Project if command.argv.is_empty() => {
            return Err(PlanError::NeedsFile { tool: command.tool });
        }
        CommandScope::Project => command_line::CommandLine::whole(command),
        CommandScope::Package(name) => select::package(command, name)?,
        CommandScope::File(path) if !command.understands(path) => {
            return Err(PlanError::NotUnderstood { tool: command.tool, path: path.to_owned() });
        }
        CommandScope::File(path) => select::check_file(command, path)?,
        CommandScope::Directory(path) => select::check_directory(command, path)?,
    };
    Ok(command_line::invocation(profile, command, line))
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
