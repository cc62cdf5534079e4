//! The fields of a profile, their evidence, and the smaller types of a profile.

use std::fmt;

use serde::Serialize;

use crate::named::named_enum;

named_enum! {
    /// A field of a profile that can have evidence, named as in `carrel.toml` and in replies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    #[expect(missing_docs, reason = "each variant is the field of the same name")]
    pub enum ProfileField {
        Ecosystem = "ecosystem",
        PackageManager = "package_manager",
        Install = "install",
        Format = "format",
        FormatCheck = "format_check",
        Lint = "lint",
        Typecheck = "typecheck",
        Test = "test",
        DepsDir = "deps_dir",
        FormatOnEdit = "format_on_edit",
        EditLimits = "edit_limits",
    }
}

impl ProfileField {
    /// The fields that are commands.
    pub const COMMANDS: [Self; 6] =
        [Self::Install, Self::Format, Self::FormatCheck, Self::Lint, Self::Typecheck, Self::Test];
}

/// The file, relative to the workspace, that a field of a profile comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the summary defines both fields")]
pub struct Evidence {
    pub fact: ProfileField,
    pub file: String,
}

/// A problem in a project file, which is then ignored, whole or in part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[expect(missing_docs, reason = "the message is its own explanation")]
pub struct ProfileProblem {
    /// Path relative to the workspace.
    pub file: String,
    /// Line, counted from 1, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
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

/// The role of a project in a workspace of several packages: its root, or a member `of` the
/// directory of the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "role")]
#[expect(missing_docs, reason = "the summary defines both variants")]
pub enum Membership {
    Root {
        /// Members as written in the manifest, with wildcards.
        members: Vec<String>,
    },
    Member {
        of: String,
    },
}

/// Details of a cargo package, for the selection of targets and the edition of rustfmt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the summary mentions the edition")]
pub struct CargoPackage {
    /// Name of the package; a virtual workspace has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    pub edition: String,
    /// True if the package has a library target.
    pub library: bool,
}

/// A command that a project defines by name: a package.json script, a cargo alias, a make target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the summary defines name and command")]
pub struct ProjectScript {
    pub name: String,
    /// Definition, if it is a single line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// File that defines it, relative to the workspace.
    pub file: String,
    pub argv: Vec<String>,
}

/// The limits on the size of edits that a project requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EditLimits {
    /// No limits beyond those of the server.
    #[default]
    Standard,
    /// A few lines for each edit.
    Strict,
}
