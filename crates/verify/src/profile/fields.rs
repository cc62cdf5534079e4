//! The smaller parts of a profile.

use std::fmt;

use serde::Serialize;

/// What a piece of evidence speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileField {
    /// That there is a project of the ecosystem.
    Ecosystem,
    /// The package manager.
    PackageManager,
    /// The install command.
    Install,
    /// The command that formats.
    Format,
    /// The command that checks the format.
    FormatCheck,
    /// The lint command.
    Lint,
    /// The typecheck command.
    Typecheck,
    /// The test command.
    Test,
    /// Where dependencies are installed.
    DepsDir,
    /// Whether edits are formatted.
    FormatOnEdit,
    /// How large an edit may be.
    EditLimits,
}

impl ProfileField {
    /// Returns the key of the fact in `carrel.toml` and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ecosystem => "ecosystem",
            Self::PackageManager => "package_manager",
            Self::Install => "install",
            Self::Format => "format",
            Self::FormatCheck => "format_check",
            Self::Lint => "lint",
            Self::Typecheck => "typecheck",
            Self::Test => "test",
            Self::DepsDir => "deps_dir",
            Self::FormatOnEdit => "format_on_edit",
            Self::EditLimits => "edit_limits",
        }
    }
}

/// Which file speaks for a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The fact.
    pub fact: ProfileField,
    /// The file, relative to the workspace.
    pub file: String,
}

impl Evidence {
    pub(crate) fn new(fact: ProfileField, file: &str) -> Self {
        Self { fact, file: file.to_owned() }
    }
}

/// A project file that could not be understood, whole or in part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ProfileProblem {
    /// The file, relative to the workspace.
    pub file: String,
    /// The line, counted from 1, where one can be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// One sentence for a person.
    pub message: String,
}

impl fmt::Display for ProfileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// A project's place among several that are managed together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "role")]
pub enum Membership {
    /// It names the members.
    Root {
        /// The members as they are written down, with wildcards.
        members: Vec<String>,
    },
    /// It is one of the members.
    Member {
        /// The directory of the project that names it.
        of: String,
    },
}

/// What cargo needs to be pointed at a part of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CargoPackage {
    /// The package of this directory; a virtual workspace has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The edition that its files are written in.
    pub edition: String,
    /// Whether the package has a library.
    pub library: bool,
}

/// A command that a project gave a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectScript {
    /// The name.
    pub name: String,
    /// What is written behind it, where that is one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The file that defines it, relative to the workspace.
    pub file: String,
    /// Runs it.
    pub argv: Vec<String>,
}

/// How large an edit may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EditLimits {
    /// The usual limits.
    #[default]
    Standard,
    /// The project asks for smaller steps.
    Strict,
}
