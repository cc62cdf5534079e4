//! What a directory's project files say about it.

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

/// One project: what it is, and which commands install, check, test and format it.
///
/// A directory may hold several, one for each ecosystem. A fact that nothing in the
/// project speaks for is absent; `evidence` names the file behind each that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// The ecosystem.
    pub ecosystem: Ecosystem,
    /// The project's directory, relative to the workspace; `.` is the workspace itself.
    pub root: String,
    /// The name that the project gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its place in a workspace of several packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<Membership>,
    /// What installs its dependencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_manager: Option<PackageManager>,
    /// Installs the dependencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<ProjectCommand>,
    /// Rewrites files in the project's style.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ProjectCommand>,
    /// Tells which files are not in the project's style, and changes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format_check: Option<ProjectCommand>,
    /// Looks for mistakes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lint: Option<ProjectCommand>,
    /// Checks the types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typecheck: Option<ProjectCommand>,
    /// Runs the tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<ProjectCommand>,
    /// Where installed dependencies lie, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deps_dir: Option<String>,
    /// What cargo needs to be pointed at a part of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cargo: Option<CargoPackage>,
    /// The named commands that the project defines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ProjectScript>,
    /// Whether an edit is followed by the formatter.
    pub format_on_edit: bool,
    /// How large an edit may be.
    pub edit_limits: EditLimits,
    /// Which file each fact comes from.
    pub evidence: Vec<Evidence>,
    /// What could not be understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ProfileProblem>,
}

impl Profile {
    /// A profile that knows its place and nothing else.
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

    /// Returns the command behind a fact.
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

    /// Sets a command and says which file asked for it.
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

    /// Sets the package manager and says which file asked for it.
    pub(crate) fn set_manager(&mut self, manager: PackageManager, file: &str) {
        self.package_manager = Some(manager);
        self.add_evidence(ProfileField::PackageManager, file);
    }

    /// Sets where dependencies are installed and says which file asked for it.
    pub(crate) fn set_deps_dir(&mut self, directory: String, file: &str) {
        self.deps_dir = Some(directory);
        self.add_evidence(ProfileField::DepsDir, file);
    }

    /// Notes the file behind a fact in the place of what was noted before.
    pub(crate) fn add_evidence(&mut self, fact: ProfileField, file: &str) {
        self.evidence.retain(|evidence| evidence.fact != fact);
        self.evidence.push(Evidence::new(fact, file));
    }

    /// Returns the file behind a fact.
    pub fn evidence_of(&self, fact: ProfileField) -> Option<&str> {
        let found = self.evidence.iter().find(|evidence| evidence.fact == fact)?;
        Some(found.file.as_str())
    }
}
