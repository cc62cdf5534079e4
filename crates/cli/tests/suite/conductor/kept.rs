//! Work that is saved nowhere else when its issue is closed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::ConductorFixture;
use crate::Run;

/// A clone of a repository beside the workspaces, and hooks that say that they ran.
const HOOKS: &str = r"hooks:
  after_create: |
    set -e
    test -d OUTSIDE/origin.git || git init -q --bare -b main OUTSIDE/origin.git
    git clone -q OUTSIDE/origin.git . 2>/dev/null
    git config user.name Example && git config user.email example@localhost
  before_remove: echo $CARREL_ISSUE_IDENTIFIER >> OUTSIDE/removed
";

/// An agent that commits, and leaves more in the work tree. The first turn tells when it is done.
fn agent(more: &str) -> String {
    format!(
        "agent:\n  kind: command\n  sandbox: {{writable: [OUTSIDE]}}\n  command: |\n    set -e\n    echo committed > committed && git add committed && git commit -q -m work\n    {more}\n    echo ready >> OUTSIDE/ready\n    sleep 1000\n"
    )
}

const UNCOMMITTED: &str =
    "mkdir -p deep; echo uncommitted > deep/new; chmod 750 deep/new; ln -s deep/new link";

fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(arguments).env("HOME", "/nonexistent");
    let run = Run::of(command);
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    run.stdout
}

/// Works on an issue until its agent is ready, closes it, and waits until its workspace is gone.
fn close(fixture: &ConductorFixture) -> String {
    fixture.issue("one");
    let running = fixture.start();
    running.until("the agent has worked", || !fixture.notes("ready").is_empty());
    fixture.shift("CAR-1", "Done");
    running.until("the workspace is gone", || !fixture.workspace("CAR-1").exists());
    running.until("the issue is forgotten", || running.log().contains("INFO Cleaned"));
    let log = running.log();
    assert_eq!(running.end(), 0);
    log
}

fn kept(fixture: &ConductorFixture) -> Vec<Value> {
    fixture.fixture.json(&["ls", "--kept"])["kept"].as_array().unwrap().clone()
}

#[test]
fn closing_an_issue_keeps_work_that_was_not_pushed() {
    let fixture = ConductorFixture::with(&format!("{HOOKS}{}", agent(UNCOMMITTED)));
    let log = close(&fixture);
    assert_eq!(fixture.notes("removed"), "CAR-1\n", "the hook ran");
    assert_eq!(fixture.fixture.json(&["ls"])["workspaces"], json!([]), "the key is free");
    let kept = kept(&fixture);
    let [work] = kept.as_slice() else { panic!("{kept:?}") };
    assert_eq!((&work["identifier"], &work["key"]), (&json!("CAR-1"), &json!("CAR-1")));
    let reasons = work["reasons"].to_string();
    assert!(reasons.contains("changed files") && reasons.contains("on no remote"), "{reasons}");
    assert!(work["usage_bytes"].as_u64().unwrap() > 0 && work["until"].is_string(), "{work}");
    let name = work["name"].as_str().unwrap();
    assert!(log.contains(&format!("kept: {name}")), "{log}");
    let table = fixture.fixture.run(&["ls", "--kept"]).stdout;
    assert!(table.contains(name) && table.contains("13d"), "{table}");

    let restored = fixture.fixture.json(&["restore", "CAR-1"]);
    assert_eq!(restored["restored"], true);
    let workspace = fixture.workspace("CAR-1");
    assert_eq!(git(&workspace, &["log", "--format=%s"]), "work\n");
    assert_eq!(git(&workspace, &["status", "--porcelain"]), "?? deep/\n?? link\n");
    let mode = std::fs::metadata(workspace.join("deep/new")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert_eq!(std::fs::read_link(workspace.join("link")).unwrap(), Path::new("deep/new"));
    assert_eq!(fixture.fixture.json(&["ls", "--kept"])["kept"], json!([]));
    assert_eq!(fixture.fixture.json(&["show", "CAR-1"])["state"], "ready");
}

#[test]
fn closing_an_issue_whose_work_is_pushed_keeps_nothing() {
    let push = "echo '*.log' > .git/info/exclude; date > ignored.log; git push -q origin HEAD";
    let fixture = ConductorFixture::with(&format!("{HOOKS}{}", agent(push)));
    let log = close(&fixture);
    assert_eq!(kept(&fixture), Vec::<Value>::new(), "{log}");
    assert_eq!(fixture.notes("removed"), "CAR-1\n");
}

#[test]
fn a_hook_that_pushes_before_the_removal_saves_the_work() {
    let hooks = HOOKS.replace("before_remove: ", "before_remove: git push -q origin HEAD; ");
    let fixture = ConductorFixture::with(&format!("{hooks}{}", agent("true")));
    let log = close(&fixture);
    assert_eq!(kept(&fixture), Vec::<Value>::new(), "{log}");
}

#[test]
fn an_issue_that_was_closed_meanwhile_keeps_its_work_at_the_next_start() {
    let fixture = ConductorFixture::with(&format!("{HOOKS}{}", agent(UNCOMMITTED)));
    fixture.issue("one");
    let running = fixture.start();
    running.until("the agent has worked", || !fixture.notes("ready").is_empty());
    assert_eq!(running.end(), 0);
    fixture.shift("CAR-1", "Done");
    assert_eq!(fixture.once().code, 0);
    assert!(!fixture.workspace("CAR-1").exists());
    assert_eq!(kept(&fixture).len(), 1);
}

#[test]
fn work_can_be_kept_for_no_time_at_all() {
    let fixture = ConductorFixture::with(&format!("{HOOKS}{}", agent(UNCOMMITTED)));
    let file = fixture.fixture.path("WORKFLOW.md");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("workspace: {root:", "workspace: {keep_unsaved: 0, root:"))
        .unwrap();
    close(&fixture);
    assert_eq!(kept(&fixture), Vec::<Value>::new());
}

