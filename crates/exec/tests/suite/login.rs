//! Hooks behind a login shell.

use std::fs;
use std::path::Path;

use carrel_domain::Secret;
use carrel_exec::{ExitStatus, HookCommand, Outcome};
use pretty_assertions::assert_eq;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{PATH, directory, spawner, stdout, variable};

const SECRET: &str = "super-secret-value";

const PROFILE: &str = "
    export TOKEN=super-secret-value
    export CLONE_URL=https://x:super-secret-value@example.org
    export SERVER_TOKEN=something-else
    export HARMLESS=fine
    set -- a b c
    cd /
    exec </dev/zero 3>/dev/null
    echo from the profile";

async fn run_hook(home: &Path, workspace: &TempDir, script: &str) -> Outcome {
    let hook = HookCommand {
        script: script.to_owned(),
        environment: vec![variable("PATH", PATH), variable("HOME", home.to_str().unwrap())],
        directory: directory(workspace.path()),
        secrets: vec![Secret::new(SECRET)],
        removed: vec!["SERVER_TOKEN".to_owned()],
    };
    let spawner = spawner();
    let (spec, receipt) = hook.into_spec(&spawner).unwrap();
    let outcome = spawner.run(spec, &CancellationToken::new()).await.unwrap();
    let exits = fs::read_to_string(home.join(".profile")).is_ok_and(|text| text.contains("exit"));
    assert_eq!(receipt.script_was_reached().unwrap(), !exits);
    outcome
}

#[tokio::test]
async fn a_profile_that_exits_is_told_from_a_script_that_ran() {
    let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(home.path().join(".profile"), "exit 0").unwrap();
    let outcome = run_hook(home.path(), &workspace, "echo ran").await;
    assert_eq!((stdout(&outcome).as_str(), outcome.end), ("", ExitStatus::Exited(0)));
}

#[tokio::test]
async fn a_hook_sees_what_the_profile_exports_except_secrets() {
    let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(home.path().join(".profile"), PROFILE).unwrap();
    let script = "
        echo ${HARMLESS-unset} ${TOKEN-unset} ${CLONE_URL-unset} ${SERVER_TOKEN-unset}
        grep -c '[s]uper-secret' /proc/$$/environ /proc/$$/cmdline
        pwd";
    let outcome = run_hook(home.path(), &workspace, script).await;
    let cwd = workspace.path().canonicalize().unwrap();
    let expected = format!(
        "from the profile\nfine unset unset unset\n/proc/PID/environ:0\n/proc/PID/cmdline:0\n{}\n",
        cwd.display()
    );
    let text = stdout(&outcome);
    let pid = text.split('/').nth(2).unwrap();
    assert_eq!(text.replace(&format!("/{pid}/"), "/PID/"), expected);
    assert_eq!(outcome.end, ExitStatus::Exited(0));
}

#[tokio::test]
async fn a_hook_cannot_read_what_its_helper_was_told() {
    let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script = "ls /proc/$$/fd | grep -E '^10[01]$'; exit 0";
    let outcome = run_hook(home.path(), &workspace, script).await;
    assert_eq!((stdout(&outcome).as_str(), outcome.end), ("", ExitStatus::Exited(0)));
}

#[tokio::test]
async fn what_the_profile_left_running_finds_no_secret_in_its_descriptor() {
    let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let profile = "{
            until [ -e \"$HOME/go\" ]; do sleep 0.01; done
            wc -c < /proc/self/fd/100
            : > \"$HOME/done\"
        } &";
    fs::write(home.path().join(".profile"), profile).unwrap();
    let script = ": > \"$HOME/go\"; until [ -e \"$HOME/done\" ]; do sleep 0.01; done";
    let outcome = run_hook(home.path(), &workspace, script).await;
    assert_eq!((stdout(&outcome).as_str(), outcome.end), ("0\n", ExitStatus::Exited(0)));
}

#[tokio::test]
async fn a_script_that_begins_with_a_dash_is_no_option() {
    let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outcome = run_hook(home.path(), &workspace, "-e; exit 3").await;
    assert_eq!(outcome.end, ExitStatus::Exited(3));
}

#[tokio::test]
async fn a_hook_reads_the_end_of_file_and_reports_its_status() {
    let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outcome = run_hook(home.path(), &workspace, "cat; exit 5").await;
    assert_eq!((stdout(&outcome).as_str(), outcome.end), ("", ExitStatus::Exited(5)));
}
