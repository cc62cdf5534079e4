//! Diagnostic, reading and checking the policy file.

use std::path::{Path, PathBuf};

use super::error::PolicyError;
use super::file::{self, Content};
use super::operator::OperatorPolicy;
use super::paths;
use super::place::{self, Place, PolicyOrigin, SYSTEM_POLICY_FILE};
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;

/// A policy and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedPolicy {
    /// The policy.
    pub policy: OperatorPolicy,
    /// The file that it was read from; nothing if there is none and the defaults hold.
    pub file: Option<PolicyFile>,
    /// What is doubtful about the file.
    pub warnings: Vec<Diagnostic>,
}

/// The file that a policy was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The file as it was named, made absolute.
    pub path: PathBuf,
    /// The file without links.
    pub real: PathBuf,
    /// Who named it.
    pub origin: PolicyOrigin,
}

impl OperatorPolicy {
    /// Finds, reads and checks the policy file; without one, the defaults hold.
    ///
    /// The first of these that exists counts, and the first two must exist: `explicit`, the
    /// variable `CARREL_POLICY`, `$XDG_CONFIG_HOME/carrel/policy.toml`,
    /// `/etc/carrel/policy.toml`.
    pub fn load(
        explicit: Option<&Path>,
        environment: &Environment,
    ) -> Result<LoadedPolicy, PolicyError> {
        Self::load_with(explicit, environment, Path::new(SYSTEM_POLICY_FILE))
    }

    fn load_with(
        explicit: Option<&Path>,
        environment: &Environment,
        system: &Path,
    ) -> Result<LoadedPolicy, PolicyError> {
        let Some(place) = place::find(explicit, environment, system)? else {
            return Ok(LoadedPolicy { policy: Self::default(), file: None, warnings: Vec::new() });
        };
        let place = absolute(place)?;
        let Content { real, bytes } = file::read(&place)?;
        let Place { path, origin } = place;
        let (policy, warnings) =
            Self::parse_protecting(&bytes, &path, environment, &[&path, &real])?;
        Ok(LoadedPolicy { policy, file: Some(PolicyFile { path, real, origin }), warnings })
    }
}

fn absolute(place: Place) -> Result<Place, PolicyError> {
    let Place { path, origin } = place;
    match std::path::absolute(&path) {
        Ok(path) => Ok(Place { path, origin }),
        Err(source) => Err(PolicyError::Unreadable { file: path, origin, source }),
    }
}

impl LoadedPolicy {
    /// Tells whether the policy file, or the link that names it, lies in a workspace, whose
    /// commands could then change their own policy.
    pub fn lies_in(&self, workspace: &Path) -> bool {
        let Some(file) = &self.file else { return false };
        let named = std::path::absolute(workspace).unwrap_or_else(|_| workspace.to_owned());
        let real = paths::look(workspace).unwrap_or_else(|_| named.clone());
        // Links in the directory of the name count, the name itself being one does not.
        let directory = file.path.parent().and_then(|directory| paths::look(directory).ok());
        let places = [Some(&file.path), Some(&file.real), directory.as_ref()];
        places.into_iter().flatten().any(|path| path.starts_with(&named) || path.starts_with(&real))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::fs::{create_dir_all, write};
    use std::slice::from_ref;

    const NONE: &str = "network_limit = 'none'";

    #[expect(clippy::disallowed_methods, reason = "the test lays out its own files")]
    fn lay(path: &Path) -> PathBuf {
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, NONE).unwrap();
        path.to_owned()
    }

    #[test]
    fn the_first_place_that_has_a_file_counts() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let system = at("etc/policy.toml");
        let origin = |explicit: Option<&Path>, pairs: &[(&str, PathBuf)]| {
            let environment = Environment::from_pairs(pairs.iter().cloned());
            let loaded = OperatorPolicy::load_with(explicit, &environment, &system).unwrap();
            loaded.file.map(|file| file.origin)
        };
        let home = ("HOME", at("home"));
        let config = ("XDG_CONFIG_HOME", at("config"));
        assert_eq!(origin(None, &[]), None);
        assert_eq!(origin(None, &[home.clone(), config.clone()]), None);

        lay(&system);
        assert_eq!(origin(None, from_ref(&home)), Some(PolicyOrigin::System));
        lay(&at("home/.config/carrel/policy.toml"));
        assert_eq!(origin(None, from_ref(&home)), Some(PolicyOrigin::User));
        // The variable moves the directory; nothing is there yet.
        assert_eq!(origin(None, &[home.clone(), config.clone()]), Some(PolicyOrigin::System));
        lay(&at("config/carrel/policy.toml"));
        assert_eq!(origin(None, from_ref(&config)), Some(PolicyOrigin::User));
        for ignored in ["", "relative"] {
            let pairs = [home.clone(), ("XDG_CONFIG_HOME", ignored.into())];
            assert_eq!(origin(None, &pairs), Some(PolicyOrigin::User), "{ignored}");
        }

        let variable = ("CARREL_POLICY", lay(&at("variable.toml")));
        assert_eq!(origin(None, &[home.clone(), variable.clone()]), Some(PolicyOrigin::Variable));
        let explicit = lay(&at("explicit.toml"));
        let origin = origin(Some(&explicit), &[home, variable]);
        assert_eq!(origin, Some(PolicyOrigin::CommandLine));
    }
}
