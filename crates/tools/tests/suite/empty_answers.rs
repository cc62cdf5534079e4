//! Replies without content: words, in every tool.

use std::collections::BTreeSet;

use carrel_tools::{ToolSelection, definitions};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::TestEnvironment;

/// Calls that have as little to say as the tool can; refusals have to be words too.
fn emptiest() -> Vec<(&'static str, Value)> {
    vec![
        ("Read", json!({ "file_path": "empty.txt" })),
        ("Grep", json!({ "pattern": "nothing" })),
        ("Grep", json!({ "pattern": "nothing", "output_mode": "count" })),
        ("Glob", json!({ "pattern": "*.nothing" })),
        ("LS", json!({ "path": "empty" })),
        ("Write", json!({ "file_path": "new.txt", "content": "" })),
        ("Edit", json!({ "file_path": "empty.txt", "old_string": "a", "new_string": "" })),
        ("MultiEdit", json!({ "file_path": "empty.txt", "edits": [] })),
        ("ApplyPatch", json!({ "patch": "" })),
        ("Move", json!({ "from": "new.txt", "to": "newer.txt" })),
        ("Delete", json!({ "path": "newer.txt" })),
        ("Bash", json!({ "command": "true" })),
        ("Bash", json!({ "command": "echo" })),
        ("BashOutput", json!({ "shell_id": "JOB" })),
        ("BashOutput", json!({ "shell_id": "JOB", "cursor": 0, "filter": "nothing" })),
        ("KillShell", json!({ "shell_id": "JOB" })),
        ("shell_run", json!({ "cmd": "true" })),
        ("watch_process", json!({ "command": "true" })),
        ("watch_process_events", json!({ "shell_id": "WATCHED", "since_event_id": 1000 })),
        ("git", json!({ "operation": "diff" })),
        ("git", json!({ "operation": "add", "args": "empty.txt" })),
        ("git_inspect", json!({ "operation": "branch" })),
        ("profile", json!({})),
        ("run_tests", json!({})),
        ("run_failing_tests", json!({})),
        ("last_test_failures", json!({})),
        ("run_lint", json!({})),
        ("run_typecheck", json!({})),
        ("run_script", json!({ "name": "nothing" })),
        ("format", json!({})),
        ("install", json!({})),
        ("tests_covering", json!({ "file": "nothing" })),
        ("render_dot", json!({ "source": "digraph {}", "output_path": "empty.svg" })),
        ("render_mermaid", json!({ "source": "", "output_path": "empty.svg" })),
        ("outline", json!({})),
        ("outline", json!({ "path": "empty" })),
        ("read_symbol", json!({ "symbol": "nothing" })),
        ("find_definition", json!({ "symbol": "nothing" })),
        ("find_references", json!({ "symbol": "nothing" })),
        ("find_implementations", json!({ "symbol": "nothing" })),
        ("hover", json!({ "symbol": "nothing" })),
        ("diagnostics", json!({})),
        ("rename_symbol", json!({ "symbol": "nothing", "new_name": "something" })),
        ("search_code", json!({ "query": "nothing" })),
        ("code_scan", json!({ "pattern": "nothing" })),
        ("code_edit", json!({ "path": ".", "edits": [] })),
        ("repo_map", json!({})),
        ("edit_function_body", json!({ "function_name": "nothing", "new_body": "" })),
        ("change_function_signature", json!({ "function_name": "nothing", "new_signature": "" })),
        (
            "insert_after_method",
            json!({ "receiver_type": "nothing", "method_name": "nothing", "new_method": "" }),
        ),
        ("replace_symbol", json!({ "symbol": "nothing", "new_text": "" })),
        ("insert_before_symbol", json!({ "symbol": "nothing", "new_text": "" })),
        ("insert_after_symbol", json!({ "symbol": "nothing", "new_text": "" })),
        ("delete_symbol", json!({ "symbol": "nothing" })),
        ("snapshot_create", json!({ "name": "nothing" })),
        ("snapshot_list", json!({})),
        ("snapshot_diff", json!({ "name": "nothing" })),
        ("snapshot_restore", json!({ "name": "nothing" })),
        ("snapshot_delete", json!({ "name": "nothing" })),
        ("fork", json!({})),
        ("fork_diff", json!({ "fork": "nothing" })),
        ("fork_promote", json!({ "fork": "nothing" })),
        ("fork_end", json!({ "fork": "nothing" })),
        ("undo", json!({})),
        ("undo_list", json!({})),
        ("undo_restore", json!({ "checkpointId": "u1" })),
        ("try", json!({ "runs": [] })),
        ("workspaces", json!({})),
        ("secrets_available", json!({})),
        ("secret", json!({ "name": "nothing" })),
        ("workspace_read_file", json!({ "path": "empty.txt" })),
        ("workspace_write_file", json!({ "path": "service.txt", "content": "" })),
        ("workspace_list_dir", json!({ "path": "empty" })),
        ("workspace_grep", json!({ "pattern": "nothing" })),
        ("workspace_exec", json!({ "command": "true" })),
        ("workspace_git", json!({ "operation": "diff" })),
    ]
}

fn prepared() -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("empty.txt", "");
    std::fs::create_dir(test_env.path("main/empty")).unwrap();
    let mut git = std::process::Command::new("git");
    assert!(git.args(["init", "-q"]).arg(test_env.path("main")).status().unwrap().success());
    test_env
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_ever_answers_with_an_empty_text() {
    let calls = emptiest();
    let called: BTreeSet<_> = calls.iter().map(|(tool, _)| *tool).collect();
    let offered: BTreeSet<_> =
        definitions(ToolSelection::ALL).map(|tool| tool.about.name).collect();
    assert_eq!(called, offered);
    let test_env = prepared();
    let mut ids = [("JOB", String::new()), ("WATCHED", String::new())];
    for (tool, mut arguments) in calls {
        for (name, id) in &ids {
            if arguments["shell_id"] == *name {
                arguments["shell_id"] = json!(id);
            }
        }
        let answer = test_env.call(tool, arguments.clone()).await;
        assert!(!answer.text().trim().is_empty(), "{tool} {arguments}");
        if let Some(id) = answer.structured["shell_id"].as_str() {
            let which = usize::from(tool == "watch_process");
            id.clone_into(&mut ids[which].1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_words_for_nothing_say_what_was_asked() {
    let test_env = prepared();
    for (tool, arguments, expected) in [
        ("Grep", json!({ "pattern": "no[t]hing" }), "no matches for no[t]hing\n"),
        (
            "Grep",
            json!({ "pattern": "nothing", "offset": 5 }),
            "no more matches for nothing after offset 5\n",
        ),
        ("Glob", json!({ "pattern": "*.nothing" }), "no files match *.nothing\n"),
        ("LS", json!({ "path": "empty" }), "no entries\n"),
        ("Bash", json!({ "command": "true" }), "no output, exit 0\n"),
        ("Bash", json!({ "command": "echo" }), "\nonly white space, exit 0\n"),
        ("Bash", json!({ "command": "false" }), "exit: 1\n"),
        ("Read", json!({ "file_path": "empty.txt" }), "[the file is empty]\n"),
        ("secrets_available", json!({}), "there are no secrets\n"),
    ] {
        assert_eq!(test_env.text(tool, arguments).await, expected, "{tool}");
    }
}
