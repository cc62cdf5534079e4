//! Formatters and edits at the same time: no acknowledged edit is lost.

use std::pin::pin;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::MANIFEST;
use crate::test_environment::TestEnvironment;

/// Reads its file, says so, waits for the file `go` and writes back what it read. A second run does nothing.
const FORMATTER: &str = "[ -e started ] && exit 0\ntext=$(cat src/lib.rs)\ntouch started\n\
    while [ ! -e go ]; do sleep 0.01; done\nprintf '%s\\n// formatted\\n' \"$text\" > src/lib.rs\n";

/// Bounds the wait for an edit that is not held up.
const NOT_HELD_UP: Duration = Duration::from_millis(90);

fn project(settings: &str) -> TestEnvironment {
    let test_env = TestEnvironment::new();
    test_env.put("Cargo.toml", MANIFEST);
    test_env.put("src/lib.rs", "// one\n// two\n");
    test_env.put("slow.sh", FORMATTER);
    let settings = format!("[profile]\nformat = [\"sh\", \"slow.sh\", \"$FILES\"]\n{settings}");
    test_env.put("carrel.toml", settings);
    test_env
}

async fn edit(test_env: &TestEnvironment, old: &str, new: &str) -> String {
    let edit = json!({ "file_path": "src/lib.rs", "old_string": old, "new_string": new });
    test_env.call("Edit", edit).await.text()
}

async fn until_started(test_env: &TestEnvironment) {
    let started = async {
        while !test_env.has("started") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), started).await.expect("the formatter starts");
}

/// Lets an edit go on beside a formatter that has read the file, then lets the formatter write.
async fn edit_beside(test_env: &TestEnvironment) -> String {
    until_started(test_env).await;
    let mut beside = pin!(edit(test_env, "// two", "// three"));
    let early = tokio::time::timeout(NOT_HELD_UP, &mut beside).await;
    test_env.put("go", "");
    match early {
        Ok(reply) => reply,
        Err(_) => beside.await,
    }
}

/// An edit is in the file, or was refused because the formatter had changed the file before it.
fn assert_kept(test_env: &TestEnvironment, reply: &str) {
    let text = test_env.get("src/lib.rs");
    let refused = reply.contains("changed since");
    assert!(refused || text.contains("// three"), "{reply}\nleft:\n{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_edit_is_not_lost_to_the_format_tool() {
    let test_env = project("");
    test_env.text("Read", json!({ "file_path": "src/lib.rs" })).await;
    let formatting = async { test_env.call("format", json!({})).await.text() };
    let (formatted, reply) = tokio::join!(formatting, edit_beside(&test_env));
    assert!(formatted.contains(": passed"), "{formatted}");
    assert_kept(&test_env, &reply);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_edit_is_not_lost_to_format_on_edit() {
    let test_env = project("format_on_edit = true\n");
    test_env.text("Read", json!({ "file_path": "src/lib.rs" })).await;
    let (_, reply) = tokio::join!(edit(&test_env, "// one", "// 1"), edit_beside(&test_env));
    assert_kept(&test_env, &reply);
    assert_eq!(test_env.get("src/lib.rs").lines().next(), Some("// 1"));
}
