//! Toolchains of the operator that commands may read, without the files that hold credentials.
//!
//! Commands have a home of their own, so a compiler below the operator's home is neither visible
//! nor on their `PATH`. [`TOOLCHAINS`] lists, for each toolchain, the directories to share read-only, the
//! variables that point tools to them, and the files beside them that must stay hidden. A test compares
//! the shared directories with a list of known credential files.

mod detect;

pub use detect::DetectedToolchains;
pub(crate) use detect::detect;

use std::sync::LazyLock;

use serde::Deserialize;

use crate::toml_tree;

/// Every toolchain, in the order of `PATH`.
pub static TOOLCHAINS: LazyLock<Vec<Toolchain>> = LazyLock::new(|| {
    let table = toml_tree::parse(include_str!("toolchains.toml")).expect("the table is TOML");
    let toolchains = table.find("toolchains").expect("the table lists toolchains");
    serde_json::from_value(toolchains.to_json()).expect("each entry has the fields of a toolchain")
});

/// A toolchain that commands may be given.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Toolchain {
    /// The name in the policy file.
    pub name: String,
    pub(crate) locations: Vec<InstallLocation>,
}

/// A directory that a toolchain, or a part of it, is installed in.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstallLocation {
    /// The usual directory, below the operator's home unless it is absolute.
    pub(crate) directory: String,
    /// The operator's environment variable that names another directory.
    pub(crate) moved_by: Option<String>,
    /// Paths below the directory that commands may read. If none exists, the toolchain is not here.
    pub(crate) readable: Vec<String>,
    /// Directories for the front of `PATH`; `<newest>` stands for the highest version that is installed.
    #[serde(default)]
    pub(crate) programs: Vec<String>,
    #[serde(default)]
    pub(crate) variables: Vec<ToolchainVariable>,
    /// Files that may hold credentials; never shared.
    #[serde(default)]
    pub(crate) withheld: Vec<String>,
}

/// A variable that points a tool to its install location.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolchainVariable {
    pub(crate) name: String,
    /// The value; `{}` stands for the directory.
    pub(crate) value: String,
    /// The path below the directory that must exist for the variable to be set.
    pub(crate) needs: String,
    /// True to set it only for commands without the full network. The variable makes a shared, read-only
    /// cache the tool's only one, to which a download could not be added.
    #[serde(default)]
    pub(crate) offline: bool,
}

pub(crate) fn named(name: &str) -> Option<&'static Toolchain> {
    TOOLCHAINS.iter().find(|toolchain| toolchain.name == name)
}

pub(crate) fn names() -> Vec<&'static str> {
    TOOLCHAINS.iter().map(|toolchain| toolchain.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::path::Path;

    /// Files below a home directory in which tools keep passwords, tokens and keys.
    const CREDENTIALS: &[&str] = &[
        ".aws/credentials",
        ".bash_history",
        ".bundle/config",
        ".cargo/config",
        ".cargo/config.toml",
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".config/gh/hosts.yml",
        ".config/go/env",
        ".config/pip/pip.conf",
        ".docker/config.json",
        ".gem/credentials",
        ".git-credentials",
        ".gnupg",
        ".gradle/gradle.properties",
        ".gradle/init.gradle",
        ".local/bin/deploy",
        ".local/share/keyrings",
        ".m2/settings-security.xml",
        ".m2/settings.xml",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".ssh",
        ".yarnrc.yml",
    ];

    fn locations() -> impl Iterator<Item = &'static InstallLocation> {
        TOOLCHAINS.iter().flat_map(|toolchain| &toolchain.locations)
    }

    #[test]
    fn no_credential_is_shared() {
        for location in locations() {
            for readable in &location.readable {
                let shared = Path::new(&location.directory).join(readable);
                for credential in CREDENTIALS {
                    assert!(!Path::new(credential).starts_with(&shared), "{credential}");
                    assert!(!shared.starts_with(credential), "{credential}");
                }
                let withheld = |file: &String| Path::new(file).starts_with(readable);
                assert!(!location.withheld.iter().any(withheld), "{}", location.directory);
            }
        }
    }

    #[test]
    fn every_program_is_readable_and_every_name_is_unique() {
        for location in locations().filter(|location| location.directory != ".local/bin") {
            for programs in &location.programs {
                let path = programs.split("<newest>").next().unwrap();
                let readable =
                    |shared: &String| shared == "." || Path::new(path).starts_with(shared);
                assert!(location.readable.iter().any(readable), "{} {path}", location.directory);
            }
        }
        let names: HashSet<_> = TOOLCHAINS.iter().map(|toolchain| &toolchain.name).collect();
        assert_eq!(names.len(), TOOLCHAINS.len());
    }
}
