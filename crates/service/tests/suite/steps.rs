//! Steps and what becomes of the task.

use carrel_domain::{ByteSize, TaskStatus};
use carrel_store::EventKind;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::test_environment::{TestEnvironment, statuses, steps};

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[tokio::test]
async fn every_step_runs_in_order_and_its_result_is_kept() {
    let test_env = TestEnvironment::new().await;
    let (task, events) = test_env
        .run(json!({ "steps": [
            { "action": "create_directory", "path": "artifacts/a/b" },
            { "action": "write_file", "path": "artifacts/a/b/x.py", "content": "print(6 * 7)\n" },
            { "action": "execute_command", "command": "python3 x.py", "cwd": "artifacts/a/b" },
            { "action": "shell", "command": "echo one; echo two 1>&2" },
            { "action": "read_file", "path": "artifacts/a/b/x.py" },
            { "action": "list_directory", "path": "artifacts/a/b" },
            { "action": "tool", "tool": "Grep", "arguments": { "pattern": "print" } },
        ]}))
        .await;
    assert_eq!(task.status, TaskStatus::Completed, "{task:#?}");
    assert_eq!(statuses(&events), ["queued", "running", "completed"]);
    let result = task.result.unwrap();
    let results: Vec<&Value> =
        result["steps"].as_array().unwrap().iter().map(|step| &step["result"]).collect();
    assert_eq!(results[1]["size_bytes"], 13);
    assert_eq!((&results[2]["stdout"], &results[2]["exit_code"]), (&json!("42\n"), &json!(0)));
    assert_eq!(results[4]["content"], "print(6 * 7)\n");
    assert_eq!(results[5]["entries"][0]["name"], "x.py");
    assert!(results[6]["text"].as_str().unwrap().contains("x.py"), "{}", results[6]);
    let lines: Vec<_> = events
        .iter()
        .filter(|event| event.kind == EventKind::LogLine)
        .map(|event| (event.data["step"].as_u64().unwrap(), event.data["line"].as_str().unwrap()))
        .collect();
    assert!(lines.contains(&(3, "42")) && lines.contains(&(4, "one")), "{lines:?}");
    let progress: Vec<_> = events
        .iter()
        .filter(|event| event.kind == EventKind::ProgressUpdate)
        .map(|event| event.data["description"].as_str().unwrap())
        .collect();
    assert_eq!(progress[2], "Step 3: execute_command");
    let tasks = std::fs::read_dir(test_env.path("tasks")).unwrap().count();
    assert_eq!(tasks, 0, "the task's own directory is gone");
}

#[tokio::test]
async fn a_failed_step_fails_the_task_and_skips_the_rest() {
    let test_env = TestEnvironment::new().await;
    let (task, events) = test_env
        .run(json!({ "steps": [
            { "action": "shell", "command": "exit 3" },
            { "action": "shell", "command": "touch never" },
        ]}))
        .await;
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(task.error.as_deref(), Some("step 1: exit status 3"));
    assert_eq!(steps(&task), owned(&[("shell", "failed"), ("shell", "skipped")]));
    assert_eq!(task.attempt, 1, "a failing step is no reason to begin again");
    assert!(!test_env.path("never").exists());
    assert!(events.iter().any(|event| event.kind == EventKind::Error));
}

#[tokio::test]
async fn a_step_can_let_the_task_go_on() {
    let test_env = TestEnvironment::new().await;
    let (task, _) = test_env
        .run(json!({ "steps": [
            { "action": "shell", "command": "false", "on_error": "continue" },
            { "action": "shell", "command": "true" },
        ]}))
        .await;
    assert_eq!(task.status, TaskStatus::Completed);
    assert_eq!(steps(&task), owned(&[("shell", "failed"), ("shell", "completed")]));
}

#[tokio::test]
async fn a_refused_command_and_a_path_outside_fail_with_their_codes() {
    let test_env = TestEnvironment::new().await;
    for (step, code) in [
        (json!({ "action": "shell", "command": "sudo ls" }), "E_COMMAND_REFUSED"),
        (json!({ "action": "read_file", "path": "../../etc/passwd" }), "E_SANDBOX_VIOLATION"),
        (json!({ "action": "write_file", "path": "/etc/x", "content": "" }), "E_SANDBOX_VIOLATION"),
        (json!({ "action": "create_directory", "path": "../x" }), "E_SANDBOX_VIOLATION"),
        (json!({ "action": "read_file", "path": ".ssh/id_ed25519" }), "E_SENSITIVE_PATH"),
        (json!({ "action": "tool", "tool": "Nothing" }), "E_UNKNOWN_TOOL"),
    ] {
        let (task, _) = test_env.run(json!({ "steps": [step] })).await;
        let result = task.result.unwrap();
        assert_eq!((task.status, &result["steps"][0]["code"]), (TaskStatus::Failed, &json!(code)));
    }
}

