//! The one way for a test to say that it cannot run here.
//!
//! A skip that only prints a line looks like a pass. So there are two kinds, and both count:
//!
//! - [`unavailable`]: the machine lacks a program, a kernel feature or a file. Where `CI` is set this fails
//!   the test, because `make test` installs everything that tests need and a runner that cannot is broken.
//! - [`needs_user`]: the test is about root, or about an ordinary user, and the other one runs it.
//!   `scripts/test-as-user` repeats the packages it lists as an ordinary user; a test that needs one in a
//!   package that is not listed would never run, and fails.
//!
//! Every skip is appended to the file that `CARREL_SKIPS` names; `make test` sets it and prints the count.
#![forbid(unsafe_code)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// A user that a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The administrator: mounts, ownership, device nodes.
    Root,
    /// A user whom permissions deny something.
    Ordinary,
}

/// Records that something is missing on this machine; panics where `CI` is set.
///
/// # Panics
/// In CI, where every test has to run.
#[track_caller]
pub fn unavailable(what: &str) {
    assert!(!is_set("CI"), "this test cannot run here, and in CI it must: {what}");
    record(what);
}

/// Returns whether the test runs as that user, and records a skip otherwise. `manifest` is the caller's
/// `env!("CARGO_MANIFEST_DIR")`.
///
/// # Panics
/// Where a test needs an ordinary user, and `scripts/test-as-user` does not list its package.
#[track_caller]
pub fn needs_user(user: User, manifest: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if is_root == (user == User::Root) {
        return true;
    }
    match user {
        User::Root => record("needs root"),
        User::Ordinary => {
            assert!(is_repeated(manifest), "{manifest} is not in scripts/test-as-user");
            record("needs an ordinary user; `make test-as-user` runs it");
        }
    }
    false
}

#[expect(clippy::disallowed_methods, reason = "a script of the repository, not of a workspace")]
fn is_repeated(manifest: &str) -> bool {
    let manifest = Path::new(manifest);
    let script = manifest.ancestors().map(|directory| directory.join("scripts/test-as-user"));
    let Some(script) = script.into_iter().find(|path| path.exists()) else { return false };
    let package = manifest.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(script).unwrap_or_default();
    text.split_whitespace().any(|word| word.trim_end_matches(';') == format!("carrel-{package}"))
}

#[track_caller]
#[expect(clippy::print_stderr, clippy::disallowed_methods, reason = "the output of a test")]
fn record(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED {test} ({}): {reason}\n", std::panic::Location::caller());
    eprint!("{line}");
    let Some(file) = std::env::var_os("CARREL_SKIPS") else { return };
    let file = OpenOptions::new().create(true).append(true).open(file);
    // One write for each line, so that lines of tests that run side by side stay whole.
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("the skip could not be recorded: {error}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a variable of the test runner")]
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Ends the calling test unless it runs as that user: `needs!(Root)` or `needs!(Ordinary)`.
#[macro_export]
macro_rules! needs {
    ($user:ident) => {
        if !$crate::needs_user($crate::User::$user, env!("CARGO_MANIFEST_DIR")) {
            return;
        }
    };
}
