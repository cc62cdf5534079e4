//! Undo of calls that changed files.

use std::os::unix::fs::PermissionsExt as _;

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::TestEnvironment;

async fn undo(test_env: &TestEnvironment) -> String {
    test_env.text("undo", json!({})).await
}

async fn edit(test_env: &TestEnvironment, path: &str, (old, new): (&str, &str)) {
    test_env.text("Read", json!({ "file_path": path, "limit": 2 })).await;
    let edit = json!({ "file_path": path, "old_string": old, "new_string": new });
    test_env.text("Edit", edit).await;
}

#[tokio::test]
async fn each_call_that_changes_files_is_taken_back_in_turn() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "one\n");
    test_env.put_program("b.sh", "#!/bin/sh\n");
    test_env.put("tree/deep/c.txt", "c\n");
    test_env.put("tree/d.txt", "d\n");
    test_env.text("Write", json!({ "file_path": "new/dir/n.txt", "content": "n\n" })).await;
    edit(&test_env, "a.txt", ("one", "1")).await;
    test_env.text("Delete", json!({ "path": "b.sh" })).await;
    test_env.text("Delete", json!({ "path": "tree", "recursive": true })).await;
    test_env
        .text(
            "Move",
            json!({ "source": "new/dir/n.txt", "destination": "a.txt", "overwrite": true }),
        )
        .await;
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-n\n+patched\n*** Add File: p.txt\n+p\n*** End Patch\n";
    test_env.text("ApplyPatch", json!({ "patch": patch })).await;
    assert_eq!(test_env.get("a.txt"), "patched\n");
    let list = test_env.text("undo_list", json!({})).await;
    let tools: Vec<_> = list.lines().map(|line| line.split('\t').nth(2).unwrap()).collect();
    assert_eq!(tools, ["ApplyPatch", "Move", "Delete", "Delete", "Edit", "Write"]);

    assert!(undo(&test_env).await.starts_with("took back ApplyPatch ("));
    assert_eq!(test_env.get("a.txt"), "n\n");
    assert!(!test_env.has("p.txt"));
    undo(&test_env).await;
    assert_eq!(
        (test_env.get("a.txt"), test_env.get("new/dir/n.txt")),
        ("1\n".into(), "n\n".into())
    );
    undo(&test_env).await;
    assert_eq!(test_env.get("tree/deep/c.txt"), "c\n");
    assert_eq!(test_env.get("tree/d.txt"), "d\n");
    undo(&test_env).await;
    let mode = test_env.path("main/b.sh").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    undo(&test_env).await;
    assert_eq!(test_env.get("a.txt"), "one\n");
    undo(&test_env).await;
    assert!(!test_env.has("new"));
    let (code, text) = test_env.refusal("undo", json!({})).await;
    assert_eq!(code, "E_CHECKPOINT_NOT_FOUND", "{text}");
}

#[tokio::test]
async fn an_undo_is_taken_back_by_its_own_checkpoint() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "one\n");
    edit(&test_env, "a.txt", ("one", "two")).await;
    let undone = test_env.call("undo", json!({})).await;
    assert_eq!(test_env.get("a.txt"), "one\n");
    let redo = undone.structured["redo"].clone();
    test_env.text("undo_restore", json!({ "checkpointId": redo })).await;
    assert_eq!(test_env.get("a.txt"), "two\n");
    // The edit counts again.
    undo(&test_env).await;
    assert_eq!(test_env.get("a.txt"), "one\n");
}

#[tokio::test]
async fn what_changed_since_is_a_conflict_and_nothing_is_written() {
    let test_env = TestEnvironment::new();
    let patch =
        "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Add File: b.txt\n+b\n*** End Patch\n";
    test_env.text("ApplyPatch", json!({ "patch": patch })).await;
    test_env.put("b.txt", "by a command\n");
    let refused = test_env.call("undo", json!({})).await;
    assert!(refused.is_error);
    let error = &refused.structured["error"];
    assert_eq!(error["code"], "E_UNDO_CONFLICT");
    assert_eq!(error["detail"]["conflicts"], json!([{ "path": "b.txt", "reason": "changed" }]));
    assert!(test_env.has("a.txt") && test_env.has("b.txt"));
    let id = error["detail"]["checkpointId"].clone();
    test_env.text("undo_restore", json!({ "checkpointId": id, "paths": ["a.txt"] })).await;
    assert!(!test_env.has("a.txt"));
    assert_eq!(test_env.get("b.txt"), "by a command\n");
}

#[tokio::test]
async fn what_is_too_large_to_keep_is_said() {
    let test_env = TestEnvironment::new();
    test_env.put("big.txt", format!("first\n{}", "x\n".repeat(9 << 20)));
    edit(&test_env, "big.txt", ("first", "1")).await;
    let (code, text) = test_env.refusal("undo", json!({})).await;
    assert_eq!(code, "E_UNDO_CONFLICT");
    assert!(text.contains("big.txt (missing_before_snapshot)"), "{text}");
}

#[tokio::test]
async fn a_call_that_failed_leaves_nothing_to_undo() {
    let test_env = TestEnvironment::new();
    test_env.put("a.txt", "one\n");
    test_env
        .refusal("Edit", json!({ "file_path": "a.txt", "old_string": "none", "new_string": "1" }))
        .await;
    assert_eq!(test_env.text("undo_list", json!({})).await, "nothing to undo\n");
}

#[tokio::test]
async fn callers_do_not_undo_each_others_calls() {
    let test_env = TestEnvironment::new();
    test_env.text("Write", json!({ "file_path": "a.txt", "content": "a\n" })).await;
    let other = carrel_tools::Session::new("other");
    let answer = test_env.call_as(&other, "undo", json!({})).await;
    assert_eq!(answer.structured["error"]["code"], "E_CHECKPOINT_NOT_FOUND");
    assert!(test_env.has("a.txt"));
}

#[tokio::test]
async fn the_last_fifty_calls_can_be_undone() {
    let test_env = TestEnvironment::new();
    for number in 0..53 {
        let call = json!({ "file_path": format!("{number}.txt"), "content": "x\n" });
        test_env.text("Write", call).await;
    }
    let list = test_env.text("undo_list", json!({ "limit": 50 })).await;
    assert_eq!(list.lines().count(), 50);
    assert!(list.lines().last().unwrap().ends_with("\t3.txt"), "{list}");
}
