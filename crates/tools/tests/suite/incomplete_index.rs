//! Answers from an index that does not have all files, and files that go while they are asked about.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::test_environment::{Setting, TestEnvironment};

/// A project of which no file is indexed before the first answer.
fn unindexed() -> TestEnvironment {
    let setting = Setting { index_time: Some(Duration::ZERO), ..Setting::default() };
    let test_env = TestEnvironment::with(setting);
    test_env.put("a.py", "def one():\n    return 1\n");
    test_env.put("b.py", "from a import one\n\none()\n");
    test_env
}

const PENDING: &str = "2 of 2 files are not indexed yet; all will be in about 1 s";

#[tokio::test]
async fn a_name_that_is_not_indexed_yet_is_not_called_undefined() {
    for (tool, arguments) in [
        ("read_symbol", json!({ "symbol": "one" })),
        ("find_definition", json!({ "symbol": "one" })),
        ("find_references", json!({ "symbol": "one", "by_name": true })),
        ("edit_function_body", json!({ "function_name": "one", "new_body": "return 2" })),
    ] {
        let test_env = unindexed();
        let answer = test_env.call(tool, arguments).await;
        assert!(answer.is_error, "{tool}");
        let text = answer.text();
        let expected = format!(
            "one is not in the index; ignored files are not searched [incomplete: {PENDING}]"
        );
        assert_eq!(text, expected, "{tool}");
        assert_eq!(answer.structured["error"]["detail"]["complete"], false, "{tool}");
    }
}

#[tokio::test]
async fn a_place_in_an_unindexed_project_is_answered_as_incomplete() {
    let test_env = unindexed();
    let place = json!({ "file_path": "b.py", "line": 3, "col": 1 });
    let answer = test_env.call("find_definition", place).await;
    assert!(!answer.is_error, "{}", answer.text());
    assert_eq!(answer.structured["complete"], false, "{}", answer.text());
    assert!(answer.text().contains("not indexed yet"), "{}", answer.text());
}

#[tokio::test]
async fn a_symbol_is_not_deleted_before_all_files_are_known() {
    let test_env = unindexed();
    // It is defined in the only indexed file, as a question about that file leaves it.
    test_env.text("outline", json!({ "path": "a.py" })).await;
    let delete = json!({ "symbol": "one", "file_path": "a.py" });
    let answer = test_env.call("delete_symbol", delete.clone()).await;
    assert!(answer.is_error, "{}", answer.text());
    assert_eq!(answer.structured["error"]["code"], "E_SYMBOL_IN_USE", "{}", answer.text());
    assert!(test_env.get("a.py").contains("def one"));
    let forced = json!({ "symbol": "one", "file_path": "a.py", "force": true });
    assert!(!test_env.call("delete_symbol", forced).await.is_error);
}

#[tokio::test]
async fn a_symbol_is_not_deleted_while_a_file_without_a_syntax_tree_has_its_name() {
    let test_env = TestEnvironment::new();
    test_env.put("a.py", "def one():\n    return 1\n\n\ndef two():\n    return 2\n");
    test_env.put("latin.py", b"# caf\xe9\nfrom a import one\none()\n");
    test_env.text("Read", json!({ "file_path": "a.py" })).await;
    let (code, text) = test_env.refusal("delete_symbol", json!({ "symbol": "one" })).await;
    assert_eq!(code, "E_SYMBOL_IN_USE");
    assert!(text.contains("latin.py (not UTF-8) has the word"), "{text}");
    test_env.text("delete_symbol", json!({ "symbol": "two" })).await;
}

#[tokio::test]
async fn a_changed_head_says_that_its_list_of_uses_is_incomplete() {
    let test_env = unindexed();
    test_env.text("Read", json!({ "file_path": "a.py" })).await;
    let head =
        json!({ "function_name": "one", "file_path": "a.py", "new_signature": "def one(x)" });
    let text = test_env.text("change_function_signature", head).await;
    assert!(!text.contains("no other line has its name"), "{text}");
    assert!(text.contains("not indexed yet"), "{text}");
}

/// Files come and go while they are asked about: the question is answered about the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_goes_between_index_and_answer_is_left_out_and_named() {
    let test_env = TestEnvironment::new();
    test_env.put("kept.py", "from gone import one\n\none()\n");
    let (kept, path) = (AtomicBool::new(true), test_env.path("main/gone.py"));
    let mut was_named = false;
    let mut failed = Vec::new();
    std::thread::scope(|threads| {
        // Ends with `kept`, so that nothing panics before that is said.
        threads.spawn(|| {
            while kept.load(Ordering::Relaxed) {
                let made = std::fs::write(&path, "def one():\n    return 1\n");
                if made.and_then(|()| std::fs::remove_file(&path)).is_err() {
                    break;
                }
            }
        });
        let runtime = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            for (tool, question) in [
                (
                    "find_references",
                    json!({ "file_path": "kept.py", "line": 3, "col": 1, "by_name": true }),
                ),
                ("find_definition", json!({ "symbol": "one" })),
            ]
            .iter()
            .cycle()
            .take(800)
            {
                let answer = runtime.block_on(test_env.call(tool, question.clone()));
                let code = answer.structured["error"]["code"].as_str();
                if !matches!(code, None | Some("E_SYMBOL_NOT_FOUND")) {
                    failed.push(format!("{tool}: {}", answer.text()));
                }
                was_named |= answer.text().contains("gone or unreadable meanwhile: gone.py");
            }
        });
        kept.store(false, Ordering::Relaxed);
    });
    assert_eq!(failed, [""; 0]);
    assert!(was_named, "the file never went in between");
}
