//! What learns that files were put back: the read tracker, the index of symbols, language servers, remembered tests.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::TestEnvironment;
use crate::verify::machine;

const OLD: &str = "def alpha():\n    return 1\n";
const NEW: &str = "def omega():\n    return 2\n";

/// The three ways to put files back.
#[derive(Clone, Copy, Debug)]
enum Way {
    Restore,
    Undo,
    UndoRestore,
}

const ALL: [Way; 3] = [Way::Restore, Way::Undo, Way::UndoRestore];

/// Writes a file that was [`OLD`] with [`NEW`], by a tool.
async fn change(test_env: &TestEnvironment) {
    test_env.text("snapshot_create", json!({ "name": "s", "replace": true })).await;
    test_env.text("Read", json!({ "file_path": "a.py" })).await;
    test_env.text("Write", json!({ "file_path": "a.py", "content": NEW })).await;
}

async fn put_back(test_env: &TestEnvironment, way: Way) {
    match way {
        Way::Restore => test_env.text("snapshot_restore", json!({ "name": "s" })).await,
        Way::Undo => test_env.text("undo", json!({})).await,
        Way::UndoRestore => {
            let list = test_env.call("undo_list", json!({})).await.structured;
            let id = list["entries"][0]["checkpointId"].clone();
            test_env.text("undo_restore", json!({ "checkpointId": id })).await
        }
    };
    assert_eq!(test_env.get("a.py"), OLD, "{way:?}");
}

#[tokio::test]
async fn a_file_that_was_put_back_has_to_be_read_again() {
    for way in ALL {
        let test_env = TestEnvironment::new();
        test_env.put("a.py", OLD);
        change(&test_env).await;
        put_back(&test_env, way).await;
        let edit = json!({ "file_path": "a.py", "old_string": "alpha", "new_string": "x" });
        let (code, _) = test_env.refusal("Edit", edit.clone()).await;
        assert_eq!(code, "E_CHANGED_SINCE_READ", "{way:?}");
        test_env.text("Read", json!({ "file_path": "a.py" })).await;
        test_env.text("Edit", edit).await;
    }
}

#[tokio::test]
async fn the_index_of_symbols_has_what_was_put_back() {
    for way in ALL {
        let test_env = machine::bare();
        test_env.put("a.py", OLD);
        let found = async |name: &str| {
            let answer = test_env.call("search_code", json!({ "query": name })).await;
            answer.structured["hits"].as_array().is_some_and(|hits| !hits.is_empty())
        };
        assert!(found("alpha").await && !found("omega").await);
        change(&test_env).await;
        assert!(!found("alpha").await && found("omega").await);
        put_back(&test_env, way).await;
        assert!(found("alpha").await && !found("omega").await, "{way:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_language_server_has_what_was_put_back() {
    let test_env = machine::with_python_tools();
    test_env.put("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"1\"\n");
    test_env.put("b.py", "from a import alpha\n\nalpha()\n");
    for way in ALL {
        test_env.put("a.py", OLD);
        let line = async || {
            let place = json!({ "file_path": "b.py", "line": 3, "col": 1 });
            for _ in 0..20 {
                let answer = test_env.call("find_definition", place.clone()).await;
                assert!(!answer.is_error, "{}", answer.text());
                if answer.structured["source"] == "semantic" {
                    return answer.text();
                }
            }
            panic!("no answer of the server");
        };
        assert!(line().await.contains("a.py:1:5"), "{way:?}");
        test_env.text("snapshot_create", json!({ "name": "s", "replace": true })).await;
        test_env.text("Read", json!({ "file_path": "a.py" })).await;
        let below = format!("\n\n\n{OLD}");
        test_env.text("Write", json!({ "file_path": "a.py", "content": below })).await;
        assert!(line().await.contains("a.py:4:5"), "{way:?}");
        put_back(&test_env, way).await;
        let text = line().await;
        assert!(text.contains("a.py:1:5"), "{way:?}: {text}");
    }
}

fn outdated(answer: &Value) -> bool {
    answer["restored_since"] == true
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_tests_from_before_are_said_to_be() {
    let test_env = TestEnvironment::new();
    test_env.put("setup.py", "");
    test_env.put("a.py", OLD);
    let test = "import unittest\nclass A(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(1, 1)\n";
    test_env.put("tests/test_a.py", test);
    let last = async || test_env.call("last_test_failures", json!({})).await;
    for way in ALL {
        change(&test_env).await;
        let passed = test_env.call("run_tests", json!({})).await;
        assert_eq!(passed.structured["verdict"], "passed", "{}", passed.text());
        assert!(!outdated(&last().await.structured), "{way:?}");
        put_back(&test_env, way).await;
        let answer = last().await;
        assert!(outdated(&answer.structured), "{way:?}");
        assert!(answer.text().contains("[files were put back by a restore or undo since"));
        let nothing = test_env.text("run_failing_tests", json!({})).await;
        assert!(nothing.contains("nothing to rerun (python)\n[files were put back"), "{nothing}");
        // Of what is there now nothing is outdated.
        test_env.call("run_tests", json!({})).await;
        assert!(!outdated(&last().await.structured), "{way:?}");
    }
}

#[tokio::test]
async fn a_dry_run_and_a_refused_undo_put_nothing_back() {
    let test_env = TestEnvironment::new();
    test_env.put("a.py", OLD);
    change(&test_env).await;
    test_env.text("snapshot_restore", json!({ "name": "s", "dry_run": true })).await;
    test_env.put("a.py", "mine\n");
    test_env.refusal("undo", json!({})).await;
    let toolbox = test_env.registry.toolbox();
    let workspace = toolbox.workspaces.choose(None).unwrap();
    assert_eq!(workspace.handle().restored_at(), None);
    test_env.text("snapshot_restore", json!({ "name": "s" })).await;
    assert!(workspace.handle().restored_at().is_some());
}
