//! The operator's toolchains: what commands need of them, and never what holds credentials.
//!
//! Commands have the workspace as their home, so a compiler below the operator's home is
//! neither visible nor found. The table says which directories are shared, read-only,
//! and which variables lead tools to them.

mod find;
mod table;

pub use find::DetectedToolchains;
pub(crate) use find::find;
pub use table::TOOLCHAINS;

/// A toolchain that commands may be given.
#[derive(Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The name in the policy file.
    pub name: &'static str,
    /// Where its parts are.
    pub(crate) places: &'static [Place],
}

/// A directory that holds a part of a toolchain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The directory, below the operator's home unless it is absolute.
    pub(crate) directory: &'static str,
    /// The operator's variable that moves the directory.
    pub(crate) moved_by: Option<&'static str>,
    /// What commands may read, below the directory. If none of it exists, the place does not count.
    pub(crate) readable: &'static [&'static str],
    /// What comes to the front of `PATH`, below the directory.
    pub(crate) programs: &'static [Programs],
    /// The variables that lead tools here.
    pub(crate) variables: &'static [Variable],
    /// Files that may hold credentials and that tools read if they see them. Never shared.
    pub(crate) withheld: &'static [&'static str],
}

impl Place {
    /// A place with nothing in it, from which others are made.
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

/// A directory of programs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Programs {
    /// Always the same.
    At(&'static str),
    /// That of the newest version: `<versions>/<newest>/<below>`.
    Newest { versions: &'static str, below: &'static str },
}

/// A variable that leads a tool to a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    /// Its value; `{}` stands for the directory.
    pub(crate) value: &'static str,
    /// What must exist below the directory for the variable to be of use.
    pub(crate) needs: &'static str,
    pub(crate) when: When,
}

/// When a variable is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// For every command.
    Always,
    /// For commands that cannot download. It makes a shared cache the tool's only one, and
    /// the tool could not add to it.
    Offline,
}

/// Returns the toolchain with this name.
pub(crate) fn named(name: &str) -> Option<&'static Toolchain> {
    TOOLCHAINS.iter().find(|toolchain| toolchain.name == name)
}

/// Returns every name.
pub(crate) fn names() -> Vec<&'static str> {
    TOOLCHAINS.iter().map(|toolchain| toolchain.name).collect()
}
