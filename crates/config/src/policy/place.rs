//! Where the policy file is looked for.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::error::PolicyError;
use crate::environment::{CARREL_POLICY, Environment, XDG_CONFIG_HOME};
use crate::paths;

/// The policy file of a machine.
pub const SYSTEM_POLICY_FILE: &str = "/etc/carrel/policy.toml";

/// The policy file below a user's directory for settings.
const USER_FILE: &str = "carrel/policy.toml";

/// Who named the policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyOrigin {
    /// The command line.
    CommandLine,
    /// The variable `CARREL_POLICY`.
    Variable,
    /// Nobody: it is the user's.
    User,
    /// Nobody: it is the machine's.
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

/// A policy file that was named or that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) origin: PolicyOrigin,
}

/// Finds the policy file; nothing if none was named and none exists.
///
/// A file that was named is returned even if it does not exist. `system` is the machine's.
pub(crate) fn find(
    explicit: Option<&Path>,
    environment: &Environment,
    system: &Path,
) -> Result<Option<Place>, PolicyError> {
    if let Some(path) = explicit {
        return Ok(Some(Place { path: path.to_owned(), origin: PolicyOrigin::CommandLine }));
    }
    if let Some(path) = variable(environment)? {
        return Ok(Some(Place { path, origin: PolicyOrigin::Variable }));
    }
    let user = user_file(environment).map(|path| Place { path, origin: PolicyOrigin::User });
    let system = Place { path: system.to_owned(), origin: PolicyOrigin::System };
    for place in user.into_iter().chain([system]) {
        if exists(&place)? {
            return Ok(Some(place));
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
    let expanded = paths::expand(value, Path::new("/"), environment)
        .map_err(|source| PolicyError::Variable { source })?;
    if expanded.relative {
        return Err(PolicyError::RelativeVariable { value: PathBuf::from(value) });
    }
    Ok(Some(expanded.path))
}

fn user_file(environment: &Environment) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    // The specification of the variable says that a relative value is ignored.
    let set = environment.get(XDG_CONFIG_HOME).map(PathBuf::from).filter(absolute);
    let home = || environment.home().filter(absolute).map(|home| home.join(".config"));
    set.or_else(home).map(|directory| directory.join(USER_FILE))
}

/// Tells whether something is there, be it a link that leads nowhere.
#[expect(clippy::disallowed_methods, reason = "the policy file lies outside every workspace")]
fn exists(place: &Place) -> Result<bool, PolicyError> {
    match std::fs::symlink_metadata(&place.path) {
        Ok(_) => Ok(true),
        Err(error) if is_absence(&error) => Ok(false),
        // A policy that cannot be seen may be stricter than the defaults.
        Err(source) => {
            Err(PolicyError::Unreadable { file: place.path.clone(), origin: place.origin, source })
        }
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
