//! Toolchains of the operator that commands may read, without the files that hold credentials.
//!
//! Commands have the workspace as their home, so a compiler below the operator's home is neither visible
//! nor on their `PATH`. The [table] lists, for each toolchain, the directories to share read-only, the
//! variables that point tools to them, and the files beside them that must stay hidden. A test compares
//! the shared directories with a list of known credential files.

mod detect;
mod table;

pub use detect::DetectedToolchains;
pub(crate) use detect::detect;
pub use table::TOOLCHAINS;

/// A toolchain that commands may be given.
#[derive(Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The name in the policy file.
    pub name: &'static str,
    pub(crate) locations: &'static [InstallLocation],
}

/// A directory that a toolchain, or a part of it, is installed in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InstallLocation {
    /// The usual directory, below the operator's home unless it is absolute.
    pub(crate) directory: &'static str,
    /// The operator's environment variable that names another directory.
    pub(crate) moved_by: Option<&'static str>,
    /// Paths below the directory that commands may read. If none exists, the toolchain is not here.
    pub(crate) readable: &'static [&'static str],
    pub(crate) programs: &'static [ProgramDirectory],
    pub(crate) variables: &'static [ToolchainVariable],
    /// Files that may hold credentials; never shared.
    pub(crate) withheld: &'static [&'static str],
}

impl InstallLocation {
    /// Returns a location without content, for struct update syntax.
    pub(crate) const fn at(directory: &'static str) -> Self {
        Self {
            directory,
            moved_by: None,
            readable: &[],
            programs: &[],
            variables: &[],
            withheld: &[],
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProgramDirectory {
    At(&'static str),
    /// The newest version's: `<versions>/<newest>/<below>`.
    Newest {
        versions: &'static str,
        below: &'static str,
    },
}

/// A variable that points a tool to its install location.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolchainVariable {
    pub(crate) name: &'static str,
    /// The value; `{}` stands for the directory.
    pub(crate) value: &'static str,
    /// The path below the directory that must exist for the variable to be set.
    pub(crate) needs: &'static str,
    pub(crate) when: SetWhen,
}

/// The commands that a variable is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetWhen {
    Always,
    /// Commands without the full network. The variable makes a shared, read-only cache the tool's only one, to
    /// which a download could not be added.
    Offline,
}

pub(crate) fn named(name: &str) -> Option<&'static Toolchain> {
    TOOLCHAINS.iter().find(|toolchain| toolchain.name == name)
}

pub(crate) fn names() -> Vec<&'static str> {
    TOOLCHAINS.iter().map(|toolchain| toolchain.name).collect()
}