#[test]
fn the_question_for_unsaved_work_runs_nothing_of_the_repository() {
    let traps = r"    echo '* filter=evil' > .git/info/attributes
    for key in filter.evil.clean filter.evil.process core.fsmonitor core.sshCommand core.pager; do
      git config $key 'touch OUTSIDE/../evil; cat'
    done
    git config core.hooksPath $PWD/hooks; mkdir hooks
    printf '#!/bin/sh\ntouch OUTSIDE/../evil\n' > hooks/post-index-change; chmod +x hooks/*
  before_remove:";
    let hooks = HOOKS.replace("  before_remove:", traps);
    let command = "agent:\n  kind: command\n  sandbox: {writable: [OUTSIDE]}\n  command: |\n    echo work > tracked; ln -s / root; ln -s loop loop; touch \"$(printf 'odd\\n\\377')\"\n    echo ready >> OUTSIDE/ready; sleep 1000\n";
    let fixture = ConductorFixture::with(&format!("{hooks}{command}"));
    close(&fixture);
    assert!(!fixture.fixture.path("evil").exists(), "the repository's own command ran");
    assert_eq!(kept(&fixture).len(), 1);
    fixture.fixture.json(&["restore", "CAR-1"]);
    assert_eq!(
        std::fs::read_to_string(fixture.workspace("CAR-1").join("tracked")).unwrap(),
        "work\n"
    );
}

#[test]
fn kept_work_is_dropped_by_name_and_restored_under_another_identifier() {
    let fixture = ConductorFixture::with(&format!("{HOOKS}{}", agent(UNCOMMITTED)));
    close(&fixture);
    let name = kept(&fixture)[0]["name"].as_str().unwrap().to_owned();
    fixture.fixture.json(&["create", "CAR-1"]);
    let taken = fixture.fixture.run(&["restore", "CAR-1", "--json"]).error();
    assert_eq!(taken["code"], "E_ALREADY_EXISTS");
    let restored = fixture.fixture.run(&["restore", &name, "--as", "CAR-1/again"]);
    assert_eq!(restored.code, 0, "{}", restored.stderr);
    assert!(restored.stdout.starts_with("restored CAR-1_again at "), "{}", restored.stdout);
    let missing = fixture.fixture.run(&["drop", &name, "--json"]).error();
    assert_eq!(missing["code"], "E_KEPT_WORK_NOT_FOUND");
    let gc = ["gc", "--older-than", "0s"];
    fixture.fixture.json(&gc);
    let names: Vec<_> = kept(&fixture).iter().map(|work| work["name"].clone()).collect();
    assert_eq!(names.len(), 1, "the other workspace had nothing that is saved nowhere else");
    let dropped = fixture.fixture.json(&["drop", names[0].as_str().unwrap()]);
    assert_eq!(dropped["dropped"], true);
    assert_eq!(kept(&fixture), Vec::<Value>::new());
}

/// Tells whether the work is in the workspace or kept, and in which.
fn places(fixture: &ConductorFixture, issue: &str) -> (bool, usize) {
    let there = fixture.workspace(issue).join("deep/new").exists();
    let kept = fixture.fixture.root().join(".carrel/kept");
    let entries = std::fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path());
    let of_issue = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(&format!("{issue}.")) && path.join("deep/new").exists()
    };
    (there, entries.filter(of_issue).count())
}

#[test]
fn a_kill_at_any_moment_of_the_clean_up_loses_no_work() {
    let hooks = HOOKS.replace("before_remove: ", "before_remove: sleep 0.1; ");
    let fixture = ConductorFixture::with(&format!("{hooks}{}", agent(UNCOMMITTED)));
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut killed, mut half) = (0, 0);
    for round in 1..=if std::env::var_os("CARREL_SOAK").is_some() { 40 } else { 5 } {
        let issue = format!("CAR-{round}");
        fixture.issue("one");
        let running = fixture.start();
        running.until("the agent has worked", || {
            fixture.notes("ready").lines().count() >= round && places(&fixture, &issue).0
        });
        fixture.shift(&issue, "Done");
        let (begun, moment) = (Instant::now(), Duration::from_millis(random.u64(30..350)));
        while begun.elapsed() < moment {
            std::thread::sleep(Duration::from_millis(2));
        }
        running.signal(rustix::process::Signal::KILL);
        drop(running);
        killed += 1;
        let (there, kept) = places(&fixture, &issue);
        assert_eq!((there, kept), (kept == 0, usize::from(!there)), "round {round}");
        half += usize::from(there);
        let run = fixture.once();
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(places(&fixture, &issue), (false, 1), "round {round}");
        fixture.fixture.json(&["restore", &issue]);
        assert_eq!(git(&fixture.workspace(&issue), &["log", "--format=%s"]), "work\n");
        assert_eq!(fixture.fixture.json(&["rm", &issue])["removed"], true);
    }
    eprintln!("{killed} were killed, {half} of them before the tree was moved");
}
