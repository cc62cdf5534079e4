//! Loading the policy: locate, read, check, parse.

use std::path::{Path, PathBuf};

use super::operator_policy::OperatorPolicy;
use super::policy_error::PolicyError;
use super::policy_file;
use super::policy_location::{self, PolicyLocation, PolicyOrigin, SYSTEM_POLICY_FILE};
use super::policy_paths;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;

/// A policy and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedPolicy {
    /// The policy in force.
    pub policy: OperatorPolicy,
    /// The file of the policy; `None` if there is none and the defaults apply.
    pub file: Option<PolicyFile>,
    /// The warnings, in the order of the file.
    pub warnings: Vec<Diagnostic>,
}

/// The file that a policy was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The path as given, made absolute.
    pub path: PathBuf,
    /// The path with all links resolved.
    pub real: PathBuf,
    /// The source of the path.
    pub origin: PolicyOrigin,
}

impl OperatorPolicy {
    /// Loads the policy file, or the defaults if there is none.
    ///
    /// The first of these that exists is used, and the first two must exist if they are given: `explicit`, the
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
        let Some(location) = policy_location::find(explicit, environment, system)? else {
            return Ok(LoadedPolicy { policy: Self::default(), file: None, warnings: Vec::new() });
        };
        let path =
            std::path::absolute(&location.path).map_err(|source| location.unreadable(source))?;
        let location = PolicyLocation { path, ..location };
        let (real, bytes) = policy_file::read(&location)?;
        let PolicyLocation { path, origin } = location;
        let (policy, warnings) =
            Self::parse_protecting(&bytes, &path, environment, &[&path, &real])?;
        Ok(LoadedPolicy { policy, file: Some(PolicyFile { path, real, origin }), warnings })
    }
}

impl LoadedPolicy {
    /// Returns whether the policy file, or a link that leads to it, lies in a workspace, whose commands could
    /// then change their own policy.
    pub fn lies_in(&self, workspace: &Path) -> bool {
        let Some(file) = &self.file else { return false };
        let named = std::path::absolute(workspace).unwrap_or_else(|_| workspace.to_owned());
        let real = policy_paths::real_path(workspace).unwrap_or_else(|_| named.clone());
        // Links in the directory part count; the file name itself being a link is covered by `real`.
        let directory =
            file.path.parent().and_then(|directory| policy_paths::real_path(directory).ok());
        let paths = [Some(&file.path), Some(&file.real), directory.as_ref()];
        paths.into_iter().flatten().any(|path| path.starts_with(&named) || path.starts_with(&real))
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
    fn write_policy(path: &Path) -> PathBuf {
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, NONE).unwrap();
        path.to_owned()
    }

    #[test]
    fn the_first_location_with_a_file_is_used() {
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

        write_policy(&system);
        assert_eq!(origin(None, from_ref(&home)), Some(PolicyOrigin::System));
        write_policy(&at("home/.config/carrel/policy.toml"));
        assert_eq!(origin(None, from_ref(&home)), Some(PolicyOrigin::User));
        // The variable moves the directory; nothing is there yet.
        assert_eq!(origin(None, &[home.clone(), config.clone()]), Some(PolicyOrigin::System));
        write_policy(&at("config/carrel/policy.toml"));
        assert_eq!(origin(None, from_ref(&config)), Some(PolicyOrigin::User));
        for ignored in ["", "relative"] {
            let pairs = [home.clone(), ("XDG_CONFIG_HOME", ignored.into())];
            assert_eq!(origin(None, &pairs), Some(PolicyOrigin::User), "{ignored}");
        }

        let variable = ("CARREL_POLICY", write_policy(&at("variable.toml")));
        assert_eq!(origin(None, &[home.clone(), variable.clone()]), Some(PolicyOrigin::Variable));
        let explicit = write_policy(&at("explicit.toml"));
        let origin = origin(Some(&explicit), &[home, variable]);
        assert_eq!(origin, Some(PolicyOrigin::CommandLine));
    }
}
