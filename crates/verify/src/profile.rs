//! The profile of a project: its ecosystem and its commands, as its files describe them.

mod command;
mod ecosystem;
mod fields;

pub use command::{Granularity, OptionPassing, ProjectCommand};
pub(crate) use command::{args, has_word, words};
pub(crate) use ecosystem::SCRIPT_EXTENSIONS;
pub use ecosystem::{Ecosystem, PackageManager};
pub use fields::{
    CargoPackage, EditLimits, Evidence, Membership, ProfileField, ProfileProblem, ProjectScript,
};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::tool::ProjectTool;

/// A project and the commands that install, check, test and format it.
///
/// A directory may contain several projects, one for each ecosystem. A field without evidence in
/// the project's files is absent; `evidence` names the file for each field that is present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "most fields are named after the command or type")]
pub struct Profile {
    pub ecosystem: Ecosystem,
    /// Directory of the project, relative to the workspace; `.` is the workspace itself.
    pub root: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Role in a workspace of several packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<Membership>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_manager: Option<PackageManager>,
    /// Commands by field, of those in [`ProfileField::COMMANDS`]; `format_check` lists the files to
    /// format and changes none, and `typecheck` runs the type checker or compiler.
    #[serde(flatten)]
    pub commands: BTreeMap<ProfileField, ProjectCommand>,
    /// Directory of installed dependencies, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deps_dir: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cargo: Option<CargoPackage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ProjectScript>,
    pub format_on_edit: bool,
    pub edit_limits: EditLimits,
    /// The file that each field comes from.
    pub evidence: Vec<Evidence>,
    /// Project files that could not be parsed, whole or in part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ProfileProblem>,
}

impl Profile {
    pub(crate) fn new(ecosystem: Ecosystem, root: &str, marker: &str) -> Self {
        let mut profile = Self {
            ecosystem,
            root: root.to_owned(),
            name: None,
            membership: None,
            package_manager: None,
            commands: BTreeMap::new(),
            deps_dir: None,
            cargo: None,
            scripts: Vec::new(),
            format_on_edit: false,
            edit_limits: EditLimits::default(),
            evidence: Vec::new(),
            problems: Vec::new(),
        };
        profile.add_evidence(ProfileField::Ecosystem, marker);
        profile
    }

    /// Returns the command of a field; `None` if it is absent or no command.
    pub fn command(&self, fact: ProfileField) -> Option<&ProjectCommand> {
        self.commands.get(&fact)
    }

    pub(crate) fn set(&mut self, fact: ProfileField, command: ProjectCommand, file: &str) {
        self.commands.insert(fact, command);
        self.add_evidence(fact, file);
    }

    pub(crate) fn set_install(&mut self, directory: &str, argv: &str, file: &str) {
        let command = ProjectCommand::new(ProjectTool::Installer, directory, words(argv));
        self.set(ProfileField::Install, command, file);
    }

    pub(crate) fn add_script(&mut self, name: &str, text: &str, file: &str, argv: Vec<String>) {
        self.scripts.push(ProjectScript {
            name: name.to_owned(),
            text: text.to_owned(),
            file: file.to_owned(),
            argv,
        });
    }

    /// Returns a value that was read, or records the problem with its file.
    pub(crate) fn accept<T>(&mut self, read: Result<T, ProfileProblem>) -> Option<T> {
        read.map_err(|problem| self.problems.push(problem)).ok()
    }

    pub(crate) fn set_manager(&mut self, manager: PackageManager, file: &str) {
        self.package_manager = Some(manager);
        self.add_evidence(ProfileField::PackageManager, file);
    }

    pub(crate) fn set_deps_dir(&mut self, directory: String, file: &str) {
        self.deps_dir = Some(directory);
        self.add_evidence(ProfileField::DepsDir, file);
    }

    pub(crate) fn add_evidence(&mut self, fact: ProfileField, file: &str) {
        self.evidence.retain(|evidence| evidence.fact != fact);
        self.evidence.push(Evidence { fact, file: file.to_owned() });
    }

    /// Returns the file that a field comes from.
    pub fn evidence_of(&self, fact: ProfileField) -> Option<&str> {
        let found = self.evidence.iter().find(|evidence| evidence.fact == fact)?;
        Some(found.file.as_str())
    }
}
