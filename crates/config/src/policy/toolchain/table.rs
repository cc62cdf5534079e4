//! The table of toolchains.

use super::Programs::{At, Newest};
use super::{Place, Toolchain, Variable, When};

const fn always(name: &'static str, value: &'static str, needs: &'static str) -> Variable {
    Variable { name, value, needs, when: When::Always }
}

const fn offline(name: &'static str, value: &'static str, needs: &'static str) -> Variable {
    Variable { name, value, needs, when: When::Offline }
}

/// Every toolchain, in the order of `PATH`.
pub static TOOLCHAINS: &[Toolchain] = &[
    Toolchain {
        name: "rust",
        places: &[
            Place {
                moved_by: Some("CARGO_HOME"),
                readable: &["bin", "registry", "git"],
                programs: &[At("bin")],
                variables: &[offline("CARGO_HOME", "{}", "registry")],
                // Tokens of registries stand in all four.
                withheld: &["credentials.toml", "credentials", "config.toml", "config"],
                ..Place::at(".cargo")
            },
            Place {
                moved_by: Some("RUSTUP_HOME"),
                readable: &["toolchains", "settings.toml", "update-hashes"],
                variables: &[always("RUSTUP_HOME", "{}", "toolchains")],
                ..Place::at(".rustup")
            },
        ],
    },
    Toolchain {
        name: "node",
        places: &[
            Place {
                moved_by: Some("NVM_DIR"),
                readable: &["versions"],
                programs: &[Newest { versions: "versions/node", below: "bin" }],
                ..Place::at(".nvm")
            },
            Place {
                moved_by: Some("VOLTA_HOME"),
                readable: &["tools/image"],
                // The images themselves: Volta's shims want to write to its directory.
                programs: &[
                    Newest { versions: "tools/image/node", below: "bin" },
                    Newest { versions: "tools/image/yarn", below: "bin" },
                    Newest { versions: "tools/image/pnpm", below: "bin" },
                ],
                ..Place::at(".volta")
            },
            Place {
                moved_by: Some("FNM_DIR"),
                readable: &["node-versions"],
                programs: &[Newest { versions: "node-versions", below: "installation/bin" }],
                ..Place::at(".local/share/fnm")
            },
            Place {
                readable: &["node-versions"],
                programs: &[Newest { versions: "node-versions", below: "installation/bin" }],
                ..Place::at(".fnm")
            },
        ],
    },
    Toolchain {
        name: "python",
        places: &[
            Place {
                moved_by: Some("PYENV_ROOT"),
                // The shims are scripts that choose a version by the project's `.python-version`.
                readable: &["bin", "libexec", "plugins", "pyenv.d", "shims", "version", "versions"],
                programs: &[At("shims"), At("bin")],
                variables: &[always("PYENV_ROOT", "{}", "shims")],
                ..Place::at(".pyenv")
            },
            Place {
                moved_by: Some("UV_PYTHON_INSTALL_DIR"),
                readable: &["."],
                variables: &[always("UV_PYTHON_INSTALL_DIR", "{}", ".")],
                ..Place::at(".local/share/uv/python")
            },
            Place {
                // The directory holds whatever its owner put there; only these two are shared.
                readable: &["uv", "uvx"],
                programs: &[At(".")],
                ..Place::at(".local/bin")
            },
        ],
    },
    Toolchain {
        name: "go",
        places: &[
            Place {
                readable: &["."],
                programs: &[Newest { versions: ".", below: "bin" }],
                ..Place::at("sdk")
            },
            Place { readable: &["."], programs: &[At("bin")], ..Place::at("/usr/local/go") },
            Place {
                moved_by: Some("GOPATH"),
                readable: &["bin", "pkg/mod"],
                programs: &[At("bin")],
                variables: &[offline("GOMODCACHE", "{}/pkg/mod", "pkg/mod")],
                ..Place::at("go")
            },
        ],
    },
    Toolchain {
        name: "java",
        places: &[
            Place {
                moved_by: Some("SDKMAN_CANDIDATES_DIR"),
                readable: &["."],
                programs: &[
                    At("java/current/bin"),
                    At("maven/current/bin"),
                    At("gradle/current/bin"),
                    At("kotlin/current/bin"),
                ],
                variables: &[always("JAVA_HOME", "{}/java/current", "java/current")],
                ..Place::at(".sdkman/candidates")
            },
            Place {
                readable: &["repository"],
                // A repository behind the workspace's own, which Maven 3.9 only reads.
                variables: &[always(
                    "MAVEN_ARGS",
                    "-Dmaven.repo.local.tail={}/repository",
                    "repository",
                )],
                withheld: &["settings.xml", "settings-security.xml"],
                ..Place::at(".m2")
            },
            Place {
                moved_by: Some("GRADLE_USER_HOME"),
                readable: &["caches/modules-2"],
                variables: &[always("GRADLE_RO_DEP_CACHE", "{}/caches", "caches/modules-2")],
                withheld: &["gradle.properties"],
                ..Place::at(".gradle")
            },
        ],
    },
    Toolchain {
        name: "ruby",
        places: &[Place {
            moved_by: Some("RBENV_ROOT"),
            readable: &["bin", "libexec", "plugins", "shims", "version", "versions"],
            programs: &[At("shims"), At("bin")],
            variables: &[always("RBENV_ROOT", "{}", "shims")],
            ..Place::at(".rbenv")
        }],
    },
    Toolchain {
        name: "deno",
        places: &[Place { readable: &["bin"], programs: &[At("bin")], ..Place::at(".deno") }],
    },
    Toolchain {
        name: "bun",
        places: &[Place {
            moved_by: Some("BUN_INSTALL"),
            readable: &["bin"],
            programs: &[At("bin")],
            ..Place::at(".bun")
        }],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::path::Path;

    /// Where tools keep passwords, tokens and keys, below a home directory.
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

    fn places() -> impl Iterator<Item = &'static Place> {
        TOOLCHAINS.iter().flat_map(|toolchain| toolchain.places)
    }

    #[test]
    fn no_credential_is_shared() {
        for place in places() {
            for readable in place.readable {
                let shared = Path::new(place.directory).join(readable);
                for credential in CREDENTIALS {
                    assert!(!Path::new(credential).starts_with(&shared), "{credential}");
                    assert!(!shared.starts_with(credential), "{credential}");
                }
                let withheld = |file: &&str| Path::new(file).starts_with(readable);
                assert!(!place.withheld.iter().any(withheld), "{}", place.directory);
            }
        }
    }

    #[test]
    fn every_program_is_readable_and_every_name_is_unique() {
        for place in places().filter(|place| place.directory != ".local/bin") {
            for programs in place.programs {
                let (At(path) | Newest { versions: path, .. }) = programs;
                let readable =
                    |shared: &&str| *shared == "." || Path::new(path).starts_with(shared);
                assert!(place.readable.iter().any(readable), "{} {path}", place.directory);
            }
        }
        let names: HashSet<_> = TOOLCHAINS.iter().map(|toolchain| toolchain.name).collect();
        assert_eq!(names.len(), TOOLCHAINS.len());
    }
}
