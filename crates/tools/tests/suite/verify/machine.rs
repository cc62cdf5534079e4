//! Machines with and without the tools of a language.

use std::path::{Path, PathBuf};

use carrel_config::{Environment, OperatorPolicy};

use crate::test_environment::{Setting, TestEnvironment};

/// Returns where `scripts/install-test-tools` puts the tools for Python projects.
pub(super) fn test_tools() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let tools = target.join("test-tools");
    assert!(
        tools.join("python/installed.txt").is_file(),
        "there are no tools for Python projects in {}: run scripts/install-test-tools",
        tools.display()
    );
    // The sandbox shows directories by their real paths.
    std::fs::canonicalize(tools).unwrap()
}

/// A machine on which the operator shares the tools for Python projects.
pub(crate) fn with_python_tools() -> TestEnvironment {
    let python = test_tools().join("python");
    with(OperatorPolicy {
        path: vec![python.join("bin")],
        readable: vec![python],
        ..OperatorPolicy::default()
    })
}

/// A machine with Go.
pub(super) fn with_go() -> TestEnvironment {
    let found = ["/usr/local/go/bin/go", "/usr/local/bin/go", "/usr/bin/go"];
    assert!(
        found.iter().any(|path| Path::new(path).exists()),
        "there is no Go in {found:?}: run scripts/install-test-tools"
    );
    TestEnvironment::new()
}

/// A machine on which no program is found by its name.
pub(crate) fn bare() -> TestEnvironment {
    with(OperatorPolicy {
        environment: Environment::from_pairs([("PATH", "/nonexistent")]),
        ..OperatorPolicy::default()
    })
}

fn with(policy: OperatorPolicy) -> TestEnvironment {
    TestEnvironment::with(Setting { policy, ..Setting::default() })
}
