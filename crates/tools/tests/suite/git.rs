//! Git through the tools.

/// Programs that a repository configures do not run.
mod planted;
/// Clone, fetch, pull, push; credentials.
mod remotes;
/// Operations on one repository.
mod work;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

/// Runs the git of the host, which obeys the repository.
pub(crate) fn host(directory: &Path, words: &[&str]) -> Output {
    let mut git = Command::new("git");
    git.current_dir(directory).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    git.env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    git.args([
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.com",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "safe.directory=*",
    ]);
    git.args(words).output().unwrap()
}

/// Runs the git of the host, which has to succeed.
pub(crate) fn sure(directory: &Path, words: &[&str]) -> String {
    let output = host(directory, words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "git {words:?}: {}", text(&output.stderr));
    text(&output.stdout).trim_end().to_owned()
}

/// Makes a repository with one commit in `main`.
pub(crate) fn begin(top: &Path) {
    let main = top.join("main");
    sure(&main, &["init", "-q", "-b", "main"]);
    std::fs::write(main.join("file"), "one\ntwo\nthree\n").unwrap();
    sure(&main, &["add", "file"]);
    sure(&main, &["commit", "-q", "-m", "first"]);
}

/// A workspace that is a repository with one commit.
pub(crate) fn repository() -> TestEnvironment {
    TestEnvironment::with(Setting { prepare: begin, ..Setting::default() })
}

pub(crate) fn call(operation: &str, args: &str) -> Value {
    json!({ "operation": operation, "args": args })
}
