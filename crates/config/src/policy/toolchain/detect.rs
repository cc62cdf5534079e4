//! Looks for toolchains on this machine.

use std::path::{Component, Path, PathBuf};

use carrel_domain::Network;

use super::{InstallLocation, Toolchain};
use crate::environment::Environment;
use crate::policy::policy_paths::refuse_shared;

const MAX_VERSIONS: usize = 1000;

/// The toolchains of a policy that are installed.
///
/// Only the existence of files is looked at. Nothing here holds a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetectedToolchains {
    /// Names of the installed toolchains.
    pub names: Vec<&'static str>,
    /// Names of toolchains that the policy lists and that are not installed.
    pub missing: Vec<&'static str>,
    /// Files and directories that commands may read.
    pub readable: Vec<PathBuf>,
    /// Directories for the front of `PATH`. Each is UTF-8 and has no colon.
    pub path: Vec<PathBuf>,
    /// Existing files that may hold credentials and are not shared. They have to be hidden, not just
    /// unreadable: a tool that sees such a file and cannot read it may refuse to start.
    pub withheld: Vec<PathBuf>,
    /// Name and value of each variable, and whether it is for commands without the full network alone.
    variables: Vec<(&'static str, String, bool)>,
}

impl DetectedToolchains {
    /// Returns the variables for a command with this network.
    ///
    /// Without the full network, tools are pointed to the operator's read-only caches; with it they fill
    /// caches of their own.
    pub fn environment(&self, network: Network) -> impl Iterator<Item = (&'static str, &str)> {
        let offline = match network {
            Network::None | Network::Loopback => true,
            Network::Full => false,
        };
        let set =
            self.variables.iter().filter(move |(_, _, only_offline)| offline || !only_offline);
        set.map(|(name, value, _)| (*name, value.as_str()))
    }

    fn add(&mut self, location: &'static InstallLocation, environment: &Environment) -> bool {
        let Some(directory) = locate(location, environment) else { return false };
        let Some(text) = directory.to_str().filter(|text| !text.contains(':')) else {
            return false;
        };
        let home = environment.home();
        let readable: Vec<_> = existing(&directory, &location.readable)
            .filter(|path| is_shareable(path, home.as_deref()))
            .collect();
        if readable.is_empty() {
            return false;
        }
        self.readable.extend(readable);
        self.withheld.extend(existing(&directory, &location.withheld));
        let programs =
            location.programs.iter().filter_map(|path| program_directory(&directory, path));
        self.path.extend(programs.filter(|path| path.is_dir()));
        for variable in &location.variables {
            if join(&directory, &variable.needs).exists() {
                let value = variable.value.replace("{}", text);
                self.variables.push((&variable.name, value, variable.offline));
            }
        }
        true
    }
}

pub(crate) fn detect(
    toolchains: &[&'static Toolchain],
    environment: &Environment,
) -> DetectedToolchains {
    let mut found = DetectedToolchains::default();
    for toolchain in toolchains {
        let mut any = false;
        for location in &toolchain.locations {
            any |= found.add(location, environment);
        }
        let names = if any { &mut found.names } else { &mut found.missing };
        names.push(&toolchain.name);
    }
    found
}

/// Returns the directory of a location; `None` if it would be below a home that is not known.
fn locate(location: &InstallLocation, environment: &Environment) -> Option<PathBuf> {
    let moved =
        location.moved_by.as_deref().and_then(|name| environment.get(name)).map(PathBuf::from);
    let moved = moved.filter(|path| path.is_absolute());
    let home = || environment.home().filter(|home| home.is_absolute());
    let usual = || match Path::new(&location.directory) {
        absolute if absolute.is_absolute() => Some(absolute.to_owned()),
        below => home().map(|home| home.join(below)),
    };
    let directory = moved.or_else(usual)?;
    let climbs = directory.components().any(|component| component == Component::ParentDir);
    (!climbs).then_some(directory)
}

/// Rejects a directory that a variable moved onto the home directory or another that is never shared.
fn is_shareable(path: &Path, home: Option<&Path>) -> bool {
    refuse_shared(path).is_ok() && !home.is_some_and(|home| home.starts_with(path))
}

/// Returns a directory of programs; `None` if its path has `<newest>` and no version is installed.
fn program_directory(directory: &Path, path: &str) -> Option<PathBuf> {
    match path.split_once("<newest>/") {
        Some((versions, below)) => Some(newest(&directory.join(versions))?.join(below)),
        None => Some(join(directory, path)),
    }
}

/// Returns the entry whose name is the highest version.
#[expect(clippy::disallowed_methods, reason = "toolchains lie outside every workspace")]
fn newest(versions: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(versions).ok()?.take(MAX_VERSIONS).flatten();
    let numbered = entries.filter_map(|entry| {
        let name = entry.file_name();
        let number = version(name.to_str()?)?;
        Some((number, entry.path()))
    });
    numbered.max().map(|(_, path)| path)
}

/// Parses `v20.11.1`, `go1.22` or `3.12.1`; pre-releases and other names are not versions.
fn version(name: &str) -> Option<Vec<u64>> {
    let digits = name.strip_prefix("go").or(name.strip_prefix('v')).unwrap_or(name);
    digits.split('.').map(|part| part.parse().ok()).collect()
}

fn existing<'a>(
    directory: &'a Path,
    names: &'a [String],
) -> impl Iterator<Item = PathBuf> + use<'a> {
    names.iter().map(|name| join(directory, name)).filter(|path| path.exists())
}

/// Joins a name from the table, where `.` is the directory itself.
fn join(directory: &Path, name: &str) -> PathBuf {
    if name == "." { directory.to_owned() } else { directory.join(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (newer, older) in
            [("v20.9.0", "v18.20.1"), ("v9.11.2", "v9.9.9"), ("go1.22", "go1.9.7")]
        {
            assert!(version(newer) > version(older), "{newer} {older}");
        }
        for name in ["lts", "v20.0.0-nightly", "go1.22rc1", "", "v", "3.12-dev", "-1"] {
            assert_eq!(version(name), None, "{name}");
        }
    }
}
