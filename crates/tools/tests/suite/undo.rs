//! Undo of calls that changed files.

use std::os::unix::fs::PermissionsExt as _;

use carrel_tools::Session;
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
async fn sessions_of_one_caller_do_not_undo_each_others_calls() {
    let owner = || carrel_exec::Owner::new("token");
    let pairs = [
        [Session::of_owner(owner(), "mcp:1"), Session::of_owner(owner(), "mcp:2")],
        [Session::of_owner(owner(), "handle:1"), Session::of_owner(owner(), "handle:2")],
        [Session::of_owner(owner(), "mcp:1"), Session::for_request(owner(), "request:1")],
    ];
    // Two processes, each of which serves one client.
    let begun = Session::of_process("stdio");
    while Session::of_process("stdio").undo_owner() == begun.undo_owner() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let processes = [begun, Session::of_process("stdio")];
    for [one, other] in pairs.into_iter().chain([processes]) {
        let test_env = TestEnvironment::new();
        let write = json!({ "file_path": "a.txt", "content": "a\n" });
        test_env.call_as(&one, "Write", write).await;
        let answer = test_env.call_as(&other, "undo", json!({})).await;
        assert_eq!(answer.structured["error"]["code"], "E_CHECKPOINT_NOT_FOUND", "{one:?}");
        assert!(test_env.has("a.txt"));
        test_env.call_as(&one, "undo", json!({})).await;
        assert!(!test_env.has("a.txt"));
    }
    // Over MCP a request without a session may follow one of another client.
    let test_env = TestEnvironment::new();
    let requests = [1, 2].map(|number| Session::for_request(owner(), format!("request:{number}")));
    let write = json!({ "file_path": "a.txt", "content": "a\n" });
    test_env.call_as(&requests[0], "Write", write).await;
    let answer = test_env.call_as(&requests[1], "undo", json!({})).await;
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

/// A project whose formatter writes by itself.
fn formatted_project() -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put_program("format", "#!/bin/sh\nsed -i s/two/2/ \"$@\"\n");
    let settings = "[profile]\nformat = [\"./format\", \"$FILES\"]\nformat_on_edit = true\n";
    test_env.put("package.json", r#"{"name":"probe"}"#);
    test_env.put("carrel.toml", settings);
    test_env
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_taken_back_with_what_the_formatter_made_of_it() {
    let test_env = formatted_project();
    test_env.put("a.js", "one\n");
    edit(&test_env, "a.js", ("one", "two")).await;
    assert_eq!(test_env.get("a.js"), "2\n");
    undo(&test_env).await;
    assert_eq!(test_env.get("a.js"), "one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn formatting_one_file_takes_a_snapshot_before() {
    let test_env = formatted_project();
    test_env.put("a.js", "two\n");
    test_env.text("format", json!({ "path": "a.js" })).await;
    assert_eq!(test_env.get("a.js"), "2\n");
    let list = test_env.call("snapshot_list", json!({ "automatic": true })).await;
    let before = list.structured["snapshots"][0]["id"].clone();
    test_env.text("snapshot_restore", json!({ "name": before })).await;
    assert_eq!(test_env.get("a.js"), "two\n");
}
