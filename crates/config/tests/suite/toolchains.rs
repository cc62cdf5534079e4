#![expect(clippy::disallowed_methods, reason = "the tests lay out their own files")]

use std::fs;
use std::path::{Path, PathBuf};

use carrel_config::{DetectedToolchains, Environment, OperatorPolicy};
use carrel_domain::Network;
use pretty_assertions::assert_eq;
use tempfile::TempDir;

/// The one toolchain that may be found outside the home directory.
const OUTSIDE: &str = "/usr/local/go";

/// A home directory; names that end with `/` are directories.
fn home(names: &[&str]) -> TempDir {
    let home = tempfile::tempdir().expect("a directory");
    for name in names {
        let path = home.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).expect("a directory");
        } else {
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, "").expect("a file");
        }
    }
    home
}

fn found(text: &str, home: &Path, more: &[(&str, &Path)]) -> DetectedToolchains {
    let pairs = [("HOME", home)].into_iter().chain(more.iter().copied());
    let environment = Environment::from_pairs(pairs);
    let file = Path::new("/etc/carrel/policy.toml");
    let (policy, _) = OperatorPolicy::parse(text.as_bytes(), file, &environment).expect(text);
    policy.detect_toolchains(&environment)
}

/// Returns paths below the home directory as text.
fn below(home: &Path, paths: &[PathBuf]) -> Vec<String> {
    let inside = paths.iter().filter(|path| !path.starts_with(OUTSIDE));
    inside.map(|path| path.strip_prefix(home).expect("below home").display().to_string()).collect()
}

fn variables(found: &DetectedToolchains, network: Network, home: &Path) -> Vec<String> {
    let home = home.display().to_string();
    let shown = |(name, value): (&str, &str)| format!("{name}={}", value.replace(&home, "~"));
    found.environment(network).map(shown).collect()
}

#[test]
fn a_rust_toolchain_is_shared_without_its_tokens() {
    let home = home(&[
        ".cargo/bin/cargo",
        ".cargo/registry/",
        ".cargo/config.toml",
        ".cargo/credentials.toml",
        ".rustup/toolchains/",
        ".rustup/settings.toml",
        ".ssh/id_ed25519",
    ]);
    let found = found("toolchains = ['rust']", home.path(), &[]);
    assert_eq!((&found.names[..], &found.missing[..]), (&["rust"][..], &[][..]));
    assert_eq!(
        below(home.path(), &found.readable),
        [".cargo/bin", ".cargo/registry", ".rustup/toolchains", ".rustup/settings.toml"]
    );
    assert_eq!(below(home.path(), &found.path), [".cargo/bin"]);
    assert_eq!(
        below(home.path(), &found.withheld),
        [".cargo/credentials.toml", ".cargo/config.toml"]
    );
    let offline = ["CARGO_HOME=~/.cargo", "RUSTUP_HOME=~/.rustup"];
    assert_eq!(variables(&found, Network::None, home.path()), offline);
    assert_eq!(variables(&found, Network::Loopback, home.path()), offline);
    assert_eq!(variables(&found, Network::Full, home.path()), ["RUSTUP_HOME=~/.rustup"]);
}

#[test]
fn the_newest_version_comes_to_the_search_path() {
    let home = home(&[
        ".nvm/versions/node/v9.11.2/bin/",
        ".nvm/versions/node/v20.9.0/bin/",
        ".nvm/versions/node/v18.20.1/bin/",
        ".nvm/versions/node/latest/bin/",
        ".local/share/fnm/node-versions/v22.1.0/installation/bin/",
        "sdk/go1.9.7/bin/",
        "sdk/go1.22.0/bin/",
        "sdk/go1.23rc1/bin/",
    ]);
    let found = found("toolchains = ['node', 'go']", home.path(), &[]);
    assert_eq!(
        below(home.path(), &found.path),
        [
            ".nvm/versions/node/v20.9.0/bin",
            ".local/share/fnm/node-versions/v22.1.0/installation/bin",
            "sdk/go1.22.0/bin",
        ]
    );
}

#[test]
fn everything_that_is_there_is_found_and_nothing_else() {
    let home = home(&[
        ".pyenv/shims/python",
        ".pyenv/versions/3.12.1/bin/",
        ".pyenv/.git/config",
        ".local/bin/uv",
        ".local/bin/deploy-with-password",
        "go/pkg/mod/",
        ".sdkman/candidates/java/current/bin/",
        ".m2/repository/",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
        ".rbenv/",
        ".bun/bin/",
        ".npmrc",
    ]);
    let found = found("", home.path(), &[]);
    assert_eq!(found.names, ["python", "go", "java", "bun"]);
    assert_eq!(found.missing, [""; 0]);
    assert_eq!(
        below(home.path(), &found.readable),
        [
            ".pyenv/shims",
            ".pyenv/versions",
            ".local/bin/uv",
            "go/pkg/mod",
            ".sdkman/candidates",
            ".m2/repository",
            ".bun/bin",
        ]
    );
    assert_eq!(
        below(home.path(), &found.path),
        [".pyenv/shims", ".local/bin", ".sdkman/candidates/java/current/bin", ".bun/bin"]
    );
    assert_eq!(below(home.path(), &found.withheld), [".m2/settings.xml"]);
    assert_eq!(
        variables(&found, Network::None, home.path()),
        [
            "PYENV_ROOT=~/.pyenv",
            "GOMODCACHE=~/go/pkg/mod",
            "JAVA_HOME=~/.sdkman/candidates/java/current",
            "MAVEN_ARGS=-Dmaven.repo.local.tail=~/.m2/repository",
        ]
    );
}

#[test]
fn the_operators_variables_move_a_toolchain_but_never_share_the_home_directory() {
    let home = home(&[".cargo/bin/", "moved/bin/", "moved/registry/", "python/"]);
    let moved = home.path().join("moved");
    let found_with = |name, path: &Path| {
        let found = found("toolchains = ['rust', 'python']", home.path(), &[(name, path)]);
        below(home.path(), &found.readable)
    };
    assert_eq!(found_with("CARGO_HOME", &moved), ["moved/bin", "moved/registry"]);
    for ignored in ["", "moved"] {
        assert_eq!(found_with("CARGO_HOME", Path::new(ignored)), [".cargo/bin"], "{ignored}");
    }
    let python = home.path().join("python");
    assert_eq!(found_with("UV_PYTHON_INSTALL_DIR", &python), [".cargo/bin", "python"]);
    for too_much in [home.path(), home.path().parent().unwrap(), Path::new("/")] {
        assert_eq!(found_with("UV_PYTHON_INSTALL_DIR", too_much), [".cargo/bin"]);
    }
    assert_eq!(found_with("UV_PYTHON_INSTALL_DIR", Path::new("/proc")), [".cargo/bin"]);
}

#[test]
fn a_toolchain_that_is_listed_and_missing_is_named() {
    let home = home(&[".deno/bin/"]);
    let found = found("toolchains = ['deno', 'ruby']", home.path(), &[]);
    assert_eq!((&found.names[..], &found.missing[..]), (&["deno"][..], &["ruby"][..]));
    let none = self::found("toolchains = []", home.path(), &[]);
    assert_eq!(none, DetectedToolchains::default());
}
