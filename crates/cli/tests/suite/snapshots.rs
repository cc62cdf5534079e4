//! `carrel snapshot`, and undo from one command to the next.

use std::process::Output;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::interfaces::{Interface, ToolSession};
use crate::test_environment::TestEnvironment;
use crate::{Run, TestRoot};

fn carrel(test_env: &TestEnvironment, arguments: &[&str]) -> Output {
    let mut command = test_env.carrel();
    command.args(arguments).arg("--workspace").arg(test_env.workspace());
    command.output().unwrap()
}

fn text(test_env: &TestEnvironment, arguments: &[&str]) -> String {
    let output = carrel(test_env, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn read(test_env: &TestEnvironment, path: &str) -> String {
    std::fs::read_to_string(test_env.workspace().join(path)).unwrap()
}

#[test]
fn a_person_takes_compares_restores_and_deletes_snapshots() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "1\n");
    test_env.write("b.txt", "1\n");
    let create = ["snapshot", "create", "before-upgrade", "-m", "all is well"];
    let created = text(&test_env, &create);
    assert!(created.starts_with("snapshot before-upgrade created: "), "{created}");
    test_env.write("a.txt", "2\n");
    test_env.write("b.txt", "2\n");
    let diff = text(&test_env, &["snapshot", "diff", "before-upgrade", "--path", "a.txt"]);
    assert!(diff.contains("-1\n+2\n") && !diff.contains("b.txt"), "{diff}");
    text(&test_env, &["snapshot", "restore", "before-upgrade", "a.txt"]);
    assert_eq!((read(&test_env, "a.txt"), read(&test_env, "b.txt")), ("1\n".into(), "2\n".into()));
    let list = text(&test_env, &["snapshot", "ls"]);
    assert!(list.starts_with("before-upgrade\t") && list.contains("\tall is well\n"), "{list}");
    let all = text(&test_env, &["snapshot", "ls", "--automatic", "--json"]);
    let all: Value = serde_json::from_str(&all).unwrap();
    let reasons: Vec<_> = all["structured"]["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["reason"])
        .collect();
    assert_eq!(reasons, ["before_restore", "asked"]);
    text(&test_env, &["snapshot", "rm", "before-upgrade"]);
    let gone = carrel(&test_env, &["snapshot", "restore", "before-upgrade"]);
    assert_eq!(gone.status.code(), Some(1));
    let message = String::from_utf8(gone.stderr).unwrap();
    assert!(message.contains("[E_SNAPSHOT_NOT_FOUND]"), "{message}");
    // Nothing of it is in the directory itself.
    let mut names: Vec<_> = std::fs::read_dir(test_env.workspace())
        .unwrap()
        .flatten()
        .map(|one| one.file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a.txt", "b.txt"]);
}

#[test]
fn the_next_command_undoes_what_the_last_one_wrote() {
    let test_env = TestEnvironment::usual();
    text(&test_env, &["tool", "Write", "file_path=a.txt", "content=new"]);
    assert_eq!(read(&test_env, "a.txt"), "new");
    let undone = text(&test_env, &["tool", "undo"]);
    assert!(undone.starts_with("took back Write (u1)\na.txt\n"), "{undone}");
    assert!(!test_env.workspace().join("a.txt").exists());
}

/// Returns the numbers of all snapshots, the newest first.
fn numbers(test_env: &TestEnvironment) -> Vec<String> {
    let all = text(test_env, &["snapshot", "ls", "--automatic", "--json"]);
    let all: Value = serde_json::from_str(&all).unwrap();
    let all = all["structured"]["snapshots"].as_array().unwrap().clone();
    all.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_learns_of_a_restore_by_another_process() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.py", "def alpha():\n    return 1\n");
    test_env.write("setup.py", "");
    test_env.write(
        "test_a.py",
        "import unittest\nclass A(unittest.TestCase):\n    def test_it(self): pass\n",
    );
    let place = test_env.workspace().display().to_string();
    let options = ["--workspace", &place, "--tools", "files,verify,code,snapshot"];
    let mut session = Interface::Stdio.open(&test_env, &options);
    let found = |session: &mut Box<dyn ToolSession>, name: &str| {
        let answer = session.call("search_code", json!({ "query": name }));
        answer.structured["hits"].as_array().is_some_and(|hits| !hits.is_empty())
    };
    session.call("snapshot_create", json!({ "name": "s" })).ok();
    session.call("Read", json!({ "file_path": "a.py" })).ok();
    let write = json!({ "file_path": "a.py", "content": "def omega():\n    return 2\n" });
    session.call("Write", write).ok();
    assert!(found(&mut session, "omega"));
    session.call("run_tests", json!({})).ok();
    let last = session.call("last_test_failures", json!({}));
    assert_eq!(last.structured["restored_since"], false, "{}", last.text);

    text(&test_env, &["snapshot", "restore", "s"]);
    let edit = json!({ "file_path": "a.py", "old_string": "alpha", "new_string": "x" });
    let answer = session.call("Edit", edit);
    assert_eq!(answer.refused().0, "E_CHANGED_SINCE_READ");
    // What an answer shows counts as read.
    assert!(found(&mut session, "alpha") && !found(&mut session, "omega"));
    let last = session.call("last_test_failures", json!({}));
    assert_eq!(last.structured["restored_since"], true, "{}", last.text);
}

#[test]
fn cleaning_up_holds_snapshots_against_the_policy() {
    let fixture = TestRoot::new();
    fixture.json(&["create", "X"]);
    let workspace = fixture.root().join("X");
    let snapshots = |words: &[&str]| {
        let mut command = fixture.bare(&[&["snapshot"], words].concat());
        command.arg("--workspace").arg(&workspace);
        let run = Run::of(command);
        assert_eq!(run.code, 0, "{words:?}: {}", run.stderr);
        run.stdout
    };
    std::fs::write(workspace.join("a.txt"), "0\n").unwrap();
    snapshots(&["create", "mine"]);
    for number in 1..=3 {
        std::fs::write(workspace.join("a.txt"), format!("{number}\n")).unwrap();
        // Each takes one of the state before.
        snapshots(&["restore", "mine"]);
    }
    let count = || snapshots(&["ls", "--automatic"]).lines().count();
    assert_eq!(count(), 4);
    assert_eq!(fixture.json(&["gc"])["actions"], json!([]));
    let policy = fixture.path("policy.toml");
    std::fs::write(&policy, "snapshots.keep = 1\n").unwrap();
    let gc = |more: &[&str]| {
        let mut command = fixture.command(&[&["gc", "--json"], more].concat());
        command.env("CARREL_POLICY", &policy);
        let run = Run::of(command);
        assert_eq!(run.code, 0, "{}", run.stderr);
        serde_json::from_str::<Value>(&run.stdout).unwrap()["actions"].clone()
    };
    let expected = json!([{ "action": "expire_snapshots", "key": "X", "count": 2 }]);
    assert_eq!(gc(&["--dry-run"]), expected);
    assert_eq!(count(), 4);
    assert_eq!(gc(&[]), expected);
    assert_eq!((count(), gc(&[])), (2, json!([])));
    assert!(snapshots(&["ls"]).starts_with("mine\t"));
}

#[test]
fn a_command_of_the_operator_gets_a_snapshot_by_policy() {
    let test_env = TestEnvironment::usual();
    test_env.write("a.txt", "1\n");
    let policy = test_env.policy("snapshots.commands = true\n");
    let [option, file] = [&*policy[0], &*policy[1]];
    text(&test_env, &["tool", "Bash", "command=rm a.txt", option, file]);
    assert_eq!(numbers(&test_env), ["@1"]);
    text(&test_env, &["snapshot", "restore", "@1"]);
    assert_eq!(read(&test_env, "a.txt"), "1\n");
}
