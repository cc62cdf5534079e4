//! The profile of a project: its ecosystem and its commands, as its files describe them.

mod command;
mod ecosystem;
mod fields;

pub(crate) use command::args;
pub use command::{Granularity, OptionPassing, ProjectCommand};
pub(crate) use ecosystem::SCRIPT_EXTENSIONS;
pub use ecosystem::{Ecosystem, PackageManager};
pub use fields::{
    CargoPackage, EditLimits, Evidence, Membership, ProfileField, ProfileProblem, ProjectScript,
};

use serde::Serialize;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<ProjectCommand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ProjectCommand>,
    /// Command that lists the files to format and changes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format_check: Option<ProjectCommand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lint: Option<ProjectCommand>,
    /// Command that runs the type checker or compiler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typecheck: Option<ProjectCommand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<ProjectCommand>,
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
        Self {
            ecosystem,
            root: root.to_owned(),
            name: None,
            membership: None,
            package_manager: None,
            install: None,
            format: None,
            format_check: None,
            lint: None,
            typecheck: None,
            test: None,
            deps_dir: None,
            cargo: None,
            scripts: Vec::new(),
            format_on_edit: false,
            edit_limits: EditLimits::default(),
            evidence: vec![Evidence::new(ProfileField::Ecosystem, marker)],
            problems: Vec::new(),
        }
    }

    /// Returns the command of a field; `None` if it is absent or no command.
    pub fn command(&self, fact: ProfileField) -> Option<&ProjectCommand> {
        match fact {
            ProfileField::Install => self.install.as_ref(),
            ProfileField::Format => self.format.as_ref(),
            ProfileField::FormatCheck => self.format_check.as_ref(),
            ProfileField::Lint => self.lint.as_ref(),
            ProfileField::Typecheck => self.typecheck.as_ref(),
            ProfileField::Test => self.test.as_ref(),
            ProfileField::Ecosystem
            | ProfileField::PackageManager
            | ProfileField::DepsDir
            | ProfileField::FormatOnEdit
            | ProfileField::EditLimits => None,
        }
    }

    pub(crate) fn set(&mut self, fact: ProfileField, command: ProjectCommand, file: &str) {
        let slot = match fact {
            ProfileField::Install => &mut self.install,
            ProfileField::Format => &mut self.format,
            ProfileField::FormatCheck => &mut self.format_check,
            ProfileField::Lint => &mut self.lint,
            ProfileField::Typecheck => &mut self.typecheck,
            ProfileField::Test => &mut self.test,
            ProfileField::Ecosystem
            | ProfileField::PackageManager
            | ProfileField::DepsDir
            | ProfileField::FormatOnEdit
            | ProfileField::EditLimits => return,
        };
        *slot = Some(command);
        self.add_evidence(fact, file);
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
        self.evidence.push(Evidence::new(fact, file));
    }

    /// Returns the file that a field comes from.
    pub fn evidence_of(&self, fact: ProfileField) -> Option<&str> {
        let found = self.evidence.iter().find(|evidence| evidence.fact == fact)?;
        Some(found.file.as_str())
    }
}
