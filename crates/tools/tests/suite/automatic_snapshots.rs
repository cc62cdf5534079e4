//! Snapshots that nobody asked for by name: before commands, tasks and turns, and what is kept of them.

use std::sync::Arc;
use std::time::Duration;

use carrel_config::{OperatorPolicy, SnapshotPolicy};
use carrel_tools::AutomaticSnapshot;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{Setting, TestEnvironment};

fn with_policy(snapshots: SnapshotPolicy) -> TestEnvironment {
    let policy = OperatorPolicy { snapshots, ..OperatorPolicy::default() };
    TestEnvironment::with(Setting { policy, ..Setting::default() })
}

/// Returns the numbers of all snapshots, the newest first.
async fn numbers(test_env: &TestEnvironment) -> Vec<Value> {
    let list = test_env.call("snapshot_list", json!({ "automatic": true })).await.structured;
    list["snapshots"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect()
}

#[tokio::test]
async fn a_command_gets_a_snapshot_before_it_on_request() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "1\n");
    let plain = test_env.call("Bash", json!({ "command": "echo 2 > a.txt" })).await;
    assert_eq!(plain.structured["snapshot"], json!(null));
    assert_eq!(numbers(&test_env).await, Vec::<Value>::new());
    let call = json!({ "command": "rm a.txt; mkdir new", "snapshot": true });
    let answer = test_env.call("Bash", call).await;
    assert_eq!(answer.structured["snapshot"], "@1", "{}", answer.text());
    assert!(answer.text().contains("[the state before is snapshot @1]"), "{}", answer.text());
    assert!(!test_env.has("a.txt") && test_env.has("new"));
    test_env.text("snapshot_restore", json!({ "name": "@1" })).await;
    assert_eq!((test_env.get("a.txt").as_str(), test_env.has("new")), ("2\n", false));
    let exec = json!({ "command": "echo 3 > a.txt", "snapshot": true });
    let answer = test_env.call("workspace_exec", exec).await;
    assert_eq!(answer.structured["snapshot"], numbers(&test_env).await[0], "{}", answer.text());
}

#[tokio::test]
async fn the_operator_has_one_taken_before_every_command() {
    let policy = SnapshotPolicy { commands: true, ..SnapshotPolicy::default() };
    let test_env = with_policy(policy);
    test_env.put("a.txt", "1\n");
    let run = async |command: &str| {
        let answer = test_env.call("Bash", json!({ "command": command })).await;
        // Who did not ask pays no words for it.
        assert!(!answer.text().contains("snapshot"), "{}", answer.text());
        answer.structured["snapshot"].clone()
    };
    let first = run("true").await;
    assert_eq!(first, "@1");
    assert_eq!(run("echo 2 > a.txt").await, first, "nothing had changed");
    assert_eq!(run("true").await, "@2");
    let answer = test_env.call("shell_run", json!({ "cmd": "touch", "args": ["b.txt"] })).await;
    assert!(!answer.is_error, "{}", answer.text());
    assert_eq!(numbers(&test_env).await, ["@2", "@1"]);
}

#[tokio::test]
async fn a_command_does_not_run_without_the_snapshot_that_it_asked_for() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "1\n");
    test_env.text("snapshot_create", json!({ "name": "s" })).await;
    // Nobody can append to a store whose directory is a file.
    let stores = test_env.path("state/snapshots");
    std::fs::remove_dir_all(&stores).unwrap();
    std::fs::write(&stores, "").unwrap();
    let test_env = test_env.restarted(Setting::default());
    let call = json!({ "command": "rm a.txt", "snapshot": true });
    test_env.refusal("Bash", call).await;
    assert!(test_env.has("a.txt"));
    test_env.text("Bash", json!({ "command": "rm a.txt" })).await;
}

async fn take(test_env: &TestEnvironment, snapshot: AutomaticSnapshot) -> Option<String> {
    let toolbox = test_env.registry.toolbox();
    let workspace = toolbox.workspaces.choose(None).unwrap();
    let policy = toolbox.runner.policy().snapshots;
    toolbox.snapshots().take(&workspace, snapshot, policy).await.unwrap()
}

#[tokio::test]
async fn those_of_an_unchanged_tree_are_one() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "1\n");
    let first = take(&test_env, AutomaticSnapshot::before_turn("CAR-1", 1)).await;
    let second = take(&test_env, AutomaticSnapshot::before_turn("CAR-1", 2)).await;
    let third = take(&test_env, AutomaticSnapshot::before_task("t")).await;
    assert_eq!((first.as_deref(), &second, &third), (Some("@1"), &first, &first));
    test_env.put("a.txt", "2\n");
    let fourth = take(&test_env, AutomaticSnapshot::before_turn("CAR-1", 3)).await;
    assert_eq!(fourth.as_deref(), Some("@2"));
    let list = test_env.text("snapshot_list", json!({ "automatic": true })).await;
    assert!(list.contains("\tbefore turn 3 of the agent of CAR-1\n"), "{list}");
}

#[tokio::test]
async fn the_operator_says_how_many_are_kept_and_named_ones_are_not_counted() {
    let policy = SnapshotPolicy { keep: 3, ..SnapshotPolicy::default() };
    let test_env = with_policy(policy);
    test_env.put("a.txt", "0\n");
    test_env.text("snapshot_create", json!({ "name": "mine" })).await;
    for number in 1..=6 {
        test_env.put("a.txt", format!("{number}\n"));
        take(&test_env, AutomaticSnapshot::before_turn("CAR-1", number)).await;
    }
    // They go in the background.
    for _ in 0..100 {
        if numbers(&test_env).await.len() == 4 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(numbers(&test_env).await, ["@7", "@6", "@5", "@1"]);
}

#[tokio::test]
async fn workspaces_do_not_wait_for_each_other() {
    let test_env =
        TestEnvironment::with(Setting { names: &["main", "other"], ..Setting::default() });
    test_env.put("a.txt", "1\n");
    let toolbox = Arc::clone(test_env.registry.toolbox());
    let workspaces: Vec<_> = toolbox.workspaces.iter().map(Arc::clone).collect();
    let policy = toolbox.runner.policy().snapshots;
    // One of them is being written to, for as long as the other is recorded.
    let writing = workspaces[0].handle().lock_for_writing().unwrap();
    let snapshot = AutomaticSnapshot::before_task("t");
    let taken = toolbox.snapshots().take(&workspaces[1], snapshot, policy).await.unwrap();
    assert_eq!(taken.as_deref(), Some("@1"));
    drop(writing);
}
