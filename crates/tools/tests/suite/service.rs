//! What REST and tasks get of the six tools of the service.

use std::time::Duration;

use carrel_domain::Secret;
use carrel_tools::{
    CallOptions, CommandSettings, Interface, ToolGroup, ToolResponse, ToolSelection,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::test_environment::{Setting, TestEnvironment, object};

fn test_env() -> TestEnvironment {
    let tools = ToolSelection::of(&[ToolGroup::Workspace]);
    TestEnvironment::with(Setting { tools, ..Setting::default() })
}

async fn call_on(
    test_env: &TestEnvironment,
    tool: &str,
    arguments: Value,
    command_settings: CommandSettings,
) -> ToolResponse {
    let options = CallOptions { command_settings, ..CallOptions::new(Interface::Rest) };
    test_env.registry.call(&test_env.session, tool, object(arguments), options).await
}

async fn data(test_env: &TestEnvironment, tool: &str, arguments: Value) -> Value {
    let answer = call_on(test_env, tool, arguments, CommandSettings::default()).await;
    answer.data.clone().unwrap_or_else(|| panic!("{tool} has no data: {}", answer.text()))
}

#[tokio::test]
async fn files_come_in_the_shapes_that_clients_know() {
    let test_env = test_env();
    test_env.put("repos/app/main.py", "print('hi')\n");
    test_env.put("repos/app/B.txt", "");
    test_env.put("repos/app/src/a.rs", "");
    let file = data(&test_env, "workspace_read_file", json!({ "path": "repos/app/main.py" })).await;
    assert_eq!(
        file,
        json!({
            "path": "repos/app/main.py",
            "name": "main.py",
            "content": "print('hi')\n",
            "size": 12,
            "language": "python",
            "mime_type": "text/x-python",
        })
    );
    let listing = data(&test_env, "workspace_list_dir", json!({ "path": "repos/app" })).await;
    let names: Vec<_> = listing["entries"].as_array().unwrap().iter().map(|e| &e["name"]).collect();
    assert_eq!(names, ["src", "B.txt", "main.py"], "directories first, then names in either case");
    let entry = &listing["entries"][2];
    assert_eq!(
        (&entry["path"], &entry["type"], &entry["size"]),
        (&json!("repos/app/main.py"), &json!("file"), &json!(12))
    );
    assert!(entry["modified_at"].is_f64(), "{entry}");
    let found = data(&test_env, "workspace_grep", json!({ "pattern": "h.\\b|nothing" })).await;
    assert_eq!(
        found,
        json!({
            "matches": [{ "file": "repos/app/main.py", "line": 1, "content": "print('hi')" }],
            "total": 1,
            "truncated": false,
            "pattern": "h.\\b|nothing",
        })
    );
    let arguments = json!({ "path": "new/file", "content": "abc" });
    let written = data(&test_env, "workspace_write_file", arguments).await;
    assert_eq!(written, json!({ "written": true, "path": "new/file", "size_bytes": 3 }));
}

#[tokio::test]
async fn a_command_comes_with_both_streams_and_a_status_that_is_always_a_number() {
    let test_env = test_env();
    let command = "echo out; echo err 1>&2; false";
    let ended = data(&test_env, "workspace_exec", json!({ "command": command })).await;
    assert_eq!(
        (&ended["exit_code"], &ended["stdout"], &ended["stderr"], &ended["success"]),
        (&json!(1), &json!("out\n"), &json!("err\n"), &json!(false))
    );
    let arguments = json!({ "command": "echo partial; sleep 100", "timeout": 1 });
    let late = data(&test_env, "workspace_exec", arguments).await;
    assert_eq!(
        (&late["exit_code"], &late["stdout"], &late["timed_out"]),
        (&json!(-1), &json!("partial\n"), &json!(true))
    );
}

#[tokio::test]
async fn a_door_adds_variables_that_are_masked_a_limit_and_a_reader() {
    let test_env = test_env();
    let (output, mut pieces) = mpsc::channel(100);
    let command_settings = CommandSettings {
        environment: vec![("API_TOKEN".to_owned(), Secret::new("s3cret-value"))],
        timeout: Some(Duration::from_secs(1)),
        output: Some(output),
        ..CommandSettings::default()
    };
    let arguments = json!({ "command": "echo $API_TOKEN; sleep 100", "timeout": 200 });
    let answer = call_on(&test_env, "workspace_exec", arguments, command_settings).await;
    let data = answer.data.unwrap();
    assert_eq!(data["timed_out"], true);
    assert_eq!(data["stdout"], "[masked secret API_TOKEN]\n");
    let piece = pieces.recv().await.unwrap();
    assert_eq!(piece.bytes, b"s3cret-value\n", "the reader masks what it passes on");
}
