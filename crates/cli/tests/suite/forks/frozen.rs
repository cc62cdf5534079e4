use serde_json::{Value, json};

use super::Base;
use crate::interfaces::Interface;

/// Every tool that changes files, with arguments that would change some.
fn calls() -> Vec<(&'static str, Value)> {
    let patch = "--- /dev/null\n+++ b/late\n@@ -0,0 +1 @@\n+late\n";
    vec![
        ("Write", json!({ "file_path": "late", "content": "late\n" })),
        ("Edit", json!({ "file_path": "t.py", "old_string": "1", "new_string": "2" })),
        ("ApplyPatch", json!({ "patch": patch })),
        ("Move", json!({ "source": "t.py", "destination": "late.py" })),
        ("Delete", json!({ "path": "src", "recursive": true })),
        ("git", json!({ "operation": "add", "args": "t.py" })),
        ("git", json!({ "operation": "commit", "args": "--allow-empty -m late" })),
        ("git", json!({ "operation": "checkout", "args": "-b late" })),
        ("format", json!({})),
        ("run_tests", json!({})),
        ("run_failing_tests", json!({})),
        ("install", json!({})),
        (
            "rename_symbol",
            json!({ "file_path": "t.py", "symbol": "test_one", "new_name": "test_late" }),
        ),
        ("undo", json!({})),
        ("undo_restore", json!({ "checkpointId": "u1" })),
        ("snapshot_restore", json!({ "name": "baseline" })),
    ]
}

/// What changes nothing goes on in a frozen base.
fn readers() -> Vec<(&'static str, Value)> {
    vec![
        ("Read", json!({ "file_path": "t.py" })),
        ("git", json!({ "operation": "status" })),
        ("git_inspect", json!({ "operation": "log" })),
        ("snapshot_create", json!({ "name": "of-frozen" })),
        ("snapshot_diff", json!({ "name": "baseline" })),
        ("snapshot_restore", json!({ "name": "baseline", "dry_run": true })),
        ("snapshot_delete", json!({ "name": "of-frozen" })),
    ]
}

#[test]
fn every_tool_that_changes_files_is_refused_in_a_frozen_base_with_the_forks() {
    Base::each(|base| {
        let test_env = &base.test_env;
        let python = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(1, 1)\n";
        assert_eq!(
            base.tool("X", "Write", &json!({ "file_path": "t.py", "content": python })).code,
            0
        );
        base.line("X", "git add -A && git commit -qm base");
        assert_eq!(base.tool("X", "snapshot_create", &json!({ "name": "baseline" })).code, 0);
        let workspace = base.path.display().to_string();
        let tree = "find . -path ./.git -prune -o -print | sort; git status --porcelain; git log --format=%s; cat t.py";
        let before = base.line("X", tree);
        base.managed(&["fork", "X", "--count", "2"]);
        for interface in Interface::ALL {
            let all = carrel_domain::ToolGroup::ALL.map(carrel_domain::ToolGroup::as_str).join(",");
            let options = ["--workspace", &workspace, "--tools", &all, "--tier", test_env.tier];
            let mut session = interface.open(test_env, &options);
            session.call("Read", json!({ "file_path": "t.py" })).ok();
            for (tool, arguments) in calls() {
                let answer = session.call(tool, arguments.clone());
                let (code, text) = answer.refused();
                assert_eq!(
                    code, "E_WORKSPACE_FROZEN",
                    "{test_env}: {interface:?}: {tool} {arguments}: {text}"
                );
                assert!(
                    text.contains("X.fork-1, X.fork-2"),
                    "{test_env}: {interface:?}: {tool}: {text}"
                );
            }
            for (tool, arguments) in readers() {
                let answer = session.call(tool, arguments);
                assert!(!answer.is_error, "{test_env}: {interface:?}: {tool}: {answer:?}");
            }
        }
        assert_eq!(base.line("X", tree), before, "{test_env}");
    });
}