#[tokio::test]
async fn a_step_gets_no_more_time_than_its_own_and_keeps_what_it_printed() {
    let test_env = TestEnvironment::new().await;
    let (task, _) = test_env
        .run(json!({ "steps": [
            { "action": "shell", "command": "echo partial; sleep 100", "timeout": 1 },
        ]}))
        .await;
    assert_eq!(task.status, TaskStatus::Failed);
    let step = &task.result.as_ref().unwrap()["steps"][0];
    assert_eq!(
        (&step["status"], &step["result"]["stdout"]),
        (&json!("timed_out"), &json!("partial\n"))
    );
}

#[tokio::test]
async fn a_task_gets_no_more_time_than_its_own() {
    let test_env = TestEnvironment::new().await;
    let (task, events) = test_env
        .run(json!({ "timeout_seconds": 10, "steps": [
            { "action": "shell", "command": "echo partial; sleep 100", "timeout": 90 },
            { "action": "shell", "command": "true" },
        ]}))
        .await;
    assert_eq!(task.status, TaskStatus::TimedOut, "{task:?}");
    assert_eq!(task.error.as_deref(), Some("Task timed out after 10s"));
    assert_eq!(steps(&task), owned(&[("shell", "timed_out"), ("shell", "skipped")]));
    assert_eq!(statuses(&events).last(), Some(&"timed_out"));
}

#[tokio::test]
async fn a_full_workspace_fails_its_tasks_with_a_last_word() {
    let test_env = TestEnvironment::with_quota(ByteSize::mib(2)).await;
    let writer = "import time\nfor i in range(300):\n open(f'f{i}', 'wb').write(bytes(100000)); time.sleep(0.01)\n";
    let fill = json!({ "steps": [
        { "action": "write_file", "path": "fill.py", "content": writer },
        { "action": "shell", "command": "python3 fill.py" },
    ]});
    let (task, _) = test_env.run(fill).await;
    assert_eq!(task.status, TaskStatus::Failed, "{task:?}");
    let error = task.error.as_deref().unwrap_or_default();
    assert!(error.contains("quota"), "the writer was stopped in the middle: {task:#?}");
    std::fs::write(test_env.path("planted"), vec![1; 4 << 20]).unwrap();
    let (task, events) =
        test_env.run(json!({ "steps": [{ "action": "shell", "command": "true" }] })).await;
    assert_eq!(task.status, TaskStatus::Failed, "{task:?}");
    assert_eq!(statuses(&events).last(), Some(&"failed"));
}

#[tokio::test]
async fn files_of_earlier_tasks_count_against_the_quota() {
    let test_env = TestEnvironment::with_quota(ByteSize::mib(4)).await;
    let writer = "import sys, time\nfor i in range(30):\n open(f'{sys.argv[1]}{i}', 'wb').write(bytes(100000)); time.sleep(0.01)\n";
    let (first, _) = test_env
        .run(json!({ "steps": [
            { "action": "write_file", "path": "fill.py", "content": writer },
            { "action": "shell", "command": "python3 fill.py a" },
        ]}))
        .await;
    assert_eq!(first.status, TaskStatus::Completed, "{first:#?}");
    let (second, _) = test_env
        .run(json!({ "steps": [{ "action": "shell", "command": "python3 fill.py b" }] }))
        .await;
    let error = second.error.as_deref().unwrap_or_default();
    assert!(error.contains("quota"), "{second:#?}");
}

#[tokio::test]
async fn a_failed_step_begins_again_only_if_that_was_asked_for() {
    let test_env = TestEnvironment::new().await;
    let (task, events) = test_env
        .run(json!({ "retry_failed": true, "max_attempts": 3, "steps": [
            { "action": "shell", "command": "test -f second || { touch second; exit 1; }" },
        ]}))
        .await;
    assert_eq!((task.status, task.attempt), (TaskStatus::Completed, 2), "{task:?}");
    assert_eq!(statuses(&events), ["queued", "running", "queued", "running", "completed"]);
}
