//! Skips count, and in CI a missing requirement fails. Variables and users differ from process to process,
//! so each case is this test program, started again for a test that is ignored otherwise.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests start themselves")]

use std::process::{Command, Output};

#[test]
#[ignore = "started by the tests below"]
fn lacks_something() {
    carrel_skip::unavailable("unobtainium");
}

#[test]
#[ignore = "started by the tests below"]
fn needs_the_other_user() {
    let manifest = std::env::var("MANIFEST").unwrap();
    let user = if rustix::process::geteuid().is_root() {
        carrel_skip::User::Ordinary
    } else {
        carrel_skip::User::Root
    };
    assert!(!carrel_skip::needs_user(user, &manifest));
}

fn start(test: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", test]);
    command.env_remove("CI").env_remove("CARREL_SKIPS").envs(variables.iter().copied());
    command.output().unwrap()
}

#[test]
fn a_missing_requirement_is_recorded_and_fails_in_ci() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("skips.txt");
    let skips = file.to_str().unwrap();
    let elsewhere = start("lacks_something", &[("CARREL_SKIPS", skips)]);
    assert!(elsewhere.status.success());
    let line = std::fs::read_to_string(&file).unwrap();
    assert!(
        line.starts_with("SKIPPED lacks_something (") && line.ends_with(": unobtainium\n"),
        "{line}"
    );
    let in_ci = start("lacks_something", &[("CI", "true"), ("CARREL_SKIPS", skips)]);
    assert!(!in_ci.status.success());
    assert!(String::from_utf8_lossy(&in_ci.stderr).contains("in CI it must: unobtainium"));
}

#[test]
fn a_test_for_the_other_user_is_skipped_only_where_that_user_runs_it() {
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/");
    let listed =
        start("needs_the_other_user", &[("CI", "true"), ("MANIFEST", &format!("{crates}fsroot"))]);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    if rustix::process::geteuid().is_root() {
        let unlisted = start("needs_the_other_user", &[("MANIFEST", &format!("{crates}edit"))]);
        assert!(!unlisted.status.success());
        assert!(
            String::from_utf8_lossy(&unlisted.stderr).contains("is not in scripts/test-as-user")
        );
    }
}
