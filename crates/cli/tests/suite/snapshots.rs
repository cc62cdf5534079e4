//! `carrel snapshot`, and undo from one command to the next.

use std::process::Output;

use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::test_environment::TestEnvironment;

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
