//! The locations of the policy file, in their order of precedence.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::policy_error::PolicyError;
use crate::environment::{CARREL_POLICY, Environment, XDG_CONFIG_HOME};
use crate::path_expansion;

/// The policy file of the machine.
pub const SYSTEM_POLICY_FILE: &str = "/etc/carrel/policy.toml";

const USER_FILE: &str = "carrel/policy.toml";

/// The source of the policy file's path.
#[expect(missing_docs, reason = "the names of the variants say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyOrigin {
    CommandLine,
    Variable,
    /// The default location of the user.
    User,
    /// The default location of the machine.
    System,
}

impl fmt::Display for PolicyOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CommandLine => "named by --policy",
            Self::Variable => "named by CARREL_POLICY",
            Self::User => "the user's",
            Self::System => "the machine's",
        })
    }
}

/// The path of a policy file that was given, or that exists at a default location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyLocation {
    pub(crate) path: PathBuf,
    pub(crate) origin: PolicyOrigin,
}

impl PolicyLocation {
    pub(super) fn unreadable(&self, source: io::Error) -> PolicyError {
        PolicyError::Unreadable { file: self.path.clone(), origin: self.origin, source }
    }
}

/// Locates the policy file; `None` if no path was given and no default location has one. A given path is
/// returned even if nothing exists there. `system` is the machine's default location.
pub(crate) fn find(
    explicit: Option<&Path>,
    environment: &Environment,
    system: &Path,
) -> Result<Option<PolicyLocation>, PolicyError> {
    let at = |path, origin| Some(PolicyLocation { path, origin });
    if let Some(path) = explicit {
        return Ok(at(path.to_owned(), PolicyOrigin::CommandLine));
    }
    if let Some(path) = variable(environment)? {
        return Ok(at(path, PolicyOrigin::Variable));
    }
    let user = user_policy_file(environment).and_then(|path| at(path, PolicyOrigin::User));
    let system = at(system.to_owned(), PolicyOrigin::System);
    for location in user.into_iter().chain(system) {
        if exists(&location)? {
            return Ok(Some(location));
        }
    }
    Ok(None)
}

/// An empty variable is an error: to fall back to another policy would be a guess.
fn variable(environment: &Environment) -> Result<Option<PathBuf>, PolicyError> {
    let Some(value) = environment.get(CARREL_POLICY) else { return Ok(None) };
    if value.is_empty() {
        return Err(PolicyError::EmptyVariable);
    }
    let expanded = path_expansion::expand(value, Path::new("/"), environment)
        .map_err(|source| PolicyError::Variable { source })?;
    if expanded.relative {
        return Err(PolicyError::RelativeVariable { value: PathBuf::from(value) });
    }
    Ok(Some(expanded.path))
}

/// Returns the default location of the user, below `XDG_CONFIG_HOME` or the home directory.
pub fn user_policy_file(environment: &Environment) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    // The specification of the variable says that a relative value is ignored.
    let set = environment.get(XDG_CONFIG_HOME).map(PathBuf::from).filter(absolute);
    let home = || environment.home().filter(absolute).map(|home| home.join(".config"));
    set.or_else(home).map(|directory| directory.join(USER_FILE))
}

/// Returns whether the path exists; a dangling link counts as existing, since it was put there on purpose.
#[expect(clippy::disallowed_methods, reason = "the policy file lies outside every workspace")]
fn exists(location: &PolicyLocation) -> Result<bool, PolicyError> {
    match std::fs::symlink_metadata(&location.path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        // A policy that cannot be seen may be stricter than the defaults.
        Err(source) => Err(location.unreadable(source)),
    }
}
