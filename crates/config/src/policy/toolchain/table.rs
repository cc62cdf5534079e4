//! The table of toolchains.

use super::ProgramDirectory::{At, Newest};
use super::{InstallLocation, SetWhen, Toolchain, ToolchainVariable};

const fn always(name: &'static str, value: &'static str, needs: &'static str) -> ToolchainVariable {
    ToolchainVariable { name, value, needs, when: SetWhen::Always }
}

const fn offline(
    name: &'static str,
    value: &'static str,
    needs: &'static str,
) -> ToolchainVariable {
    ToolchainVariable { name, value, needs, when: SetWhen::Offline }
}

/// Every toolchain, in the order of `PATH`.
pub static TOOLCHAINS: &[Toolchain] = &[
    Toolchain {
        name: "rust",
        locations: &[
            InstallLocation {
                moved_by: Some("CARGO_HOME"),
                readable: &["bin", "registry", "git"],
                programs: &[At("bin")],
                variables: &[offline("CARGO_HOME", "{}", "registry")],
                // Tokens of registries stand in all four.
                withheld: &["credentials.toml", "credentials", "config.toml", "config"],
                ..InstallLocation::at(".cargo")
            },
            InstallLocation {
                moved_by: Some("RUSTUP_HOME"),
                readable: &["toolchains", "settings.toml", "update-hashes"],
                variables: &[always("RUSTUP_HOME", "{}", "toolchains")],
                ..InstallLocation::at(".rustup")
            },
        ],
    },
    Toolchain {
        name: "node",
        locations: &[
            InstallLocation {
                moved_by: Some("NVM_DIR"),
                readable: &["versions"],
                programs: &[Newest { versions: "versions/node", below: "bin" }],
                ..InstallLocation::at(".nvm")
            },
            InstallLocation {
                moved_by: Some("VOLTA_HOME"),
                readable: &["tools/image"],
                // The images themselves: Volta's shims want to write to its directory.
                programs: &[
                    Newest { versions: "tools/image/node", below: "bin" },
                    Newest { versions: "tools/image/yarn", below: "bin" },
                    Newest { versions: "tools/image/pnpm", below: "bin" },
                ],
                ..InstallLocation::at(".volta")
            },
            InstallLocation {
                moved_by: Some("FNM_DIR"),
                readable: &["node-versions"],
                programs: &[Newest { versions: "node-versions", below: "installation/bin" }],
                ..InstallLocation::at(".local/share/fnm")
            },
            InstallLocation {
                readable: &["node-versions"],
                programs: &[Newest { versions: "node-versions", below: "installation/bin" }],
                ..InstallLocation::at(".fnm")
            },
        ],
    },
    Toolchain {
        name: "python",
        locations: &[
            InstallLocation {
                moved_by: Some("PYENV_ROOT"),
                // The shims are scripts that choose a version by the project's `.python-version`.
                readable: &["bin", "libexec", "plugins", "pyenv.d", "shims", "version", "versions"],
                programs: &[At("shims"), At("bin")],
                variables: &[always("PYENV_ROOT", "{}", "shims")],
                ..InstallLocation::at(".pyenv")
            },
            InstallLocation {
                moved_by: Some("UV_PYTHON_INSTALL_DIR"),
                readable: &["."],
                variables: &[always("UV_PYTHON_INSTALL_DIR", "{}", ".")],
                ..InstallLocation::at(".local/share/uv/python")
            },
            InstallLocation {
                // The directory holds any program of the operator; only these two are shared.
                readable: &["uv", "uvx"],
                programs: &[At(".")],
                ..InstallLocation::at(".local/bin")
            },
        ],
    },
    Toolchain {
        name: "go",
        locations: &[
            InstallLocation {
                readable: &["."],
                programs: &[Newest { versions: ".", below: "bin" }],
                ..InstallLocation::at("sdk")
            },
            InstallLocation {
                readable: &["."],
                programs: &[At("bin")],
                ..InstallLocation::at("/usr/local/go")
            },
            InstallLocation {
                moved_by: Some("GOPATH"),
                readable: &["bin", "pkg/mod"],
                programs: &[At("bin")],
                variables: &[offline("GOMODCACHE", "{}/pkg/mod", "pkg/mod")],
                ..InstallLocation::at("go")
            },
        ],
    },
    Toolchain {
        name: "java",
        locations: &[
            InstallLocation {
                moved_by: Some("SDKMAN_CANDIDATES_DIR"),
                readable: &["."],
                programs: &[
                    At("java/current/bin"),
                    At("maven/current/bin"),
                    At("gradle/current/bin"),
                    At("kotlin/current/bin"),
                ],
                variables: &[always("JAVA_HOME", "{}/java/current", "java/current")],
                ..InstallLocation::at(".sdkman/candidates")
            },
            InstallLocation {
                readable: &["repository"],
                // A repository behind the workspace's own, which Maven 3.9 only reads.
                variables: &[always(
                    "MAVEN_ARGS",
                    "-Dmaven.repo.local.tail={}/repository",
                    "repository",
                )],
                withheld: &["settings.xml", "settings-security.xml"],
                ..InstallLocation::at(".m2")
            },
            InstallLocation {
                moved_by: Some("GRADLE_USER_HOME"),
                readable: &["caches/modules-2"],
                variables: &[always("GRADLE_RO_DEP_CACHE", "{}/caches", "caches/modules-2")],
                withheld: &["gradle.properties"],
                ..InstallLocation::at(".gradle")
            },
        ],
    },
    Toolchain {
        name: "ruby",
        locations: &[InstallLocation {
            moved_by: Some("RBENV_ROOT"),
            readable: &["bin", "libexec", "plugins", "shims", "version", "versions"],
            programs: &[At("shims"), At("bin")],
            variables: &[always("RBENV_ROOT", "{}", "shims")],
            ..InstallLocation::at(".rbenv")
        }],
    },
    Toolchain {
        name: "deno",
        locations: &[InstallLocation {
            readable: &["bin"],
            programs: &[At("bin")],
            ..InstallLocation::at(".deno")
        }],
    },
    Toolchain {
        name: "bun",
        locations: &[InstallLocation {
            moved_by: Some("BUN_INSTALL"),
            readable: &["bin"],
            programs: &[At("bin")],
            ..InstallLocation::at(".bun")
        }],
    },
];

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
        TOOLCHAINS.iter().flat_map(|toolchain| toolchain.locations)
    }

    #[test]
    fn no_credential_is_shared() {
        for location in locations() {
            for readable in location.readable {
                let shared = Path::new(location.directory).join(readable);
                for credential in CREDENTIALS {
                    assert!(!Path::new(credential).starts_with(&shared), "{credential}");
                    assert!(!shared.starts_with(credential), "{credential}");
                }
                let withheld = |file: &&str| Path::new(file).starts_with(readable);
                assert!(!location.withheld.iter().any(withheld), "{}", location.directory);
            }
        }
    }

    #[test]
    fn every_program_is_readable_and_every_name_is_unique() {
        for location in locations().filter(|location| location.directory != ".local/bin") {
            for programs in location.programs {
                let (At(path) | Newest { versions: path, .. }) = programs;
                let readable =
                    |shared: &&str| *shared == "." || Path::new(path).starts_with(shared);
                assert!(location.readable.iter().any(readable), "{} {path}", location.directory);
            }
        }
        let names: HashSet<_> = TOOLCHAINS.iter().map(|toolchain| toolchain.name).collect();
        assert_eq!(names.len(), TOOLCHAINS.len());
    }
}
